import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'

import { onPostgres, type TestDatabases } from '../../test/support/databases.ts'
import { Bench, kindOf } from '../../test/support/job-bench.ts'
import { approve, attemptsOf, checkpoint, schedule } from '../../test/support/job-features.ts'

import { count_lock_waits, dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { requested } from '../../test/support/requested.ts'
import type { ApiError } from '../base/errors.ts'
import { callback_job } from '../checkpoints/jobs.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { service_cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import { openDb } from '../db/open.ts'
import { redrive } from '../dlq/redrive.ts'
import { forward_job } from '../inbox/jobs.ts'
import * as receiving from '../inbox/receive.ts'
import * as inboxes from '../inbox/service.ts'
import { schedule_job } from '../schedules/jobs.ts'
import { retry } from '../schedules/repeat.ts'
import * as addresses from '../subscriptions/address-store.ts'
import { subscription_job } from '../subscriptions/jobs.ts'
import { confirm, unsubscribe } from '../subscriptions/mail-service.ts'
import * as subscriptions from '../subscriptions/service.ts'
import { addressHash, openToken } from '../subscriptions/targets.ts'
import { type AttemptResult, type LeasedJob, lease_ms } from './job.ts'
import * as store from './store.ts'

/** For a bench on a PostgreSQL that is there already. */
function onePostgres(url: string): TestDatabases {
  return {
    engine: 'postgres',
    newUrl: async () => url,
    newUrlWithTables: async () => url,
    async open(clock = new TestClock()) {
      const onFatal = (error: unknown) => {
        throw error
      }
      return { db: await openDb(url, { clock, exclusive: true, onFatal }), clock, url }
    },
  }
}

/** A transaction that waits after this statement, or after each. */
function pausedAfter(tx: Tx, name: string | null, wait: () => Promise<unknown>): Tx {
  const paused = async <T>(statement: { name: string }, answer: Promise<T> | T): Promise<T> => {
    const answered = await answer
    if (name === null || statement.name === name) await wait()
    return answered
  }
  return {
    now: tx.now,
    one: (statement, params) => paused(statement, tx.one(statement, params)),
    all: (statement, params) => paused(statement, tx.all(statement, params)),
    run: (statement, params) => paused(statement, tx.run(statement, params)),
    afterCommit: (effect) => tx.afterCommit(effect),
    changed: (key) => tx.changed(key),
    stores: (tenant_id, bytes) => tx.stores(tenant_id, bytes),
    stored: (tenant_id, counted) => tx.stored(tenant_id, counted),
    disk_full: tx.disk_full,
    beside: tx.beside,
  }
}

/** Resolves when so many transactions of this database wait for what others hold, or once `over` says so. */
async function lockWaited(bench: Bench, over = () => false, count = 1): Promise<void> {
  while (!over() && (await bench.rows<{ n: number }>(count_lock_waits))[0]!.n < count);
}

onPostgres('On PostgreSQL no deadlock comes of', () => {
  let bench: Bench
  let database_url: string
  beforeAll(async () => {
    database_url = await newPostgresDatabase()
    bench = await Bench.open(onePostgres(database_url))
  })
  afterEach(async () => {
    bench.db.onStatement(null)
    await bench.clear()
  })
  afterAll(async () => {
    await bench.db.close()
    await dropPostgresDatabase(database_url)
  })

  const inboxIn = (tx: Tx, caller: AgentCaller, ttl_seconds = 86_400) =>
    inboxes.create(tx, caller, bench.dependencies, {
      ...{ label: '', forward_url: 'http://receiver.test/', workflow_id: null, ttl_seconds },
    })

  /** A full inbox, all of whose messages wait to be sent on. */
  async function fullInbox() {
    const caller = await bench.tenant('free')
    const { token } = await bench.db.write((tx) => inboxIn(tx, caller))
    const bytes = Buffer.from('x')
    const request = {
      request_id: 'req_of_a_test',
      method: 'POST',
      headers: new Headers(),
      bytes,
      url: '/hook/t',
      address: '192.0.2.1',
    }
    const receive = () => receiving.receive(bench.db, bench.dependencies, token, request)
    for (let n = 0; n < 100; n++) await receive()
    return { caller, receive }
  }

  async function leaseOf(
    { tenant_id }: AgentCaller,
    kind: LeasedJob['kind'],
    id: string,
  ): Promise<LeasedJob> {
    const [leased] = await bench.db.write((tx) =>
      store.lease(tx, tenant_id, kindOf(kind), [id], tx.now + lease_ms),
    )
    return leased!
  }

  /** How often each of these statements has run since. A transaction that lost to a deadlock runs again. */
  function counting(...names: string[]): () => Record<string, number> {
    const counts = Object.fromEntries(names.map((name) => [name, 0]))
    bench.db.onStatement((name) => {
      if (name in counts) counts[name]! += 1
    })
    return () => counts
  }

  const delivered = (): AttemptResult => ({
    ...{ ok: true, status_code: 204, error: null, started_at: bench.clock.now(), duration_ms: 1 },
  })

  test('a message that drops another, and the end of the forward of that one', async () => {
    const { caller, receive } = await fullInbox()
    const ids = (await bench.jobs(caller.tenant_id)).map(({ source_id }) => source_id)
    const leased = await leaseOf(caller, 'forward', ids.find((id) => id.endsWith('/1'))!)
    const counts = counting('jobs.complete', 'inbox.forwarded', 'inbox.receive', 'inbox.drop')
    const paused = Promise.withResolvers<void>()
    const settling = bench.db.write((tx) => {
      const pausing = pausedAfter(tx, 'jobs.complete', () => {
        paused.resolve()
        return lockWaited(bench)
      })
      return forward_job.settle(pausing, bench.dependencies, leased, delivered())
    })
    await paused.promise
    await Promise.all([settling, receive()])
    expect(counts()).toEqual({
      ...{ 'jobs.complete': 1, 'inbox.forwarded': 1, 'inbox.receive': 1, 'inbox.drop': 1 },
    })
  })

  test('senders to a full inbox while its forwards end', async () => {
    const { receive } = await fullInbox()
    bench.network.answer = () => 204
    const worker = bench.worker()
    const counts = counting('inbox.receive')
    const sender = async () => {
      for (let n = 0; n < 25; n++) {
        await receive()
        void worker.dispatchNew()
      }
    }
    await Promise.all(Array.from({ length: 16 }, sender))
    await bench.dispatch(worker)
    expect(bench.network.sent.length).toBeGreaterThan(0)
    expect(counts()).toEqual({ 'inbox.receive': 400 })
    expect(bench.errors).toEqual([])
  })

  test('an inbox past the last place, and the deletion of one that has expired', async () => {
    const caller = await bench.tenant('free')
    const expired = await bench.db.write((tx) => inboxIn(tx, caller, 1))
    await bench.db.write((tx) => inboxIn(tx, caller))
    bench.clock.advance(1_000)
    const counts = counting('inbox.insert', 'inbox.uncount')
    const [paused, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const third = bench.db.write((tx) => {
      const pausing = pausedAfter(tx, 'quotas.reserve', () => {
        paused.resolve()
        return released.promise
      })
      return inboxIn(pausing, caller)
    })
    await paused.promise
    const fourth = bench.db.write((tx) => inboxIn(tx, caller)) // finds one place, which the third takes
    await lockWaited(bench)
    const deleting = inboxes.remove(bench.db, caller, bench.dependencies, expired.id)
    await lockWaited(bench, undefined, 2)
    released.resolve()
    await Promise.all([third, fourth, deleting])
    expect(counts()).toEqual({ 'inbox.insert': 2, 'inbox.uncount': 1 })
  })

  test('a redrive of a dead letter, and a retry of the schedule that left it', async () => {
    const caller = await bench.tenant()
    const { id } = await schedule(bench, caller, { dlq_on_failure: 1 })
    const leased = await leaseOf(caller, 'schedule', id)
    const gone = { ...delivered(), ok: false, status_code: 410, error: 'status' }
    await bench.db.write((tx) => schedule_job.settle(tx, bench.dependencies, leased, gone))
    const [{ id: letter }] = (await bench.rows<{ id: string }>('select id from dlq_items')) as [
      { id: string },
    ]
    const counts = counting('dlq.find_locked', 'schedules.repeat', 'schedules.insert')
    const paused = Promise.withResolvers<void>()
    const redriving = bench.db.write((tx) => {
      const pausing = pausedAfter(tx, 'dlq.find_locked', () => {
        paused.resolve()
        return lockWaited(bench)
      })
      return redrive(pausing, caller, bench.dependencies, { id: letter, cause: service_cause })
    })
    await paused.promise
    const retrying = bench.db.write((tx) => retry(tx, caller, bench.dependencies, id))
    const refused = await retrying.catch((error: ApiError) => error)
    const { redriven_as } = await redriving
    expect(refused).toMatchObject({
      code: 'INVALID_STATE',
      details: { status: 'failed', retried_as: redriven_as },
    })
    expect(counts()).toEqual({ 'dlq.find_locked': 2, 'schedules.repeat': 1, 'schedules.insert': 1 })
  })

  test.each([
    ['confirms', confirm, 'subscriptions.confirm'],
    ['unsubscribes', unsubscribe, 'subscriptions.unsubscribe'],
  ])('a holder who %s, and the end of an attempt whose node died', async (_, say, said) => {
    const { tenant_id, plan, status } = await bench.tenant()
    const { db, dependencies } = bench
    const { secrets } = dependencies.keys
    const to = 'holder@example.com'
    const { id } = await db.write((tx) =>
      subscriptions.create(tx, { kind: 'admin', tenant_id, plan, status, ...requested }, dependencies, {
        ...{ target: to, format: 'mail', name: '', types: [], workflow_id: null, paused: false },
      }),
    )
    await dependencies.journal.number(tenant_id)
    const address = await addresses.find(db, tenant_id, addressHash(secrets, tenant_id, to))
    const token = openToken(secrets, tenant_id, address!)
    const [leased] = await bench.lease({ tenant_id, kind: 'subscription', source_id: id }, lease_ms)
    const interrupted = { ...delivered(), ok: false, status_code: null, error: 'interrupted' }
    const counts = counting('jobs.repeat', 'subscriptions.settle', said)
    const paused = Promise.withResolvers<void>()
    const settling = db.write((tx) => {
      const pausing = pausedAfter(tx, 'jobs.repeat', () => {
        paused.resolve()
        return lockWaited(bench)
      })
      return subscription_job.settle(pausing, dependencies, leased!, interrupted)
    })
    await paused.promise
    await Promise.all([settling, say(db, dependencies, { token, request_id: 'req_of_a_test' })])
    expect(counts()).toEqual({ 'jobs.repeat': 1, 'subscriptions.settle': 1, [said]: 1 })
  })

  type Settle = (tx: Tx, leased: LeasedJob) => Promise<string | null>
  const late: [
    what: 'schedule' | 'callback',
    make: (caller: AgentCaller) => Promise<{ id: string }>,
    settle: Settle,
    settled: string,
  ][] = [
    [
      'schedule',
      (caller) => schedule(bench, caller),
      (tx, leased) => schedule_job.settle(tx, bench.dependencies, leased, delivered()),
      'schedules.fired',
    ],
    [
      'callback',
      async (caller) => {
        const made = await checkpoint(bench, caller)
        return approve(bench, caller, made.id)
      },
      (tx, leased) => callback_job.settle(tx, bench.dependencies, leased, delivered()),
      'checkpoints.callbacks',
    ],
  ]

  test.each(late)('a late result of a %s, and the lease after that', async (kind, make, settle, settled) => {
    const caller = await bench.tenant()
    const { id } = await make(caller)
    const leased = await leaseOf(caller, kind, id)
    bench.clock.advance(lease_ms)
    const counts = counting('jobs.complete', 'jobs.lease', 'jobs.log_attempt')
    const [paused, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const settling = bench.db.write((tx) => {
      let statements = 0
      const pausing = pausedAfter(tx, null, () => {
        if (statements++ > 0) return Promise.resolve()
        paused.resolve()
        return released.promise
      })
      return settle(pausing, leased)
    })
    await paused.promise
    let ended = false
    const leasing = bench.db
      .write((tx) => store.lease(tx, caller.tenant_id, kindOf(kind), [id], tx.now + lease_ms))
      .finally(() => {
        ended = true
      })
    await lockWaited(bench, () => ended)
    released.resolve()
    expect(await settling).toBe(settled)
    expect(await leasing).toEqual([])
    expect(counts()).toEqual({ 'jobs.complete': 1, 'jobs.lease': 1, 'jobs.log_attempt': 1 })
  })

  test.each(late)('a new lease of a %s, and the late result of the lease before it', async (...row) => {
    const [kind, make, settle] = row
    const caller = await bench.tenant()
    const { id } = await make(caller)
    const leased = await leaseOf(caller, kind, id)
    bench.clock.advance(lease_ms)
    const counts = counting('jobs.complete', 'jobs.lease', 'jobs.log_attempt')
    const paused = Promise.withResolvers<void>()
    const leasing = bench.db.write((tx) => {
      const pausing = pausedAfter(tx, 'jobs.lease', () => {
        paused.resolve()
        return lockWaited(bench)
      })
      return store.lease(pausing, caller.tenant_id, kindOf(kind), [id], tx.now + lease_ms)
    })
    await paused.promise
    expect(await bench.db.write((tx) => settle(tx, leased))).toBeNull()
    expect(await leasing).toHaveLength(1)
    expect(counts()).toEqual({ 'jobs.complete': 1, 'jobs.lease': 1, 'jobs.log_attempt': 2 })
    expect(await attemptsOf(bench, id)).toEqual([{ attempt: 1, error: null, status_code: 204 }])
  })
})
