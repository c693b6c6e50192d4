import { expect, test } from 'bun:test'
import { systemClock } from '../base/clock.ts'
import { nextTurn } from '../base/next-turn.ts'
import { Notifier } from '../base/notifier.ts'
import type { EventRow } from '../contract/event.ts'
import { Tails } from '../contract/tails.ts'
import { Filter } from '../contract/wanted.ts'
import { openSqlite } from '../db/sqlite.ts'
import { Follower } from './follower.ts'

const a_turn = 16

const eventAt = (seq: number) =>
  ({ seq, type: 'x.y', subject_id: 's', workflow_id: null, private_to: null }) as EventRow

test('of a thousand that one event wakes, a few read in each turn, and take along what has come meanwhile', async () => {
  const rows: EventRow[] = []
  const notifier = new Notifier()
  const tails = new Tails(
    {
      number: async () => true,
      lastSeq: () => 0,
      after: (_tenant_id, after) => rows.filter(({ seq }) => seq > after),
    },
    notifier,
  )
  const db = openSqlite(':memory:', { clock: systemClock, exclusive: false, onFatal() {} })
  const wants = { filters: [new Filter({})], viewer: null }
  const followers = await Promise.all(
    Array.from({ length: 3 * a_turn }, async () => {
      const tail = await tails.enter('ten_1')
      return new Follower({ db, tails, notifier, tenant_id: 'ten_1', wants }, tail, 0)
    }),
  )
  const read: number[][] = []
  const reading = followers.map(async (follower) =>
    read.push((await follower.next(10, 60_000)).map(({ seq }) => seq)),
  )
  const tail = await tails.enter('ten_1')
  rows.push(eventAt(1))
  await tail.refresh()
  await nextTurn()
  expect(read).toEqual(Array.from({ length: a_turn }, () => [1]))
  rows.push(eventAt(2))
  await tail.refresh()
  await Promise.all(reading)
  expect(read.length).toBe(3 * a_turn)
  expect(read.slice(2 * a_turn)).toEqual(Array.from({ length: a_turn }, () => [1, 2]))
  for (const follower of followers) follower.close()
  tails.leave(tail)
  expect(tails.size).toBe(0)
  await db.close()
})
