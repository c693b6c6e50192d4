// The conformance suite finds planted faults: a proxy breaks one sentence of the contract at a time.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chapters } from '../conformance/src/chapters.ts'
import { readOptions } from '../conformance/src/options.ts'
import { type Result, run } from '../conformance/src/runner.ts'
import { RunningClock } from './support/clock.ts'
import { type Mutant, mutants } from './support/conformance-faults.ts'
import { type Fault, startProxy } from './support/conformance-proxy.ts'
import { cron_secret, TestService } from './support/service.ts'

function newService(): TestService {
  const service = new TestService({ CLOCK: 'test' })
  service.clock = new RunningClock()
  return service
}

const shared = newService()
beforeAll(async () => {
  await shared.start('sqlite::memory:')
})
afterAll(() => shared.stop())

/** Runs these checks against the service, through a proxy with this fault. */
async function checked(
  service: TestService,
  fault: Fault,
  only: string[],
  patience: string,
): Promise<Result[]> {
  const proxy = startProxy(service.url, fault)
  try {
    const args = [
      proxy.url,
      '--profile=extensions',
      `--patience=${patience}`,
      ...only.map((name) => `--only=${name}`),
    ]
    const options = readOptions(args, { CONFORMANCE_CRON_SECRET: cron_secret })!
    return (await run(chapters, options)).results
  } finally {
    await proxy.stop()
  }
}

const namesOf = ({ found_by, beside }: Mutant) => [found_by, ...(beside ? [beside] : [])]

async function expectFound(service: TestService, mutant: Mutant): Promise<void> {
  const results = await checked(service, mutant.plant(), namesOf(mutant), '0.5')
  const found = results.find(({ name }) => name === mutant.found_by)
  expect([found?.outcome, found?.reason]).toEqual(['failed', expect.stringMatching(/./)])
}

test('no check finds a fault where none is planted', async () => {
  const names = [...new Set(mutants.flatMap(namesOf))]
  const service = newService()
  await service.start('sqlite::memory:')
  const all = await checked(service, { callback: () => undefined }, names, '10')
  await service.stop()
  const results = all.filter(({ name }) => names.includes(name))
  expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([])
  expect(names.filter((name) => !results.some((result) => result.name === name))).toEqual([])
}, 300_000)

const titled = mutants.map((mutant) => [mutant.name, mutant.found_by, mutant] as const)

test.each(titled.filter(([, , { takes_time }]) => !takes_time))(
  'a service that %s is found by %s',
  (_name, _found_by, mutant) => expectFound(shared, mutant),
)

// Each has moved its clock: the next one has a service of its own.
test.each(titled.filter(([, , { takes_time }]) => takes_time))(
  'a service that %s is found by %s',
  async (_name, _found_by, mutant) => {
    const service = newService()
    await service.start('sqlite::memory:')
    await expectFound(service, mutant)
    await service.stop()
  },
)
