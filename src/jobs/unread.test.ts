import { expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { minute_ms } from '../base/clock.ts'
import { limits } from '../base/limit.ts'
import { UnreadJobs } from './unread.ts'

const remembered_max = limits.get('jobs.unread_remembered')!.value

/** In a round a minute each of them fails: the number of those that may not be released any more, round by round. */
function refused(count: number, rounds: number): number[] {
  const clock = new TestClock()
  const unread = new UnreadJobs(clock)
  return Array.from({ length: rounds }, () => {
    let refused = 0
    for (let i = 0; i < count; i++) if (!unread.mayRelease(`job ${i}`)) refused += 1
    clock.advance(minute_ms)
    return refused
  })
}

test.each([remembered_max, remembered_max + 1])(
  '%d jobs that fail are released for ten minutes, however many are remembered',
  (count) => {
    expect(refused(count, 13)).toEqual([...Array(11).fill(0), count, count])
  },
)

test('a job that is new two minutes after others were forgotten begins again', () => {
  const clock = new TestClock()
  const unread = new UnreadJobs(clock)
  for (let i = 0; i <= remembered_max; i++) unread.mayRelease(`job ${i}`)
  clock.advance(11 * minute_ms)
  expect(unread.mayRelease('another')).toBe(true)
})
