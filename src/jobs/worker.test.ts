import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf, type Sent } from '../../test/support/job-bench.ts'
import {
  approve,
  attemptsOf,
  checkpoint,
  deadLetters,
  hook,
  manySchedules,
  schedule,
  usedOf,
} from '../../test/support/job-features.ts'
import { until } from '../../test/support/patience.ts'
import { signatureHeaders } from '../callbacks/sign.ts'
import { timeout_job } from '../checkpoints/jobs.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { AgentCaller } from '../contract/caller.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from '../tenants/service.ts'
import { version } from '../version.ts'
import { node_max, reserve } from './concurrency.ts'
import { lease_ms } from './job.ts'
import * as store from './store.ts'
import type { JobWorker } from './worker.ts'

forEachDatabase('due work', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  const now = () => bench.clock.now()
  const read = ({ tenant_id }: AgentCaller, id: string) => schedules.read(bench.db, tenant_id, id)
  const readCheckpoint = ({ tenant_id }: AgentCaller, id: string) => checkpoints.read(bench.db, tenant_id, id)
  const urls = (requests: Sent[]) => requests.map(({ url }) => url)

  /** Somebody leases it and is never heard of again. */
  async function diesAfterLease({ tenant_id }: AgentCaller, kind: 'schedule' | 'callback', id: string) {
    const leased = await bench.db.write((tx) =>
      store.lease(tx, tenant_id, kindOf(kind), [id], tx.now + lease_ms),
    )
    expect(leased).toHaveLength(1)
    bench.clock.advance(lease_ms)
  }

  describe('a schedule', () => {
    test('is one signed POST of its payload at its time, and then fired', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller, { fire_at: now() + 5_000 })
      const worker = bench.worker()
      bench.clock.advance(4_999)
      await bench.dispatch(worker)
      expect(bench.network.sent).toEqual([])
      bench.clock.advance(1)
      await bench.dispatch(worker)
      const [row] = await bench.jobs(caller.tenant_id)
      const secrets = await tenants.signingSecrets(
        bench.db,
        bench.dependencies.keys.secrets,
        caller.tenant_id,
        now(),
      )
      const signed = {
        id: row!.event_id,
        timestamp_seconds: now() / 1_000,
        body: '{"n": 1}',
        secrets: secrets!,
      }
      expect(bench.network.sent).toEqual([
        {
          url: `${hook}/path`,
          headers: {
            'content-type': 'application/json',
            'user-agent': `Waystation/${version}`,
            'x-waystation-event': 'schedule.fired',
            'x-waystation-attempt': '1',
            ...signatureHeaders(signed),
          },
          body: '{"n": 1}',
        },
      ])
      expect(await read(caller, id)).toMatchObject({ status: 'pending', attempts: 0 })
      await bench.settle(204)
      const fired = { status: 'fired', attempts: 1, fired_at: now(), last_error: null, last_status_code: 204 }
      expect(await read(caller, id)).toMatchObject({ ...fired, next_at: null })
      expect(await bench.jobs(caller.tenant_id)).toEqual([])
      expect(await attemptsOf(bench, id)).toEqual([{ attempt: 1, error: null, status_code: 204 }])
      expect(await usedOf(bench, caller.tenant_id, 'active_schedules')).toBe(0)
    })

    test('is tried at 0, 30 and 90 seconds from the first attempt, under one webhook-id', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller, { dlq_on_failure: 1 })
      const worker = bench.worker()
      const began = now()
      const tried: number[] = []
      for (let second = 0; second <= 120; second++) {
        await bench.dispatch(worker)
        for (const _ of bench.network.held) tried.push((now() - began) / 1_000)
        await bench.settle(500)
        bench.clock.advance(1_000)
      }
      expect(tried).toEqual([0, 30, 90])
      const headers = bench.network.sent.map((request) => request.headers)
      expect(headers.map((header) => header['x-waystation-attempt'])).toEqual(['1', '2', '3'])
      expect(new Set(headers.map((header) => header['webhook-id'])).size).toBe(1)
      expect(headers.map((header) => header['webhook-timestamp'])).toEqual(
        tried.map((second) => String(began / 1_000 + second)),
      )
      expect(await read(caller, id)).toMatchObject({
        status: 'failed',
        attempts: 3,
        last_error: 'status 500',
      })
      expect(await deadLetters(bench, caller.tenant_id)).toEqual([
        expect.objectContaining({
          ...{ source: 'schedule', source_id: id, status: 'failed', agent_id: 'agent-one' },
          error: `the callback of schedule ${id} failed: status 500`,
        }),
      ])
      expect(await usedOf(bench, caller.tenant_id, 'active_schedules')).toBe(0)
      expect(await usedOf(bench, caller.tenant_id, 'dlq_items')).toBe(1)
    })

    test('counts from the first attempt, however late each answer is', async () => {
      const caller = await bench.tenant()
      await schedule(bench, caller)
      const worker = bench.worker()
      const began = now()
      await bench.dispatch(worker)
      bench.clock.advance(9_000)
      await bench.settle('timeout')
      expect(await bench.jobs(caller.tenant_id)).toEqual([
        expect.objectContaining({ next_at: began + 30_000 }),
      ])
      bench.clock.advance(21_000)
      await bench.dispatch(worker)
      bench.clock.advance(9_000)
      await bench.settle('timeout')
      expect(await bench.jobs(caller.tenant_id)).toEqual([
        expect.objectContaining({ next_at: began + 90_000 }),
      ])
    })

    test('ends at once when the receiver says 410, and without a dead letter unless one was asked for', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      await bench.dispatch(bench.worker())
      await bench.settle(410)
      expect(await read(caller, id)).toMatchObject({
        status: 'failed',
        attempts: 1,
        last_error: 'status 410',
      })
      expect(await deadLetters(bench, caller.tenant_id)).toEqual([])
    })
  })

  describe('a node that leased it and died', () => {
    test('has had an attempt: after three of them the schedule fails as interrupted, with its dead letter', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller, { dlq_on_failure: 1 })
      for (let i = 0; i < 3; i++) await diesAfterLease(caller, 'schedule', id)
      await bench.dispatch(bench.worker())
      expect(bench.network.sent).toEqual([])
      expect(await read(caller, id)).toMatchObject({
        ...{
          status: 'failed',
          attempts: 3,
          last_error: 'interrupted',
          last_status_code: null,
          next_at: null,
        },
      })
      const [letter, ...more] = await deadLetters(bench, caller.tenant_id)
      expect(more).toEqual([])
      expect(letter).toMatchObject({ error: `the callback of schedule ${id} failed: interrupted` })
      expect(await usedOf(bench, caller.tenant_id, 'active_schedules')).toBe(0)
      expect((await attemptsOf(bench, id)).every(({ attempt }) => attempt <= 3)).toBe(true)
    })

    test('leaves the next attempts to others, which are the second and the third', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      const began = now()
      await diesAfterLease(caller, 'schedule', id)
      const worker = bench.worker()
      await bench.dispatch(worker)
      expect(bench.network.sent.map(({ headers }) => headers['x-waystation-attempt'])).toEqual(['2'])
      await bench.settle(500)
      expect(await bench.jobs(caller.tenant_id)).toEqual([
        expect.objectContaining({ next_at: began + 90_000 }),
      ])
      bench.clock.advance(60_000)
      await bench.dispatch(worker)
      expect(bench.network.sent[1]!.headers['x-waystation-attempt']).toBe('3')
      await bench.settle(200)
      expect(await read(caller, id)).toMatchObject({ status: 'fired', attempts: 3 })
    })

    test("does not take a decision along: it stands, and its callback's failure is a dead letter", async () => {
      const caller = await bench.tenant()
      const { id } = await checkpoint(bench, caller)
      await approve(bench, caller, id)
      for (let i = 0; i < 3; i++) await diesAfterLease(caller, 'callback', id)
      await bench.dispatch(bench.worker())
      expect(bench.network.sent).toEqual([])
      expect(await readCheckpoint(caller, id)).toMatchObject({
        ...{ status: 'approved', callback_status: 'failed', callback_last_error: 'interrupted' },
        callback_attempts: 3,
      })
      expect(await deadLetters(bench, caller.tenant_id)).toEqual([
        expect.objectContaining({
          ...{ source: 'checkpoint', source_id: id },
          error: `the callback of checkpoint ${id} failed: interrupted`,
        }),
      ])
    })
  })

  describe('a result under a stale fence is only logged', () => {
    const late: [what: string, verdict: number | 'refused'][] = [
      ['a success', 204],
      ['a failure', 500],
      ['a refusal', 'refused'],
      ['an end of all attempts', 410],
    ]
    test.each(late)('%s that comes after the lease has ended', async (_, verdict) => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller, { dlq_on_failure: 1 })
      await bench.dispatch(bench.worker())
      bench.clock.advance(lease_ms)
      await bench.dispatch(bench.worker())
      const [slow, second] = bench.network.sent as [Sent, Sent]
      const held = await bench.jobs(caller.tenant_id)
      await bench.settle(verdict, [slow])
      expect(await bench.jobs(caller.tenant_id)).toEqual(held)
      expect(await read(caller, id)).toMatchObject({ status: 'pending', attempts: 0, last_error: null })
      expect(await deadLetters(bench, caller.tenant_id)).toEqual([])
      await bench.settle(200, [second])
      expect(await read(caller, id)).toMatchObject({ status: 'fired', attempts: 2, last_status_code: 200 })
      expect((await attemptsOf(bench, id)).map(({ attempt }) => attempt)).toEqual([1, 2])
      expect(await usedOf(bench, caller.tenant_id, 'active_schedules')).toBe(0)
      expect(second.headers['webhook-id']).toBe(slow.headers['webhook-id']!)
    })

    test('one of a schedule that was cancelled meanwhile', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller, { dlq_on_failure: 1 })
      await bench.dispatch(bench.worker())
      await schedules.cancel(bench.db, caller, id)
      await bench.settle(500)
      expect(await read(caller, id)).toMatchObject({ status: 'cancelled', attempts: 0, next_at: null })
      expect(await attemptsOf(bench, id)).toEqual([{ attempt: 1, error: 'status', status_code: 500 }])
      expect(await bench.jobs(caller.tenant_id)).toEqual([])
      expect(await usedOf(bench, caller.tenant_id, 'active_schedules')).toBe(0)
    })

    test('one of a schedule that got another time meanwhile, which starts again', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      const worker = bench.worker()
      await bench.dispatch(worker)
      const fire_at = now() + 60_000
      await schedules.update(bench.db, caller, bench.dependencies, id, { fire_at })
      await bench.settle(204)
      expect(await read(caller, id)).toMatchObject({ status: 'pending', attempts: 0, next_at: fire_at })
      bench.clock.advance(60_000)
      await bench.dispatch(worker)
      await bench.settle(204)
      expect(await read(caller, id)).toMatchObject({ status: 'fired', attempts: 1 })
      const ids = bench.network.sent.map(({ headers }) => headers['webhook-id'])
      expect(ids[0]).not.toBe(ids[1]!)
    })

    const changes: [what: string, change: object, url: string, body: string][] = [
      ['another receiver', { callback_url: 'http://new.test/x' }, 'http://new.test/x', '{"n": 1}'],
      ['another payload', { callback_payload: '[2]' }, `${hook}/path`, '[2]'],
    ]
    test.each(changes)(
      'one of a schedule that got %s meanwhile, which is called',
      async (_, change, url, body) => {
        const caller = await bench.tenant()
        const { id } = await schedule(bench, caller)
        const worker = bench.worker()
        await bench.dispatch(worker)
        await schedules.update(bench.db, caller, bench.dependencies, id, change)
        await bench.settle(204)
        expect(await read(caller, id)).toMatchObject({ status: 'pending' })
        bench.clock.advance(1_000)
        await bench.dispatch(worker)
        expect(bench.network.held).toEqual([expect.objectContaining({ url, body })])
        await bench.settle(200)
        expect(await read(caller, id)).toMatchObject({ status: 'fired', last_status_code: 200 })
      },
    )

    test('three leases that ended do not count against a receiver that was changed after them', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      for (let i = 0; i < 3; i++) await diesAfterLease(caller, 'schedule', id)
      await schedules.update(bench.db, caller, bench.dependencies, id, { callback_url: 'http://new.test/x' })
      await bench.dispatch(bench.worker())
      expect(urls(bench.network.held)).toEqual(['http://new.test/x'])
      await bench.settle(200)
      expect(await read(caller, id)).toMatchObject({ status: 'fired', attempts: 3, last_error: null })
    })

    test('one of a third attempt: the change is tried, and not taken for a worker that died', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      const worker = bench.worker()
      for (const wait_ms of [30_000, 60_000]) {
        await bench.dispatch(worker)
        await bench.settle(500)
        bench.clock.advance(wait_ms)
      }
      await bench.dispatch(worker)
      await schedules.update(bench.db, caller, bench.dependencies, id, { callback_url: 'http://new.test/x' })
      await bench.settle(500)
      bench.clock.advance(1_000)
      await bench.dispatch(worker)
      expect(urls(bench.network.held)).toEqual(['http://new.test/x'])
      await bench.settle(200)
      expect(await read(caller, id)).toMatchObject({ status: 'fired', attempts: 3 })
    })
  })

  describe('between its lease and its sending', () => {
    /** Happens just before the worker reads what to send. */
    function beforeRead(change: () => Promise<unknown>): void {
      const one = bench.db.one.bind(bench.db)
      bench.db.one = async (statement, params) => {
        if (statement.name === 'schedules.deliverable') {
          bench.db.one = one
          await change()
        }
        return one(statement, params)
      }
    }

    test('a schedule that is cancelled is not sent', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      beforeRead(() => schedules.cancel(bench.db, caller, id))
      const worker = bench.worker()
      await bench.dispatch(worker)
      bench.clock.advance(lease_ms)
      await bench.dispatch(worker)
      expect(bench.network.sent).toEqual([])
      expect(await read(caller, id)).toMatchObject({ status: 'cancelled', attempts: 0 })
      expect(await bench.jobs(caller.tenant_id)).toEqual([])
      expect(bench.errors).toEqual([])
    })

    test('a schedule that is changed is sent as it is now, once, under another webhook-id', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      const [before] = await bench.jobs(caller.tenant_id)
      const change = { callback_payload: '{"n": 2}' }
      beforeRead(() => schedules.update(bench.db, caller, bench.dependencies, id, change))
      const worker = bench.worker()
      await bench.dispatch(worker)
      expect(bench.network.sent).toEqual([])
      const [after] = await bench.jobs(caller.tenant_id)
      expect(after!.event_id).not.toBe(before!.event_id)
      bench.clock.advance(1_000)
      await bench.dispatch(worker)
      await bench.settle(200)
      const sent = bench.network.sent.map(({ body, headers }) => [body, headers['webhook-id']])
      expect(sent).toEqual([['{"n": 2}', after!.event_id]])
      expect(await read(caller, id)).toMatchObject({ status: 'fired', attempts: 1 })
    })
  })

  describe('a timeout', () => {
    test('with auto_reject rejects, and the callback follows at once', async () => {
      const caller = await bench.tenant()
      const { id } = await checkpoint(bench, caller, { expires_at: now() })
      const worker = bench.worker()
      await bench.dispatch(worker)
      await bench.dispatch(worker)
      expect(await readCheckpoint(caller, id)).toMatchObject({ status: 'rejected', resolved_by: 'timeout' })
      expect(bench.network.held).toHaveLength(1)
      await bench.settle(200)
      expect(await readCheckpoint(caller, id)).toMatchObject({ callback_status: 'delivered' })
      expect(await bench.jobs(caller.tenant_id)).toEqual([])
    })

    test('with dlq expires, leaves a dead letter and calls nobody', async () => {
      const caller = await bench.tenant()
      const { id } = await checkpoint(bench, caller, { expires_at: now(), timeout_action: 'dlq' })
      const worker = bench.worker()
      await bench.dispatch(worker)
      await bench.dispatch(worker)
      expect(await readCheckpoint(caller, id)).toMatchObject({ status: 'expired', callback_status: 'none' })
      expect(await deadLetters(bench, caller.tenant_id)).toHaveLength(1)
      expect(bench.network.sent).toEqual([])
      expect(await bench.jobs(caller.tenant_id)).toEqual([])
    })

    test('that was leased before a decision came settles nothing', async () => {
      const caller = await bench.tenant()
      const { id } = await checkpoint(bench, caller, { expires_at: now() })
      const lease = () =>
        bench.db.write((tx) => store.lease(tx, caller.tenant_id, timeout_job, [id], tx.now + lease_ms))
      const [leased] = await lease()
      await approve(bench, caller, id)
      const settled = await bench.db.write((tx) => timeout_job.settle(tx, bench.dependencies, leased!))
      expect(settled).toBeNull()
      expect(await readCheckpoint(caller, id)).toMatchObject({ status: 'approved', resolved_by: 'admin' })
      expect((await bench.jobs(caller.tenant_id)).map(({ kind }) => kind)).toEqual(['callback'])
    })
  })

  describe('many at once', () => {
    test('fire nothing twice: three nodes, each asked many times', async () => {
      const callers = [await bench.tenant(), await bench.tenant(), await bench.tenant()]
      for (const [i, caller] of callers.entries()) {
        await manySchedules(bench, caller, 60, (n) => ({ callback_url: `http://h${i}-${n % 5}.test/` }))
        await checkpoint(bench, caller, { expires_at: now() })
      }
      bench.network.answer = () => 204
      const workers = [bench.worker(), bench.worker(), bench.worker()]
      await Promise.all(workers.flatMap((worker) => Array.from({ length: 10 }, () => worker.tick(60_000))))
      const ids = bench.network.sent.map(({ headers }) => headers['webhook-id'])
      expect(ids).toHaveLength(183)
      expect(new Set(ids).size).toBe(183)
      const counts = workers.map((worker) => worker.takeCounts())
      const sum = (of: string) => counts.reduce((total, count) => total + (count.get(of) ?? 0), 0)
      expect([sum('schedules.fired'), sum('checkpoints.rejected'), sum('checkpoints.callbacks')]).toEqual([
        180, 3, 3,
      ])
      for (const { tenant_id } of callers) expect(await bench.jobs(tenant_id)).toEqual([])
      expect(bench.errors).toEqual([])
    })

    test('of one destination start as it answers: 1, 2, 4, 8, then 12 at a time', async () => {
      await manySchedules(bench, await bench.tenant(), 60)
      const worker = bench.worker()
      await bench.dispatch(worker)
      const in_flight: number[] = []
      while (bench.network.held.length > 0) {
        in_flight.push(bench.network.held.length)
        await bench.settle(200)
      }
      expect(in_flight).toEqual([1, 2, 4, 8, 12, 12, 12, 9])
    })

    test('of receivers that never answer hold one permit each, and delay nobody else', async () => {
      const dead = await bench.tenant()
      await manySchedules(bench, dead, 1_100, (i) => ({
        ...{ callback_url: `http://dead-${i % 200}.test/`, fire_at: now() - 60_000 },
      }))
      const worker = bench.worker()
      await bench.dispatch(worker)
      expect(bench.network.held).toHaveLength(200)
      for (let i = 0; i < 50; i++) {
        await schedule(bench, await bench.tenant(), { callback_url: `http://healthy-${i}.test/` })
      }
      bench.network.answer = ({ url }) => (url.startsWith('http://healthy') ? 200 : null)
      bench.clock.advance(100)
      await bench.dispatch(worker) // one look, which goes round all 51 tenants
      const served = urls(bench.network.sent).filter((url) => url.startsWith('http://healthy'))
      expect(new Set(served).size).toBe(50)
      expect(bench.network.held).toHaveLength(200)
    })
  })

  describe('of one tenant that fills the node', () => {
    test("starts another tenant's at once that comes in meanwhile", async () => {
      await manySchedules(bench, await bench.tenant(), 1_000, (i) => ({
        callback_url: `http://many-${i % 500}.test/`,
      }))
      const worker = bench.worker()
      await bench.dispatch(worker)
      expect(bench.network.held).toHaveLength(node_max - reserve)
      await schedule(bench, await bench.tenant(), { callback_url: 'http://other.test/' })
      await worker.dispatchNew() // as the timer does for a job that was enqueued
      await bench.db.quiet()
      expect(urls(bench.network.sent.slice(node_max - reserve))).toEqual(['http://other.test/'])
    })

    test('leaves its permits, as attempts end, to another one until both have their fair share', async () => {
      const silent = (who: string) =>
        bench
          .tenant()
          .then((caller) =>
            manySchedules(bench, caller, 500, (i) => ({ callback_url: `http://${who}-${i}.test/` })),
          )
      const heldBy = (who: string) =>
        bench.network.held.filter(({ url }) => url.startsWith(`http://${who}-`)).length
      await silent('one')
      const worker = bench.worker()
      await bench.dispatch(worker)
      await silent('two')
      await worker.dispatchNew()
      await bench.db.quiet()
      expect([heldBy('one'), heldBy('two')]).toEqual([256, 7])
      for (let ended = 0; ended < 256; ended += 16) {
        const held = bench.network.held.filter(({ url }) => url.startsWith('http://one-'))
        await bench.settle('timeout', held.slice(0, 16))
      }
      // Those that end together are dealt out one each.
      expect(heldBy('one') + heldBy('two')).toBe(256)
      expect(Math.abs(heldBy('one') - heldBy('two'))).toBeLessThanOrEqual(16)
    })
  })

  describe('a permit is released', () => {
    /** How many schedules of one tenant and receiver are served at once when all places are free. */
    async function placesLeft(worker: JobWorker, caller: AgentCaller): Promise<number> {
      await manySchedules(bench, caller, 60)
      bench.clock.advance(100)
      let most = 0
      await bench.dispatch(worker)
      while (bench.network.held.length > 0) {
        most = Math.max(most, bench.network.held.length)
        await bench.settle(200)
      }
      return most
    }

    test('also when the receiver was changed just before it was called', async () => {
      const caller = await bench.tenant()
      const worker = bench.worker()
      await manySchedules(bench, caller, 2)
      await bench.dispatch(worker)
      const [first] = bench.network.held
      const rows = await bench.jobs(caller.tenant_id)
      const waiting = rows.find(({ event_id }) => event_id !== first!.headers['webhook-id'])!.source_id
      const callback_url = 'http://new.test/x'
      await schedules.update(bench.db, caller, bench.dependencies, waiting, { callback_url })
      await bench.settle(200)
      await bench.drain(200)
      expect(urls(bench.network.sent)).toEqual([`${hook}/path`, callback_url])
      expect(bench.errors).toEqual([])
      expect(await placesLeft(worker, caller)).toBe(12)
    })

    test('also when the result cannot be written; the work is done again under the same webhook-id', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      const worker = bench.worker()
      await bench.dispatch(worker)
      bench.db.failing.add('schedules.fired')
      // A refusal that lasts as long as the lease does. Before it the lease holds, or the job would be leased again.
      bench.db.onFailing = () => bench.clock.advance(lease_ms)
      await bench.settle(200)
      await until(() => bench.errors.length > 0)
      expect(await read(caller, id)).toMatchObject({ status: 'pending' })
      bench.db.failing.clear()
      await bench.dispatch(worker)
      await bench.drain(200)
      expect(await read(caller, id)).toMatchObject({ status: 'fired', attempts: 2 })
      const ids = bench.network.sent.map(({ headers }) => headers['webhook-id'])
      expect(ids).toEqual([ids[0]!, ids[0]!])
      expect(await placesLeft(worker, caller)).toBe(12)
    })

    test('also when the lease is refused', async () => {
      const caller = await bench.tenant()
      await manySchedules(bench, caller, 20)
      const worker = bench.worker()
      await bench.dispatch(worker)
      await bench.write('update jobs set next_at = next_at + 60000 where lease_until = 0')
      await bench.drain(200)
      await bench.write('delete from jobs')
      expect(await placesLeft(worker, caller)).toBe(12)
    })
  })

  describe('a lease that is too old to send under', () => {
    /** The event loop stands still between the lease and the attempt. */
    function stallOnce(wait_ms: number): void {
      let stalls = 1
      bench.db.onRead = (name) => {
        if (name === 'schedules.deliverable' && stalls-- > 0) bench.clock.advance(wait_ms)
      }
    }

    const waits: [what: string, wait_ms: number, leases: number][] = [
      ['15 s: it is sent', 15_000, 1],
      ['more than 15 s: it is released, and leased again', 15_001, 2],
    ]
    test.each(waits)('after %s', async (_, wait_ms, leases) => {
      const caller = await bench.tenant()
      await schedule(bench, caller)
      stallOnce(wait_ms)
      await bench.dispatch(bench.worker())
      expect(bench.network.sent.map(({ headers }) => headers['x-waystation-attempt'])).toEqual(['1'])
      expect(await bench.jobs(caller.tenant_id)).toEqual([
        expect.objectContaining({ fence: leases, attempts: 1 }),
      ])
    })

    test('does not count as an attempt: the retries count from the one that was sent', async () => {
      const caller = await bench.tenant()
      await schedule(bench, caller)
      stallOnce(16_000)
      await bench.dispatch(bench.worker())
      const first_attempt_at = now()
      await bench.settle(500)
      expect(await bench.jobs(caller.tenant_id)).toEqual([
        expect.objectContaining({ attempts: 1, next_at: first_attempt_at + 30_000 }),
      ])
    })
  })

  describe('of a tenant that is pending deletion', () => {
    test('is paused; what fell due meanwhile runs once it is restored', async () => {
      const caller = await bench.tenant()
      const admin = { ...caller, kind: 'admin' as const }
      const { id } = await schedule(bench, caller, { fire_at: now() + 1_000 })
      const waiting = await checkpoint(bench, caller, { expires_at: now() + 1_000 })
      await tenants.remove(bench.db, bench.dependencies, admin, caller.tenant_id)
      bench.clock.advance(60_000)
      const worker = bench.worker()
      await bench.dispatch(worker)
      expect(bench.network.sent).toEqual([])
      expect(await readCheckpoint(caller, waiting.id)).toMatchObject({ status: 'pending' })
      await tenants.restore(bench.db, bench.dependencies, admin, caller.tenant_id)
      expect(bench.woken).toContain(now())
      bench.network.answer = () => 204
      await bench.dispatch(worker)
      expect(await read(caller, id)).toMatchObject({ status: 'fired' })
      expect(await readCheckpoint(caller, waiting.id)).toMatchObject({ status: 'rejected' })
    })

    test('ends what is in flight, and retries nothing until it is restored', async () => {
      const caller = await bench.tenant()
      const { id } = await schedule(bench, caller)
      const worker = bench.worker()
      await bench.dispatch(worker)
      const admin = { ...caller, kind: 'admin' as const }
      await tenants.remove(bench.db, bench.dependencies, admin, caller.tenant_id)
      await bench.settle(500)
      bench.clock.advance(60_000)
      await bench.dispatch(worker)
      expect(bench.network.sent).toHaveLength(1)
      expect(await read(caller, id)).toMatchObject({ status: 'pending', attempts: 1 })
    })
  })

  test('that was started ends before the worker has stopped; nothing more is started', async () => {
    const caller = await bench.tenant()
    await manySchedules(bench, caller, 5)
    const worker = bench.worker()
    await bench.dispatch(worker)
    let stopped = false
    const stopping = worker.stop().then(() => {
      stopped = true
    })
    await bench.db.quiet()
    expect(stopped).toBe(false)
    await bench.settle(204)
    await stopping
    await bench.dispatch(worker)
    expect(bench.network.sent).toHaveLength(1)
    expect(await bench.jobs(caller.tenant_id)).toHaveLength(4)
  })
})
