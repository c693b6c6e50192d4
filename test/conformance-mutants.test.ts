// The conformance suite finds planted faults: a proxy breaks one sentence of the contract at a time.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chapters } from '../conformance/src/chapters.ts'
import { readOptions } from '../conformance/src/options.ts'
import { type Result, run } from '../conformance/src/runner.ts'
import { RunningClock } from './support/clock.ts'
import { type Mutant, mutants } from './support/conformance-faults.ts'
import { type Fault, startProxy } from './support/conformance-proxy.ts'
import { cron_secret, TestService } from './support/service.ts'

const service = new TestService()
service.clock = new RunningClock()
beforeAll(async () => {
  await service.start('sqlite::memory:')
})
afterAll(() => service.stop())

/** Runs these checks through a proxy with this fault. */
async function checked(fault: Fault, only: string[]): Promise<Result[]> {
  const proxy = startProxy(service.url, fault)
  try {
    const args = [proxy.url, ...only.map((name) => `--only=${name}`)]
    const options = readOptions(args, { CONFORMANCE_CRON_SECRET: cron_secret })!
    return (await run(chapters, options)).results
  } finally {
    await proxy.stop()
  }
}

const namesOf = ({ found_by, beside }: Mutant) => [found_by, ...(beside ? [beside] : [])]

test('no check finds a fault where none is planted', async () => {
  const names = [...new Set(mutants.flatMap(namesOf))]
  const all = await checked({ callback: () => undefined }, names)
  const results = all.filter(({ name }) => names.includes(name))
  expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([])
  expect(names.filter((name) => !results.some((result) => result.name === name))).toEqual([])
})

test.each(mutants.map((mutant) => [mutant.name, mutant.found_by, mutant] as const))(
  'a service that %s is found by %s',
  async (_, found_by, mutant) => {
    const results = await checked(mutant.plant(), namesOf(mutant))
    const found = results.find(({ name }) => name === found_by)
    expect([found?.outcome, found?.reason]).toEqual(['failed', expect.stringMatching(/./)])
  },
)
