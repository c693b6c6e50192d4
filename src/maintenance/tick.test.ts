import { expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { forEachService } from '../../test/support/service.ts'
import { undeclared_message } from '../app/background.ts'
import type { Feature, Swept } from '../contract/feature.ts'
import type { Db } from '../db/db.ts'
import type { Due } from '../db/sweep-tenants.ts'
import { features } from '../features.ts'
import type { JobTimer } from '../jobs/timer.ts'
import type { JobWorker } from '../jobs/worker.ts'
import { Maintenance } from './tick.ts'

const cron_secret = 'the cron secret of these tests'
const nothing: Swept = { more: false }

/** A node with these sweeps and nothing to purge, whose jobs raise these counters at every tick. */
function nodeOf(sweeps: Record<string, () => Swept>, raised: [counter: string, by: number][] = []) {
  const clock = new TestClock()
  const undeclared: string[] = []
  const list: Feature[] = Object.entries(sweeps).map(([name, run]) => ({
    name,
    sweep: { counters: { expired: [name] }, run: async () => run() },
  }))
  let purges = 0
  let numberings = 0
  const swept: number[] = []
  const purge = { due: (): Due[] => [] }
  const due = () => {
    purges += 1
    return purge.due()
  }
  const journal = {
    async tick() {
      numberings += 1
    },
  }
  list.push({ name: 'owners', purgeable: { due, lock: async () => true, remove: () => 0 } })
  const worker: Pick<JobWorker, 'tick' | 'takeCounts'> = {
    tick: async () => {},
    takeCounts: () => new Map(raised),
  }
  const timer: Pick<JobTimer, 'pauseOrResumeUntil'> = { pauseOrResumeUntil: async () => {} }
  const maintenance = new Maintenance({
    ...{ db: {} as Db, clock, features: list, internal: false },
    ...{ worker: worker as JobWorker, timer: timer as JobTimer, journal },
    onError: () => {},
    onPurged: () => {},
    onUndeclared: (counter) => undeclared.push(counter),
    onSwept: (ms) => swept.push(ms),
  })
  return { maintenance, clock, undeclared, swept, purge, purges: () => purges, numberings: () => numberings }
}

test('a tick in which one sweep fails does the rest, fails with its error, and the next one reports the counts', async () => {
  let failures = 1
  const { maintenance, purges, numberings } = nodeOf({
    notes: () => ({ counts: { 'expired.notes': 2 }, more: false }),
    pages() {
      if (failures-- > 0) throw new Error('the pages are away')
      return nothing
    },
    inks: () => ({ counts: { 'expired.inks': 3 }, more: false }),
  })
  await expect(maintenance.tick()).rejects.toThrow(new Error('the pages are away'))
  expect([purges(), numberings()]).toEqual([1, 1])
  const { counts } = await maintenance.tick()
  expect(counts).toEqual({ 'expired.notes': 4, 'expired.inks': 6 })
})

test.each(['sweep', 'purge'])(
  'a step in which the %s fails, or waits because it did, is not measured',
  async (part) => {
    const away = new Error('away')
    let fails = true
    const failing = <T>(done: T) => {
      if (fails) throw away
      return done
    }
    const { maintenance, clock, swept, purge } = nodeOf({
      notes: () => (part === 'sweep' ? failing(nothing) : nothing),
    })
    if (part === 'purge') purge.due = () => failing([])
    await expect(maintenance.tick()).rejects.toThrow(away)
    await maintenance.tick()
    expect(swept).toEqual([])
    fails = false
    clock.advance(5_000)
    await maintenance.tick()
    expect(swept).toEqual([0])
  },
)

test('a counter that no feature declares is reported, by a sweep as by a job, and is in no answer', async () => {
  const { maintenance, undeclared } = nodeOf(
    { notes: () => ({ counts: { 'expired.notes': 1, 'expired.note': 1 }, more: false }) },
    [
      ['expired.notes', 4],
      ['notes.sent', 1],
    ],
  )
  expect((await maintenance.tick()).counts).toEqual({ 'expired.notes': 5 })
  expect(undeclared).toEqual(['expired.note', 'notes.sent'])
})

forEachService(
  'A counter that no feature declares',
  (service) => {
    test('is an error in the log, at which the tick of a test fails', async () => {
      const { sweep } = features.find(({ name }) => name === 'kv')!
      const run = sweep!.run
      sweep!.run = async () => ({ counts: { 'expired.no_such': 1 }, more: false })
      try {
        const answer = await service.ask('POST', '/v1/tick', { key: cron_secret })
        expect(answer.status).toBe(500)
      } finally {
        sweep!.run = run
      }
      const logged = service.logged.filter(({ message }) => message === undeclared_message)
      expect(logged).toEqual([
        { level: 'error', fields: { counter: 'expired.no_such' }, message: undeclared_message },
      ])
    })
  },
  { CRON_SECRET: cron_secret },
)

const foreign_secret = 'schlüssel für 夜 😀'

forEachService(
  'A cron secret of other letters than ASCII',
  (service) => {
    const statusOf = async (secret: string) =>
      (await service.ask('POST', '/v1/tick', { headers: { authorization: `Bearer ${secret}` } })).status
    /** A header holds a character for each byte. */
    const sent = (text: string) => Buffer.from(text).toString('latin1')

    test('opens the tick when its UTF-8 is sent, as curl does', async () => {
      expect(await statusOf(sent(foreign_secret))).toBe(200)
    })

    test.each(['schlüssel für 夜', 'schlüssel für 夜 😁', ''])('is not %j', async (other) => {
      expect(await statusOf(sent(other))).toBe(401)
    })
  },
  { CRON_SECRET: foreign_secret },
)

forEachService(
  'A cron secret of Latin letters',
  (service) => {
    test('opens the tick when it is sent with a byte for each letter, too', async () => {
      for (const secret of [
        'schlüssel für die Nacht',
        Buffer.from('schlüssel für die Nacht').toString('latin1'),
      ]) {
        const headers = { authorization: `Bearer ${secret}` }
        expect((await service.ask('POST', '/v1/tick', { headers })).status).toBe(200)
      }
    })
  },
  { CRON_SECRET: 'schlüssel für die Nacht' },
)
