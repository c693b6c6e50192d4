import { expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { ClockLog } from './clock-log.ts'

test.each<[name: string, jumps: number[], lines: unknown[]]>([
  ['no clock that NTP corrects', [999, -999, 500, 500], []],
  ['one that is set ahead, once', [1_000, 0, 3_600_000], [1, /ahead/, 3_600, /ahead/]],
  ['one that is set back, and forth', [-60_000, 0, 60_000], [60, /set back/, 60, /ahead/]],
])('the log names %s', (_, jumps, lines) => {
  const clock = new TestClock()
  const logged: unknown[] = []
  const record = (fields: object, message: string) => logged.push(...Object.values(fields), message)
  const log = new ClockLog(clock, { debug: record, info: record, warn: record, error: record })
  for (const ms of jumps) {
    clock.advance(1_000)
    clock.jump(ms)
    log.look()
  }
  expect(logged).toEqual(lines.map((line) => (line instanceof RegExp ? expect.stringMatching(line) : line)))
})
