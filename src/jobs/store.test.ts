import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf, known_kinds } from '../../test/support/job-bench.ts'
import { idBound, newId } from '../base/ids.ts'
import { endLeases } from '../clock/store.ts'
import type { Tx } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'
import { anyDue } from './due-store.ts'
import { type JobKey, type LeasedJob, lease_ms } from './job.ts'
import { endLease } from './lease-store.ts'
import { setPaused } from './pause-store.ts'
import * as search from './search-store.ts'
import * as jobs from './store.ts'
import { wake_rows_max, wakeIdle } from './wake-store.ts'

const destination = 'http://127.0.0.1:9'

/** With its kind by name, as rows have it. */
type NewJob = Omit<jobs.NewJob, 'kind'> & JobKey

forEachDatabase('jobs', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const now = () => bench.clock.now()
  const write = <T>(work: (tx: Tx) => T | Promise<T>) => bench.db.write(work)
  const newTenant = async () => (await bench.tenant()).tenant_id

  async function plan(tenant_id: string, over: Partial<NewJob> = {}): Promise<NewJob> {
    const work: NewJob = {
      tenant_id,
      kind: 'schedule',
      source_id: newId('sch', now()),
      event_id: newId('evt', now()),
      destination,
      next_at: now(),
      ...over,
    }
    await write((tx) => jobs.enqueue(tx, { ...work, kind: kindOf(work.kind) }))
    return work
  }

  const lease = ({ tenant_id, kind, source_id }: JobKey): Promise<LeasedJob[]> =>
    write((tx) => jobs.lease(tx, tenant_id, kindOf(kind), [source_id], tx.now + lease_ms))

  const leaseOne = async (work: JobKey): Promise<LeasedJob> => {
    const [leased] = await lease(work)
    return leased!
  }

  test.each([wake_rows_max, wake_rows_max + 1])(
    'of %d jobs those that are idle are due now, and no others',
    async (count) => {
      const tenant_id = await newTenant()
      const [idle_at, later_at] = [now() + 9_000_000, now() + 1_000]
      const idle: NewJob[] = []
      for (let n = 0; n < count; n++) idle.push(await plan(tenant_id, { next_at: idle_at }))
      const waits = await plan(tenant_id, { next_at: later_at })
      const unasked = await plan(tenant_id, { next_at: idle_at })
      const source_ids = [...idle, waits].map(({ source_id }) => source_id)
      await write((tx) => wakeIdle(tx, tenant_id, { kind: kindOf('schedule'), source_ids, idle_at }))
      const due = new Map((await bench.jobs(tenant_id)).map((row) => [row.source_id, row.next_at]))
      expect(idle.every(({ source_id }) => due.get(source_id) === now())).toBe(true)
      expect([due.get(waits.source_id), due.get(unasked.source_id)]).toEqual([later_at, idle_at])
    },
  )

  describe('a lease', () => {
    test('counts the attempt, raises the fence, and says since when it is tried', async () => {
      const work = await plan(await newTenant())
      const { tenant_id, kind, source_id, event_id } = work
      expect(await lease(work)).toEqual([
        {
          ...{
            tenant_id,
            kind,
            source_id,
            event_id,
            destination,
            fence: 1,
            attempts: 1,
            first_attempt_at: now(),
          },
          ...{ due_at: now(), lease_expired: false, traceparent: null, starts_at_once: false },
        },
      ])
      expect(await bench.jobs(tenant_id)).toEqual([
        {
          ...{ source_id, kind, event_id, destination, paused: 0 },
          ...{
            next_at: now(),
            lease_until: now() + lease_ms,
            fence: 1,
            attempts: 1,
            first_attempt_at: now(),
          },
        },
      ])
    })

    test('is won by one of many', async () => {
      const work = await plan(await newTenant())
      const won = (await Promise.all(Array.from({ length: 40 }, () => lease(work)))).flat()
      expect(won).toEqual([expect.objectContaining({ fence: 1, attempts: 1 })])
    })

    test('of many rows by many at once gives each row to one', async () => {
      const tenant_id = await newTenant()
      const works = []
      for (let i = 0; i < jobs.lease_rows_max; i++) works.push(await plan(tenant_id))
      const ids = works.map(({ source_id }) => source_id)
      const all = await Promise.all(
        Array.from({ length: 12 }, (_, i) => {
          const mine = [...ids.slice(i), ...ids.slice(0, i)]
          return write((tx) => jobs.lease(tx, tenant_id, kindOf('schedule'), mine, tx.now + lease_ms))
        }),
      )
      const won = all.flat()
      expect(won.map(({ source_id }) => source_id).toSorted()).toEqual(ids.toSorted())
      expect(won.every(({ fence, attempts }) => fence === 1 && attempts === 1)).toBe(true)
    })

    test('is not to be had before the work is due', async () => {
      const work = await plan(await newTenant(), { next_at: now() + 1_000 })
      bench.clock.advance(999)
      expect(await lease(work)).toEqual([])
      bench.clock.advance(1)
      expect(await lease(work)).toHaveLength(1)
    })

    test('that has ended may be leased again: the attempt of the node that died counts', async () => {
      const work = await plan(await newTenant())
      const first_attempt_at = now()
      await leaseOne(work)
      bench.clock.advance(lease_ms - 1)
      expect(await lease(work)).toEqual([])
      bench.clock.advance(1)
      expect(await leaseOne(work)).toMatchObject({ fence: 2, attempts: 2, first_attempt_at })
      bench.clock.advance(lease_ms)
      expect(await leaseOne(work)).toMatchObject({ fence: 3, attempts: 3, first_attempt_at })
    })

    test('takes what is there of a list, whatever else is in it', async () => {
      const tenant_id = await newTenant()
      const due = await plan(tenant_id)
      const later = await plan(tenant_id, { next_at: now() + 1 })
      const taken = await plan(tenant_id)
      await leaseOne(taken)
      const ids = [later.source_id, taken.source_id, 'sch_unknown', due.source_id]
      const leased = await write((tx) =>
        jobs.lease(tx, tenant_id, kindOf('schedule'), ids, tx.now + lease_ms),
      )
      expect(leased.map(({ source_id }) => source_id)).toEqual([due.source_id])
    })

    const sources = [
      ['schedule', 'schedule'],
      ['callback', 'checkpoint'],
    ] as const
    test.each(sources)(
      'that expires unsettled leaves an attempt of a %s, interrupted',
      async (kind, source) => {
        const work = await plan(await newTenant(), { kind })
        const logged = () =>
          jobs.attempts(
            bench.db,
            { tenant_id: work.tenant_id, source, source_id: work.source_id },
            Number.MAX_SAFE_INTEGER,
            10,
          )
        const lost = { event_id: work.event_id, duration_ms: 0, status_code: null, error: 'interrupted' }
        const began: number[] = []
        for (let lease = 1; lease <= 5; lease++) {
          began.push(now())
          await leaseOne(work)
          // The fourth lease finds that the third was the last attempt. It adds no attempt, nor do later leases.
          const rows = [3, 2, 1].filter((attempt) => attempt < lease)
          expect(await logged()).toEqual(
            rows.map((attempt) => ({ ...lost, seq: attempt, attempt, started_at: began[attempt - 1]! })),
          )
          bench.clock.advance(lease_ms)
        }
      },
    )

    test('that expires is logged under its own token, by whatever step another node raises it', async () => {
      const work = await plan(await newTenant())
      const { tenant_id, source_id } = work
      const kind = kindOf('schedule')
      const leaseBy = (step: number) =>
        write(async (tx) => {
          const [leased] = await jobs.lease(tx, tenant_id, kind, [source_id], tx.now + lease_ms, step)
          return leased!
        })
      const first = await leaseBy(5)
      bench.clock.advance(lease_ms)
      const second = await leaseBy(3)
      expect([first.fence, second.fence]).toEqual([5, 8])
      const late = { ok: false, status_code: 503, error: 'status', started_at: 1, duration_ms: 2 }
      expect(await write((tx) => jobs.log(tx, kind, first, late))).toBe(true)
      const source = { tenant_id, source: 'schedule', source_id }
      expect(await jobs.attempts(bench.db, source, Number.MAX_SAFE_INTEGER, 10)).toEqual([
        expect.objectContaining({ seq: 5, attempt: 1, status_code: 503, error: 'status' }),
      ])
    })

    const ended_early: [how: string, end: (tx: Tx, held: LeasedJob) => unknown][] = [
      ['all are ended at a restart', (tx) => endLeases(tx)],
      ['nobody has worked on it for long', (tx, held) => endLease(tx, held)],
    ]
    test.each(ended_early)(
      'that a test clock ends early shows when its attempt began, and none before it was due: %s',
      async (_, end) => {
        const tenant_id = await newTenant()
        const work = await plan(tenant_id)
        const first_at = now()
        const interrupt = async (after_ms: number) => {
          const held = await leaseOne(work)
          bench.clock.advance(after_ms)
          await write(async (tx) => end(tx, held))
          return leaseOne(work)
        }
        const again = await interrupt(2_000)
        await write((tx) => jobs.retry(tx, again, first_at + 30_000))
        bench.clock.advance(28_000)
        await interrupt(0)
        expect(
          await bench.rows(
            'select attempt, started_at from attempts where tenant_id = :tenant_id order by seq',
            {
              tenant_id,
            },
          ),
        ).toEqual([
          { attempt: 1, started_at: first_at },
          { attempt: 3, started_at: first_at + 30_000 },
        ])
      },
    )

    test('that was settled, released or changed leaves no other attempt than it had', async () => {
      const work = await plan(await newTenant())
      const ends: ((tx: Tx, held: LeasedJob) => unknown)[] = [
        (tx, held) => jobs.retry(tx, held, now()),
        (tx, held) => jobs.release(tx, held),
        (tx) => jobs.retarget(tx, work, null, now()),
        (tx) => jobs.reschedule(tx, { ...work, next_at: now() }),
      ]
      for (const end of ends) {
        const held = await leaseOne(work)
        await write((tx) => end(tx, held) as Promise<unknown>)
        bench.clock.advance(lease_ms)
      }
      await leaseOne(work)
      const { tenant_id } = work
      expect(
        await bench.rows('select seq from attempts where tenant_id = :tenant_id', { tenant_id }),
      ).toEqual([])
    })

    test('of a timeout leaves no attempt: nobody is called', async () => {
      const work = await plan(await newTenant(), { kind: 'timeout' })
      await leaseOne(work)
      bench.clock.advance(lease_ms)
      await leaseOne(work)
      const { tenant_id } = work
      expect(
        await bench.rows('select seq from attempts where tenant_id = :tenant_id', { tenant_id }),
      ).toEqual([])
    })

    test('that expired, and whose result still comes, is logged as it was', async () => {
      const work = await plan(await newTenant())
      const { tenant_id, source_id } = work
      const held = await leaseOne(work)
      const started_at = now() + 7
      bench.clock.advance(lease_ms)
      await leaseOne(work)
      const result = { ok: true, status_code: 204, error: null, started_at, duration_ms: 31_000 }
      await write((tx) => jobs.log(tx, kindOf('schedule'), held, result))
      const logged = await jobs.attempts(bench.db, { tenant_id, source: 'schedule', source_id }, 99, 10)
      const { ok: _, ...kept } = result
      expect(logged).toEqual([{ seq: 1, attempt: 1, event_id: work.event_id, ...kept }])
    })

    const others: [what: string, change: (work: JobKey, other: string) => JobKey][] = [
      ['of another tenant', (work, tenant_id) => ({ ...work, tenant_id })],
      ['of another kind', (work) => ({ ...work, kind: 'callback' })],
      ['of another source', (work) => ({ ...work, source_id: 'sch_other' })],
    ]
    test.each(others)('does not reach work %s', async (_, change) => {
      const work = await plan(await newTenant())
      expect(await lease(change(work, await newTenant()))).toEqual([])
      expect(await lease(work)).toHaveLength(1)
    })

    test('is not given on a job that is paused, until it is resumed', async () => {
      const work = await plan(await newTenant())
      const other = await plan(await newTenant())
      await write((tx) => setPaused(tx, work.tenant_id, 'all', 10))
      expect(await lease(work)).toEqual([])
      expect(await lease(other)).toHaveLength(1)
      await write((tx) => setPaused(tx, work.tenant_id, 'none', 10))
      expect(await lease(work)).toHaveLength(1)
    })

    test('is not given while the tenant waits for deletion, even on work that came in at the last moment', async () => {
      const caller = await bench.tenant()
      await tenants.remove(bench.db, bench.dependencies, { ...caller, kind: 'admin' }, caller.tenant_id)
      expect(await lease(await plan(caller.tenant_id))).toEqual([])
    })
  })

  describe('a fence', () => {
    const takers: [how: string, take: (work: NewJob, held: LeasedJob) => Promise<unknown>][] = [
      [
        'its lease expired and another node has it',
        async (work) => {
          bench.clock.advance(lease_ms)
          await leaseOne(work)
        },
      ],
      [
        'it was released and leased again',
        async (work, held) => {
          await write((tx) => jobs.release(tx, held))
          await leaseOne(work)
        },
      ],
      [
        'it got another time',
        (work) => write((tx) => jobs.reschedule(tx, { ...work, event_id: 'evt_new', next_at: now() + 5 })),
      ],
      ['it got another receiver', (work) => write((tx) => jobs.retarget(tx, work, null, now() + 1_000))],
      ['it was cancelled', (work) => write((tx) => jobs.cancel(tx, work))],
    ]
    const writers: [verb: string, write: (tx: Tx, held: LeasedJob) => unknown, refused: unknown][] = [
      ['completes', (tx, held) => jobs.complete(tx, held), false],
      ['retries', (tx, held) => jobs.retry(tx, held, now() + 30_000), false],
      ['releases', (tx, held) => jobs.release(tx, held), 0],
    ]
    const cases = writers.flatMap(([verb, act, refused]) =>
      takers.map(([how, take]) => [verb, how, act, take, refused] as const),
    )
    test.each(cases)('of before %s nothing once %s', async (_verb, _how, act, take, refused) => {
      const work = await plan(await newTenant())
      const held = await leaseOne(work)
      await take(work, held)
      const before = await bench.jobs(work.tenant_id)
      expect(await write((tx) => act(tx, held) as Promise<unknown>)).toBe(refused as never)
      expect(await bench.jobs(work.tenant_id)).toEqual(before)
    })

    test('that holds completes: the work is gone', async () => {
      const work = await plan(await newTenant())
      const held = await leaseOne(work)
      expect(await write((tx) => jobs.complete(tx, held))).toBe(true)
      expect(await bench.jobs(work.tenant_id)).toEqual([])
      expect(await write((tx) => jobs.complete(tx, held))).toBe(false)
    })

    test('that holds retries: due at the given time, free to be leased', async () => {
      const work = await plan(await newTenant())
      const held = await leaseOne(work)
      const next_at = now() + 30_000
      expect(await write((tx) => jobs.retry(tx, held, next_at))).toBe(true)
      expect(await bench.jobs(work.tenant_id)).toEqual([
        expect.objectContaining({ next_at, lease_until: 0, attempts: 1, first_attempt_at: now(), fence: 1 }),
      ])
    })

    test('that holds releases the attempt, as if it had never been leased', async () => {
      const work = await plan(await newTenant())
      const held = await leaseOne(work)
      bench.clock.advance(16_000)
      await write((tx) => jobs.release(tx, held))
      expect(await bench.jobs(work.tenant_id)).toEqual([
        expect.objectContaining({
          next_at: work.next_at,
          lease_until: 0,
          attempts: 0,
          first_attempt_at: null,
        }),
      ])
      expect(await leaseOne(work)).toMatchObject({ attempts: 1, first_attempt_at: now(), fence: 2 })
    })

    test('that has ended, by a retry or a release, does not end again', async () => {
      const work = await plan(await newTenant())
      const held = await leaseOne(work)
      for (const ended of [true, false])
        expect(await write((tx) => jobs.retry(tx, held, now() + 30_000))).toBe(ended)
      bench.clock.advance(30_000)
      const again = await leaseOne(work)
      for (let times = 0; times < 2; times++) await write((tx) => jobs.release(tx, again))
      expect(await bench.jobs(work.tenant_id)).toEqual([
        expect.objectContaining({ attempts: 1, lease_until: 0 }),
      ])
    })

    test('that releases a second attempt keeps the time of the first', async () => {
      const work = await plan(await newTenant())
      const first_attempt_at = now()
      const held = await leaseOne(work)
      await write((tx) => jobs.retry(tx, held, now() + 30_000))
      bench.clock.advance(30_000)
      const again = await leaseOne(work)
      await write((tx) => jobs.release(tx, again))
      expect(await bench.jobs(work.tenant_id)).toEqual([
        expect.objectContaining({ attempts: 1, first_attempt_at, lease_until: 0 }),
      ])
    })
  })

  describe('a change', () => {
    test('of the time starts again: another event, no attempts, no lease', async () => {
      const work = await plan(await newTenant())
      await leaseOne(work)
      const changed = {
        ...work,
        event_id: 'evt_second',
        destination: 'http://127.0.0.1:10',
        next_at: now() + 9,
      }
      expect(await write((tx) => jobs.reschedule(tx, changed))).toBe(true)
      const { tenant_id: _, ...row } = changed
      expect(await bench.jobs(work.tenant_id)).toEqual([
        { ...row, lease_until: 0, fence: 2, attempts: 0, first_attempt_at: null, paused: 0 },
      ])
    })

    test('of the receiver keeps the time, the event and the attempts that ended', async () => {
      const work = await plan(await newTenant())
      const held = await leaseOne(work)
      const next_at = now() + 30_000
      await write((tx) => jobs.retry(tx, held, next_at))
      expect(await write((tx) => jobs.retarget(tx, work, 'http://127.0.0.1:10', now() + 1_000))).toBe(true)
      expect(await bench.jobs(work.tenant_id)).toEqual([
        expect.objectContaining({
          ...{ destination: 'http://127.0.0.1:10', event_id: work.event_id, next_at, fence: 2 },
          ...{ lease_until: 0, attempts: 1, first_attempt_at: now() },
        }),
      ])
    })

    test.each([
      [
        'up to its last millisecond at the given time',
        lease_ms - 1,
        { attempts: 0, first_attempt_at: null },
        true,
      ],
      ['once its lease has expired at once', lease_ms, { attempts: 0, first_attempt_at: null }, false],
    ])(
      'of the receiver takes back an attempt that was not settled, which is made again: %s',
      async (...row) => {
        const [, after_ms, expected, again] = row
        const work = await plan(await newTenant())
        await leaseOne(work)
        bench.clock.advance(after_ms)
        const again_at = now() + 1_000
        await write((tx) => jobs.retarget(tx, work, null, again_at))
        const next_at = again ? again_at : work.next_at
        expect(await bench.jobs(work.tenant_id)).toEqual([
          expect.objectContaining({ destination, lease_until: 0, fence: 2, next_at, ...expected }),
        ])
      },
    )

    test('of the name is another event, and nothing else', async () => {
      const work = await plan(await newTenant())
      await leaseOne(work)
      const [before] = await bench.jobs(work.tenant_id)
      await write((tx) => jobs.changeEvent(tx, work, 'evt_new'))
      expect(await bench.jobs(work.tenant_id)).toEqual([{ ...before!, event_id: 'evt_new' }])
    })

    test('of work that is gone answers so', async () => {
      const work = await plan(await newTenant())
      expect(await write((tx) => jobs.cancel(tx, work))).toBe(true)
      expect(await write((tx) => jobs.cancel(tx, work))).toBe(false)
      expect(await write((tx) => jobs.reschedule(tx, work))).toBe(false)
      expect(await write((tx) => jobs.retarget(tx, work, destination, now()))).toBe(false)
    })

    test('pauses only the jobs of that tenant', async () => {
      const [one, two] = [await plan(await newTenant()), await plan(await newTenant())]
      expect(await write((tx) => setPaused(tx, one.tenant_id, 'all', 10))).toBe(true)
      const restingOf = async ({ tenant_id }: JobKey) => (await bench.jobs(tenant_id))[0]!.paused
      expect([await restingOf(one), await restingOf(two)]).toEqual([1, 0])
    })
  })

  describe('a look', () => {
    test('at what is due gives the longest due first, of all tenants, without what is leased, rests or is to come', async () => {
      const tenant_id = await newTenant()
      const at = (next_at: number) => plan(tenant_id, { next_at })
      const third = await at(now() - 1)
      const first = await at(now() - 3)
      const second = await plan(await newTenant(), { next_at: now() - 2, kind: 'timeout', destination: '' })
      const last = await at(now())
      await at(now() + 1)
      await leaseOne(await at(now() - 4))
      const paused = await plan(await newTenant(), { next_at: now() - 5 })
      await write((tx) => setPaused(tx, paused.tenant_id, 'all', 10))
      const seen = ({ tenant_id, kind, source_id, destination }: NewJob) => {
        return { tenant_id, kind, source_id, destination, attempts: 0, tenant_status: 'active' }
      }
      expect(await search.due(bench.db, now(), 10)).toEqual([first, second, third, last].map(seen))
      expect(await search.due(bench.db, now(), 2)).toEqual([first, second].map(seen))
    })

    test('at one lane gives what is due in it, the longest due first', async () => {
      const tenant_id = await newTenant()
      const second = await plan(tenant_id, { next_at: now() - 1 })
      const first = await plan(tenant_id, { next_at: now() - 2 })
      await plan(tenant_id, { next_at: now() + 1 })
      await plan(tenant_id, { destination: 'http://127.0.0.1:10' })
      await plan(await newTenant())
      await leaseOne(await plan(tenant_id))
      const found = await search.dueInLane(bench.db, tenant_id, destination, now(), 10)
      expect(found.map(({ source_id }) => source_id)).toEqual([first.source_id, second.source_id])
      expect(await search.dueInLane(bench.db, tenant_id, destination, now(), 1)).toHaveLength(1)
    })

    test('at one tenant gives what is due of it, the longest due first', async () => {
      const tenant_id = await newTenant()
      const second = await plan(tenant_id, { next_at: now() - 1 })
      const first = await plan(tenant_id, { next_at: now() - 2, destination: 'http://127.0.0.1:10' })
      await plan(tenant_id, { next_at: now() + 1 })
      await plan(await newTenant())
      await leaseOne(await plan(tenant_id))
      const found = await search.dueOfTenant(bench.db, tenant_id, now(), 10)
      expect(found.map(({ source_id }) => source_id)).toEqual([first.source_id, second.source_id])
      expect(await search.dueOfTenant(bench.db, tenant_id, now(), 1)).toHaveLength(1)
    })

    test('from tenant to tenant meets each with jobs that are not paused, and says when its earliest is due', async () => {
      const [one, two, three, four] = (
        await Promise.all(Array.from({ length: 4 }, newTenant))
      ).toSorted() as [string, string, string, string]
      await plan(one, { next_at: now() + 9 })
      await plan(one, { next_at: now() + 3, destination: 'http://127.0.0.1:10' })
      await plan(two)
      await write((tx) => setPaused(tx, two, 'all', 10))
      await plan(three)
      await plan(four, { next_at: now() + 1 })
      await bench.write(`update tenants set status = 'pending_deletion' where tenant_id = :three`, { three })
      const met = [
        { tenant_id: one, tenant_status: 'active', next_at: now() + 3 },
        { tenant_id: three, tenant_status: 'pending_deletion', next_at: now() },
        { tenant_id: four, tenant_status: 'active', next_at: now() + 1 },
      ]
      const look = (after: string, rows_max: number) => search.tenants(bench.db, after, rows_max)
      expect(await look('', 10)).toEqual(met)
      expect(await look('', 3)).toEqual(met)
      expect(await look('', 2)).toEqual(met.slice(0, 2))
      expect(await look(one, 10)).toEqual(met.slice(1))
      expect(await look(two, 10)).toEqual(met.slice(1))
      expect(await look(four, 10)).toEqual([])
    })

    test('from lane to lane of a tenant meets each with jobs that are not paused, and says when its earliest is due', async () => {
      const [tenant_id, other] = [await newTenant(), await newTenant()]
      await plan(tenant_id, { destination: 'http://b.test', next_at: now() + 9 })
      await plan(tenant_id, { destination: 'http://b.test', next_at: now() + 3 })
      await plan(tenant_id, { destination: '', kind: 'timeout', next_at: now() + 5 })
      await plan(tenant_id, { destination: 'http://c.test' })
      await plan(tenant_id, { destination: 'http://at-rest.test' })
      await bench.write(`update jobs set paused = 1 where destination = 'http://at-rest.test'`)
      await plan(other, { destination: 'http://bb.test' })
      const met = [
        { destination: '', next_at: now() + 5 },
        { destination: 'http://b.test', next_at: now() + 3 },
        { destination: 'http://c.test', next_at: now() },
      ]
      const look = (from: string, rows_max: number) => search.lanes(bench.db, tenant_id, from, rows_max)
      expect(await look('', 10)).toEqual(met)
      expect(await look('', 2)).toEqual(met.slice(0, 2))
      expect(await look('http://b.test', 10)).toEqual(met.slice(1))
      expect(await look('http://bb.test', 10)).toEqual(met.slice(2))
      expect(await look('http://d.test', 10)).toEqual([])
    })

    test('ahead gives the next time at which work falls due', async () => {
      expect(await search.nextAt(bench.db, now())).toBeNull()
      const tenant_id = await newTenant()
      await plan(tenant_id, { next_at: now() + 50 })
      await plan(tenant_id, { next_at: now() })
      await plan(tenant_id, { next_at: now() + 20 })
      expect(await search.nextAt(bench.db, now())).toBe(now() + 20)
      await write((tx) => setPaused(tx, tenant_id, 'all', 10))
      expect(await search.nextAt(bench.db, now())).toBeNull()
    })

    test('back tells whether anything due then is still to do, leased or not', async () => {
      const work = await plan(await newTenant(), { next_at: now() + 10 })
      expect(await anyDue(bench.db, now() + 9, known_kinds)).toBe(false)
      expect(await anyDue(bench.db, now() + 10, known_kinds)).toBe(true)
      bench.clock.advance(10)
      const held = await leaseOne(work)
      expect(await anyDue(bench.db, now(), known_kinds)).toBe(true)
      await write((tx) => jobs.retry(tx, held, now() + 1))
      expect(await anyDue(bench.db, now(), known_kinds)).toBe(false)
    })
  })

  describe('the log of attempts', () => {
    const result = { ok: false, status_code: 503, error: 'status', duration_ms: 12 }

    test('keeps each attempt under its fence, newest first, and pages', async () => {
      const work = await plan(await newTenant())
      const held: LeasedJob[] = []
      for (let i = 0; i < 3; i++) {
        held.push(await leaseOne(work))
        await write((tx) => jobs.log(tx, kindOf('schedule'), held[i]!, { ...result, started_at: now() }))
        bench.clock.advance(lease_ms)
      }
      const { tenant_id, source_id, event_id } = work
      const page = (before_seq: number, rows_max: number) =>
        jobs.attempts(bench.db, { tenant_id, source: 'schedule', source_id }, before_seq, rows_max)
      const first = held[0]!.first_attempt_at
      const row = (seq: number) => ({
        ...{ seq, event_id, attempt: seq, started_at: first + (seq - 1) * lease_ms },
        ...{ duration_ms: 12, status_code: 503, error: 'status' },
      })
      expect(await page(Number.MAX_SAFE_INTEGER, 2)).toEqual([row(3), row(2)])
      expect(await page(2, 2)).toEqual([row(1)])
      expect(await jobs.attempts(bench.db, { tenant_id, source: 'checkpoint', source_id }, 9, 9)).toEqual([])
      expect(
        await jobs.attempts(bench.db, { tenant_id: await newTenant(), source: 'schedule', source_id }, 9, 9),
      ).toEqual([])
    })
  })

  test('a purge removes work and log of one tenant, a bounded number of each at a time', async () => {
    const [one, two] = [await newTenant(), await newTenant()]
    for (const tenant_id of [one, two]) {
      for (let i = 0; i < 5; i++) {
        const held = await leaseOne(await plan(tenant_id, { source_id: idBound('sch', i) }))
        const started_at = now()
        const result = { ok: true, status_code: 200, error: null, started_at, duration_ms: 1 }
        await write((tx) => jobs.log(tx, kindOf('schedule'), held, result))
      }
    }
    const left = async (tenant_id: string) => {
      const [{ count }] = (await bench.rows<{ count: number }>(
        `select (select count(*) from jobs where tenant_id = :tenant_id) * 10 +
                (select count(*) from attempts where tenant_id = :tenant_id) as count`,
        { tenant_id },
      )) as [{ count: number }]
      return count
    }
    expect(await left(one)).toBe(55)
    const purged = () =>
      write(async (tx) => {
        let removed = 0
        for (const purge of jobs.purge) removed += await purge(tx, one, 3, 1_000)
        return removed
      })
    expect(await purged()).toBe(6)
    expect(await left(one)).toBe(22)
    expect(await purged()).toBe(4)
    expect(await purged()).toBe(0)
    expect([await left(one), await left(two)]).toEqual([0, 55])
  })
})
