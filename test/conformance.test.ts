// The conformance suite, as anyone runs it against a URL, finds no fault in this service.

import { expect, test } from 'bun:test'
import { chapters } from '../conformance/src/chapters.ts'
import { errorStatuses } from '../conformance/src/contract.ts'
import { operations } from '../conformance/src/operations.ts'
import { readOptions } from '../conformance/src/options.ts'
import { type Report, run } from '../conformance/src/runner.ts'
import openapi from '../openapi.json' with { type: 'json' }
import { RunningClock } from './support/clock.ts'
import { cron_secret, forEachWholeService } from './support/service.ts'

/** Some 7,000 requests, on a machine that may have much else to do. */
const patience_ms = 300_000

/** Codes that no caller can bring about at will. */
const out_of_reach = [
  'INTERNAL',
  'UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'STORAGE_FULL',
  'RATE_LIMITED',
  'IDEMPOTENCY_IN_PROGRESS',
]

forEachWholeService('the conformance suite', (service) => {
  service.clock = new RunningClock()

  test(
    'passes with every check of it',
    async () => {
      const options = readOptions([service.url, '--profile=extensions'], {
        CONFORMANCE_CRON_SECRET: cron_secret,
      })!
      const report = await run(chapters, options)
      const failed = report.results.filter(({ outcome }) => outcome === 'failed')
      expect(failed.map(({ name, reason, calls }) => ({ name, reason, calls }))).toEqual([])
      expect([report.test_clock, report.not_run]).toEqual([true, 0])
      expect(report.passed).toBeGreaterThan(800)
      expectWhole(report)
    },
    patience_ms,
  )
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
