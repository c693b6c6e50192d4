// Two copies of the SDK in one program: what one has made is given to the other.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as here from '../sdk/src/index.ts'
import { failureOf } from './support/sdk.ts'

const folder = mkdtempSync(join(tmpdir(), 'waystation-copy-'))
let other: typeof here

beforeAll(async () => {
  cpSync(join(import.meta.dir, '../sdk/src'), folder, { recursive: true })
  other = await import(join(folder, 'index.ts'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const refusal = { code: 'KEY_NOT_FOUND', message: 'm', request_id: 'req_1' }

/** A client of this copy, whose calls are answered by their path. */
function answering(answers: Record<string, unknown>) {
  const sent: [string, unknown][] = []
  const client = new here.Waystation({
    url: 'http://service.test',
    fetch: async (url, { body }) => {
      const path = new URL(url).pathname.replace('/v1', '')
      sent.push([path, JSON.parse((body as string | undefined) ?? 'null')])
      const data = answers[path]
      return data === undefined
        ? Response.json({ error: refusal }, { status: 404 })
        : Response.json({ success: true, data, ...(data as object) })
    },
  })
  return { client, sent }
}

describe('With two copies of the SDK in one program', () => {
  test('an error of one is an instance of its class in the other, and has its code', async () => {
    expect(other.WaystationError).not.toBe(here.WaystationError)
    const error = await failureOf(answering({}).client.kv.get('state', 'absent'))
    expect([error instanceof other.WaystationError, other.hasCode(error, 'KEY_NOT_FOUND')]).toEqual([
      true,
      true,
    ])
    expect(error instanceof other.WaystationNetworkError).toBe(false)
    const failed = new here.EffectFailedError({ id: 'eff_1', type: 't', key: 'k', error: null })
    const kinds = ['EffectError', 'EffectFailedError', 'EffectRejectedError', 'NotDone'] as const
    expect(kinds.map((kind) => failed instanceof other[kind])).toEqual([true, true, false, false])
  })

  test('a class that the program derives is itself alone', () => {
    class Mine extends other.GiveUp {}
    class Named extends other.GiveUp {
      static override readonly waystation_class = undefined as never
    }
    expect([new Mine('x') instanceof here.GiveUp, new Mine('x') instanceof other.GiveUp]).toEqual([
      true,
      true,
    ])
    for (const kind of [Mine, Named])
      expect([new here.GiveUp('x') instanceof kind, new kind('x') instanceof kind]).toEqual([false, true])
    for (const value of [null, undefined, 'GiveUp', Object.create(null), { name: 'GiveUp' }, new Error('x')])
      expect(value instanceof here.GiveUp).toBe(false)
  })

  test('GiveUp of the other archives the item of a handler', async () => {
    const item = { id: 'dlq_1', lock_token: 'tok', lock_seconds: 60, claims: 1, status: 'locked' }
    const { client, sent } = answering({ '/dlq/claim': item, '/dlq/dlq_1/fail': item })
    const ended = new AbortController()
    const summary = await client.dlq.work(
      () => {
        ended.signal.throwIfAborted()
        throw new other.GiveUp('nobody can do it')
      },
      { signal: ended.signal, on_error: () => ended.abort() },
    )
    expect(summary).toEqual({ resolved: 0, released: 0, failed: 1, lost: 0 })
    expect(sent.map(([path]) => path)).toEqual(['/dlq/claim', '/dlq/dlq_1/fail'])
  })

  test('NotDone of the other says that an effect did not happen', async () => {
    const effect = {
      ...{ id: 'eff_1', type: 'refund', key: 'k', status: 'running', lease_seconds: 60, fence: 1 },
      ...{ payload: 1, payload_hash: 'h', effective_hash: null, effective_payload: null, lease_token: 'tok' },
    }
    const { client, sent } = answering({ '/effects': effect, '/effects/eff_1/fail': effect })
    const thrown = new other.NotDone('card declined', { retry: true })
    const once = client.effects.once({ type: 'refund', key: 'k', payload: 1 }, () => {
      throw thrown
    })
    expect(await failureOf(once)).toBe(thrown)
    expect(sent.at(-1)).toMatchObject(['/effects/eff_1/fail', { error: 'card declined', retry: true }])
  })

  test('RawJson of the other is sent as it stands', async () => {
    const { client, sent } = answering({ '/kv/state/n': { namespace: 'state', version: 1 } })
    await client.kv.put('state', 'n', { deep: [new other.RawJson('12')] })
    expect(sent).toEqual([['/kv/state/n', { value: { deep: [12] } }]])
  })
})
