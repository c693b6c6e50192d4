// Values of commands: from the argument, from a file and from standard input.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generated } from '../cli/generated.ts'
import type { Io } from '../cli/io.ts'
import { Bench, runInside } from './support/cli.ts'
import { leastAnswer } from './support/least-answers.ts'

/** Each command that takes JSON, without it. */
const commands: Record<string, string[]> = {
  putValue: ['kv', 'put', 'state', 'k'],
  appendEntry: ['audit', 'append', 'done'],
  captureItem: ['dlq', 'create', '--error', 'e'],
  createSchedule: ['schedule', 'create', '/wake', '--in', '1m'],
  updateSchedule: ['schedule', 'update', 'sch_1'],
  createCheckpoint: ['checkpoint', 'create', 'Deploy?', '--callback', '/decided'],
  approveCheckpoint: ['approve', 'chk_1'],
  claimEffect: ['effect', 'claim', 'refund', 'order-7'],
  resolveEffect: ['effect', 'resolve', 'eff_1', 'succeeded'],
  succeedEffect: ['effect', 'succeed', 'eff_1', '--token', 'lse_1'],
}
/** A parser would write it in another way. */
const value = '{"b": 1.50,  "a": 12345678901234567890}'

const with_json = generated.flatMap(({ operation, json }) => (json ? [{ operation, ...json }] : []))

test('every command that takes JSON is in this file', () => {
  expect(Object.keys(commands).toSorted()).toEqual(with_json.map(({ operation }) => operation).toSorted())
})

describe.each(with_json)('The $name of $operation', ({ operation, name, is_required }) => {
  const bench = new Bench()
  const words = commands[operation]!
  let file: string
  beforeAll(() => {
    file = join(bench.folder(), 'value')
    writeFileSync(file, `${value}\n`)
  })
  afterAll(() => bench.clean())

  /** The bodies that were sent, as they were. */
  async function sent(args: string[], stdin: Io['stdin'] = input('')): Promise<string[]> {
    const bodies: string[] = []
    const fetch: Io['fetch'] = async (url, { method, body }) => {
      bodies.push(String(body))
      return leastAnswer(method!, new URL(url).pathname)
    }
    const { code, stderr } = await runInside([...words, ...args], { fetch, stdin })
    expect([code, stderr]).toEqual([0, ''])
    return bodies
  }

  test('comes from the argument, from --file <path> or from --file -, as it was written', async () => {
    const bodies = [
      ...(await sent([value])),
      ...(await sent(['--file', file])),
      ...(await sent(['--file', '-'], input(`${value}\n`))),
    ]
    expect(bodies.map((body) => body.includes(`"${name}":${value}`))).toEqual([true, true, true])
  })

  test('is read from standard input without --file only where it is needed', async () => {
    const { asked } = await runInside(words, { stdin: input('"read"') })
    expect(asked.some(({ body }) => (body as Record<string, unknown>)[name] === 'read')).toBe(is_required)
  })
})

async function* input(text: string) {
  yield new TextEncoder().encode(text)
}
