// The conformance suite finds planted faults: a proxy breaks one sentence of the contract at a time.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chapters } from '../conformance/src/chapters.ts'
import { readOptions } from '../conformance/src/options.ts'
import { type Result, run } from '../conformance/src/runner.ts'
import { RunningClock } from './support/clock.ts'
import { type Mutant, mutants } from './support/conformance-faults.ts'
import { type Fault, startProxy, withClock } from './support/conformance-proxy.ts'
import { cron_secret, TestService } from './support/service.ts'

const service = new TestService()
service.clock = new RunningClock()
beforeAll(async () => {
  await service.start('sqlite::memory:')
})
afterAll(() => service.stop())

/** Everything that falls due meanwhile happens before the answer. */
async function move(ms: number): Promise<void> {
  service.clock.advance(ms)
  expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
}

/** Runs these checks through a proxy with this fault. */
async function checked(fault: Fault, only: string[], patience_seconds: number): Promise<Result[]> {
  const proxy = startProxy(service.url, withClock(move, fault))
  try {
    const args = [proxy.url, `--patience=${patience_seconds}`, ...only.map((name) => `--only=${name}`)]
    const options = readOptions(args, { CONFORMANCE_CRON_SECRET: cron_secret })!
    return (await run(chapters, options)).results
  } finally {
    await proxy.stop()
  }
}

const namesOf = ({ found_by, beside }: Mutant) => [found_by, ...(beside ? [beside] : [])]

test('no check finds a fault where none is planted', async () => {
  const names = [...new Set(mutants.flatMap(namesOf))]
  const all = await checked({ callback: () => undefined }, names, 10)
  const results = all.filter(({ name }) => names.includes(name))
  expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([])
  expect(names.filter((name) => !results.some((result) => result.name === name))).toEqual([])
})

test.each(mutants.map((mutant) => [mutant.name, mutant.found_by, mutant] as const))(
  'a service that %s is found by %s',
  async (_, found_by, mutant) => {
    const results = await checked(mutant.plant(), namesOf(mutant), 0.5)
    const found = results.find(({ name }) => name === found_by)
    expect([found?.outcome, found?.reason]).toEqual(['failed', expect.stringMatching(/./)])
  },
)
