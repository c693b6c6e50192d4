// The conformance suite, as anyone runs it against a URL, finds no fault in this service.

import { expect, test } from 'bun:test'
import { chapters } from '../conformance/src/chapters.ts'
import { errorStatuses } from '../conformance/src/contract.ts'
import { operations } from '../conformance/src/operations.ts'
import { readOptions } from '../conformance/src/options.ts'
import { type Report, run } from '../conformance/src/runner.ts'
import openapi from '../openapi.json' with { type: 'json' }
import { RunningClock } from './support/clock.ts'
import { startProxy, withClock } from './support/conformance-proxy.ts'
import { cron_secret, forEachService } from './support/service.ts'

/** Codes that no caller can bring about at will. */
const out_of_reach = [
  'INTERNAL',
  'UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'STORAGE_FULL',
  'RATE_LIMITED',
  'IDEMPOTENCY_IN_PROGRESS',
]

forEachService('the conformance suite', (service) => {
  service.clock = new RunningClock()

  /** Everything that falls due meanwhile happens before the answer. */
  async function move(ms: number) {
    service.clock.advance(ms)
    expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
  }

  test('passes with every check of it', async () => {
    const proxy = startProxy(service.url, withClock(move))
    const options = readOptions([proxy.url], { CONFORMANCE_CRON_SECRET: cron_secret })!
    const report = await run(chapters, options)
    await proxy.stop()
    const failed = report.results.filter(({ outcome }) => outcome === 'failed')
    expect(failed.map(({ name, reason, calls }) => ({ name, reason, calls }))).toEqual([])
    expect([report.test_clock, report.not_run]).toEqual([true, 0])
    expect(report.passed).toBeGreaterThan(800)
    expectWhole(report)
  })
})

/** Every operation has succeeded and was refused, and every code was seen. */
function expectWhole({ operations: seen, codes }: Report): void {
  for (const { name, status, callers } of operations) {
    const expected = [status, ...(callers === 'anyone' ? [] : callers === 'cron' ? [401] : [401, 403])]
    expect([name, seen[name]]).toEqual([name, expect.arrayContaining(expected)])
  }
  const reached = Object.keys(errorStatuses).filter((code) => !out_of_reach.includes(code))
  expect(reached.filter((code) => !codes.includes(code))).toEqual([])
}

test('each check has a name of its own', () => {
  const names = chapters.flatMap(({ checks }) => checks.map(({ name }) => name))
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
})

test('each operation of the suite is one of this service', () => {
  const documented = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]: [string, { responses?: object }]) => ({
      name: `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}')}`,
      statuses: Object.keys(responses ?? {}),
    })),
  )
  for (const { name, status } of operations) {
    const found = documented.find((one) => one.name === name.replace(/\{\w+\}/g, '{}'))
    expect([name, found?.statuses]).toEqual([name, expect.arrayContaining([String(status)])])
  }
})
