// The conformance suite finds no fault in implementations that are right, and other than ours.

import { expect, test } from 'bun:test'
import { chapters } from '../conformance/src/chapters.ts'
import { readOptions } from '../conformance/src/options.ts'
import { partsOf, rawAt } from '../conformance/src/raw-json.ts'
import { type Report, run } from '../conformance/src/runner.ts'
import { RunningClock } from './support/clock.ts'
import { ofTheDocumentsAlone, spelledOtherwise } from './support/conformance-others.ts'
import { type Fault, startProxy } from './support/conformance-proxy.ts'
import { cron_secret, TestService } from './support/service.ts'

/** Some 7,000 requests, on a machine that may have much else to do. */
const patience_ms = 300_000

async function judged(other: Fault, profile: string): Promise<Report> {
  const service = new TestService({ CLOCK: 'test' })
  service.clock = new RunningClock()
  await service.start('sqlite::memory:')
  const proxy = startProxy(service.url, other)
  try {
    const options = readOptions([proxy.url, `--profile=${profile}`], {
      CONFORMANCE_CRON_SECRET: cron_secret,
    })!
    return await run(chapters, options)
  } finally {
    await proxy.stop()
    await service.stop()
  }
}

function expectPassed(report: Report): void {
  const others = report.results.filter(({ outcome }) => outcome !== 'passed')
  expect(others.map(({ name, reason, calls }) => ({ name, reason, calls }))).toEqual([])
}

test(
  'one that spells the contract otherwise passes: other sentences, more members in another order, other headers of the draft',
  async () => {
    const report = await judged(spelledOtherwise(), 'contract')
    expectPassed(report)
    expect(report.passed).toBeGreaterThan(800)
  },
  patience_ms,
)

test(
  'one that knows the two API documents alone passes their profile: other ids, names of members, codes and statuses',
  async () => {
    const report = await judged(ofTheDocumentsAlone(), 'documents')
    expectPassed(report)
    expect(report.passed).toBeGreaterThan(45)
    expect(report.results.filter(({ section }) => section.includes('decisions'))).toEqual([])
  },
  patience_ms,
)

test('what stands in an answer is compared as text, wherever it stands', () => {
  const json = '{"a": [1, {"b" :\t"x\\"}" , "c":1e400 }],"a":{"z":[ 1 , 2 ], "n":null} }'
  expect(rawAt(json, 'a', 'z')).toBe('[ 1 , 2 ]')
  expect(rawAt(json, 'a', 'n')).toBe('null')
  expect(rawAt(json, 'b')).toBeUndefined()
  expect(rawAt('{"a":[1,{"b":"\\\\","c":-0.10}]}', 'a', 1, 'c')).toBe('-0.10')
  expect(partsOf(' [ ] ')).toEqual([])
  expect(partsOf('"x"')).toEqual([])
})
