import { expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import type { Trouble } from '../db/db.ts'
import { TroubleLog } from './trouble-log.ts'

const full = 'the disk is nearly full: what needs room is refused until there is some'
const stalled = 'the disk does not answer: writes are refused until it does'
const answers = 'the disk answers again: writes are accepted'
const has_room = 'the disk has room again: everything is accepted'
const removed = expect.stringMatching(/^A FILE OF THE DATABASE WAS REMOVED OR REPLACED: /)

test.each<[name: string, kinds: (Trouble['kind'] | null)[], lines: unknown[]]>([
  ['one and its end', ['full', 'full', null, null], ['full', full, 2_000, has_room]],
  [
    'a full disk that does not answer for a time, which does not end its being full',
    ['full', 'stalled', 'full', null],
    ['full', full, 'stalled', stalled, 1_000, answers, 3_000, has_room],
  ],
  [
    'both that end at once',
    ['full', 'stalled', null],
    ['full', full, 'stalled', stalled, 1_000, answers, 2_000, has_room],
  ],
  ['a removed file, which ends nothing', ['full', 'removed', 'removed'], ['full', full, 'removed', removed]],
  ['a damaged file, which has a line of its own', ['full', 'damaged'], ['full', full]],
])('the log has %s', (_, kinds, lines) => {
  const clock = new TestClock()
  const logged: unknown[] = []
  const record = (fields: object, message: string) => logged.push(...Object.values(fields), message)
  let kind: Trouble['kind'] | null = null
  const db = { trouble: () => kind && { kind, reason: kind } }
  const log = new TroubleLog(db, { debug: record, info: record, warn: record, error: record }, clock)
  for (kind of kinds) {
    log.look()
    clock.advance(1_000)
  }
  expect(logged).toEqual(lines)
})
