import { beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import type { ApiError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { hashKey } from '../base/keys.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { type Db, type Tx, upkeep } from '../db/db.ts'
import * as quotas from '../quotas/service.ts'
import { frozenDeadlines } from '../tenants/service.ts'
import * as releases from './release-service.ts'
import * as store from './store.ts'
import { expired_max } from './store.ts'
import { sweep } from './sweep.ts'
import { releaseExpired, sweepEnded } from './sweep-store.ts'

forEachDatabase('Dead letters', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  const write = <T>(work: (tx: Tx) => T | Promise<T>) => bench.db.write(work)

  async function agent(): Promise<AgentCaller> {
    return { ...(await bench.tenant()), kind: 'agent', agent_id: 'agent-one' }
  }

  async function item(tenant_id: string, payload = '1', error = ''): Promise<string> {
    bench.clock.advance(1) // ids made in one millisecond are in no order
    const id = newId('dlq', bench.clock.now())
    const origin = { workflow_id: null, source: 'agent' as const, source_id: null, agent_id: 'agent-one' }
    await write((tx) => store.insert(tx, tenant_id, { id, payload, error, ...origin, lock_seconds: 300 }))
    return id
  }

  const idsOf = async (tenant_id: string) =>
    (
      await bench.rows<{ id: string }>('select id from dlq_items where tenant_id = :tenant_id order by id', {
        tenant_id,
      })
    ).map(({ id }) => id)

  /** Does `change` right before the verb's own statement, as a request on another node would. */
  function changing(change: (tx: Tx) => unknown): Db {
    const changed = (tx: Tx): Tx => {
      let done = false
      const one = async (...[statement, params]: Parameters<Tx['one']>) => {
        const moves = ['dlq.release', 'dlq.archive', 'dlq.resolve'].includes(statement.name)
        if (moves && !done) {
          done = true
          await change(tx)
        }
        return tx.one(statement, params)
      }
      return { ...bound(tx), one } as Tx
    }
    return { write: <T>(_: string, work: (tx: Tx) => Promise<T>) => write((tx) => work(changed(tx))) } as Db
  }

  const bound = (tx: Tx) => ({
    now: tx.now,
    run: tx.run.bind(tx),
    all: tx.all.bind(tx),
    afterCommit: tx.afterCommit.bind(tx),
    changed: tx.changed.bind(tx),
  })

  const claim = (tx: Tx, tenant_id: string, id: string, agent_id: string, lock_token: string) =>
    store.claim(tx, tenant_id, id, { agent_id, lock_token_hash: hashKey(lock_token), locked_until: null })

  type Change = (tx: Tx, tenant_id: string, id: string) => unknown
  const release: Change = (tx, tenant_id, id) =>
    store.release(tx, tenant_id, id, {
      ...{ agent_id: 'agent-one', lock_token_hash: hashKey('lck_first') },
      at: tx.now,
    })
  const claimedBy =
    (agent_id: string): Change =>
    async (tx, tenant_id, id) => {
      await release(tx, tenant_id, id)
      await claim(tx, tenant_id, id, agent_id, 'lck_second')
    }
  const resolved: Change = (tx, tenant_id, id) =>
    store.resolve(tx, tenant_id, { id, status: 'claimed', claims: 1 }, tx.now)

  const races: [what: string, change: Change, token: string | undefined, expected: string][] = [
    ['was released', release, undefined, 'INVALID_STATE failed'],
    ['was released, by token', release, 'lck_first', 'INVALID_STATE failed'],
    ['was resolved', resolved, undefined, 'INVALID_STATE resolved'],
    ['was removed', (tx, tenant_id, id) => store.remove(tx, tenant_id, id), undefined, 'DLQ_NOT_FOUND'],
    ['went to another agent', claimedBy('agent-two'), undefined, 'LOCK_NOT_HELD'],
    ['was claimed again, by the old token', claimedBy('agent-one'), 'lck_first', 'LOCK_NOT_HELD'],
    ['was claimed again by the same agent', claimedBy('agent-one'), undefined, 'done'],
  ]
  const verbs = [
    ['release', releases.release],
    ['fail', releases.fail],
  ] as const
  test.each(verbs.flatMap(([name, verb]) => races.map((race) => [name, ...race, verb] as const)))(
    '%s of an item that %s at that very moment is judged by what it is then',
    async (_name, _what, change, token, expected, verb) => {
      const caller = await agent()
      const { tenant_id } = caller
      const id = await item(tenant_id)
      await write((tx) => quotas.add(tx, tenant_id, 'dlq_items', 1))
      await write((tx) => claim(tx, tenant_id, id, 'agent-one', 'lck_first'))
      const db = changing((tx) => change(tx, tenant_id, id))
      const outcome = await verb(db, caller, id, token).then(
        () => 'done',
        (error: ApiError) => [error.code, error.details?.status].filter(Boolean).join(' '),
      )
      expect(outcome).toBe(expected)
    },
  )

  const typesOf = async (tenant_id: string) => {
    const rows = await bench.rows<{ type: string }>(
      'select type from events where tenant_id = :tenant_id order by position',
      { tenant_id },
    )
    return rows.map(({ type }) => type)
  }

  const expired_then: [what: string, change: Change, expected: string[]][] = [
    ['is as it was', () => {}, ['dlq.lock_expired', 'dlq.resolved']],
    [
      'was extended at that very moment, by a node whose request began earlier',
      (tx, tenant_id, id) => {
        const hold = { agent_id: 'agent-one', lock_token_hash: hashKey('lck_first'), at: tx.now - 1 }
        const earlier = { ...bound(tx), one: tx.one.bind(tx), now: tx.now - 1 } as Tx
        return store.extend(earlier, tenant_id, id, hold, null)
      },
      ['dlq.resolved'],
    ],
  ]
  test.each(expired_then)(
    'a resolve of an item whose expired lock %s reports no end of a lock that holds',
    async (_, change, expected) => {
      const caller = await agent()
      const { tenant_id } = caller
      const id = await item(tenant_id)
      await write((tx) => quotas.add(tx, tenant_id, 'dlq_items', 1))
      await write((tx) => claim(tx, tenant_id, id, 'agent-one', 'lck_first'))
      bench.clock.advance(300_000)
      const db = changing((tx) => change(tx, tenant_id, id))
      expect((await releases.resolve(db, caller, id, undefined)).status).toBe('resolved')
      expect(await typesOf(tenant_id)).toEqual(expected)
    },
  )

  type Sweep = (tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) => unknown
  const sweeps: [what: string, prepare: string, sweep: Sweep, left: string][] = [
    [
      'locks that have run out',
      "update dlq_items set status = 'claimed', locked_until = 5 where tenant_id = :tenant_id",
      async (tx, tenant_id, ...bounds) => {
        const judged = frozenDeadlines(tx.now, null, 'dlq_items')
        return (await releaseExpired(tx, tenant_id, judged, ...bounds)).released.length
      },
      "status = 'claimed'",
    ],
    [
      'items that ended',
      "update dlq_items set status = 'archived', updated_at = 5 where tenant_id = :tenant_id",
      async (tx, tenant_id, ...bounds) => (await sweepEnded(tx, tenant_id, 5, ...bounds)).length,
      "status = 'archived'",
    ],
  ]
  const bounds: [rows_max: number, bytes_max: number, taken: number][] = [
    [500, 1, 1],
    [500, 100, 1],
    [500, 101, 2],
    [500, 200, 2],
    [500, 201, 3],
    [2, 1_000, 2],
    [3, 1_000, 3],
  ]
  test.each(sweeps.flatMap(([what, ...how]) => bounds.map((bound) => [what, ...bound, ...how] as const)))(
    'a sweep of %s that takes %i rows and %i bytes takes %i of three, of its tenant alone',
    async (...row) => {
      const [, rows_max, bytes_max, taken, prepare, sweep, left] = row
      const tenants = [await agent(), await agent()]
      for (const { tenant_id } of tenants) {
        for (let i = 0; i < 3; i++) await item(tenant_id, 'ü'.repeat(25), 'e'.repeat(50)) // 100 bytes
        await bench.write(prepare, { tenant_id })
      }
      const [{ tenant_id }, other] = tenants as [AgentCaller, AgentCaller]
      expect(await write((tx) => sweep(tx, tenant_id, rows_max, bytes_max) as Promise<number>)).toBe(taken)
      const leftOf = ({ tenant_id }: AgentCaller) =>
        bench.rows(`select id from dlq_items where tenant_id = :tenant_id and ${left}`, { tenant_id })
      expect(await leftOf({ ...other, tenant_id })).toHaveLength(3 - taken)
      expect(await leftOf(other)).toHaveLength(3)
    },
  )

  test('a sweep takes four megabytes of a tenant in a step, says that there is more, and goes on', async () => {
    const { tenant_id } = await agent()
    for (let i = 0; i < 6; i++) await item(tenant_id, 'x'.repeat(1_048_576))
    await bench.write(
      "update dlq_items set status = 'archived', updated_at = 5 where tenant_id = :tenant_id",
      { tenant_id },
    )
    const now = bench.clock.now()
    const steps = []
    for (let step = 0; step < 3; step++) {
      const { more } = await sweep(bench.db, now)
      steps.push([more, (await idsOf(tenant_id)).length])
    }
    expect(steps).toEqual([
      [true, 2],
      [false, 0],
      [false, 0],
    ])
  })

  test.each([
    [expired_max, 'the oldest', 0],
    [expired_max + 1, 'the oldest of those that ran out first', 1],
  ])('of %p locks that have run out, the oldest item last, the claim gets %s', async (count, _, place) => {
    const { tenant_id } = await agent()
    const ids = Array.from({ length: count }, (_, i) => `dlq_${1_000_000 + i}`)
    await bench.db.write(upkeep, async (tx) => {
      const origin = { workflow_id: null, source: 'agent' as const, source_id: null, agent_id: 'agent-one' }
      for (const [i, id] of ids.entries()) {
        await store.insert(tx, tenant_id, { id, payload: '1', error: '', ...origin, lock_seconds: 300 })
        const locked_until = tx.now + 2 * count - i
        await store.claim(tx, tenant_id, id, { agent_id: 'agent-one', lock_token_hash: 'h', locked_until })
      }
    })
    bench.clock.advance(2 * count)
    const oldest = await write((tx) =>
      store.claimOldest(tx, tenant_id, { agent_id: 'agent-one', lock_token_hash: 'h', locked_until: null }),
    )
    expect(oldest?.id).toBe(ids[place]!)
  })
})
