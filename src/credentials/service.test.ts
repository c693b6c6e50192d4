import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { becomes } from '../../test/support/patience.ts'
import * as agents from '../agents/service.ts'
import * as approvalKeys from '../approval-keys/service.ts'
import { hashKey } from '../base/keys.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Db, Tx } from '../db/db.ts'
import { purge as purgeLookups } from '../lookups/store.ts'
import * as tenants from '../tenants/service.ts'
import * as credentials from './service.ts'
import { purge } from './store.ts'

forEachDatabase('A key that ends', (databases) => {
  let bench: Bench
  let caller: AdminCaller
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  beforeEach(async () => {
    bench.db.failing.clear()
    caller = { ...(await bench.tenant()), kind: 'admin' }
  })

  const cache = () => bench.dependencies.keys.cache
  const isKnown = async (key: string) =>
    (await credentials.identify(bench.db, cache(), key, bench.clock.now())) !== null
  const lookupsOf = async (key: string) =>
    (await bench.rows('select value from tenant_lookups where value = :hash', { hash: hashKey(key) })).length

  const newAgent = () =>
    bench.db.write((tx) =>
      agents.create(tx, caller, bench.dependencies.plans, {
        ...{ agent_id: 'worker', description: null, callback_base_url: null },
      }),
    )
  const newApprovalKey = async () => {
    const { row, key } = await bench.db.write((tx) =>
      approvalKeys.create(tx, caller, bench.dependencies.plans, {
        checkpoint_id: null,
        label: null,
        expires_at: null,
      }),
    )
    return { id: row.approval_key_id, key }
  }
  const rotateAgent = (grace_seconds: number) =>
    agents.rotateKey(bench.db, cache(), caller, { agent_id: 'worker', grace_seconds })

  test('an approval key is identified at once while its use cannot be written, which is tried once', async () => {
    const { key } = await newApprovalKey()
    let [begun, release] = [0, () => {}]
    const stalled = new Promise<void>((resolve) => {
      release = resolve
    })
    const db = {
      one: (...given: Parameters<Db['one']>) => bench.db.one(...given),
      async write(turn: string, work: (tx: Tx) => unknown) {
        begun += 1
        await stalled
        return bench.db.write(turn, work)
      },
    } as unknown as Db
    const found = () => credentials.identify(db, cache(), key, bench.clock.now())
    for (const holder of await Promise.all([found(), found(), found()]))
      expect(holder).toMatchObject({ kind: 'approval' })
    expect(begun).toBe(1)
    release()
    const used = () =>
      bench.rows<{ last_used_at: number | null }>(
        'select last_used_at from approval_keys where tenant_id = :tenant_id',
        { tenant_id: caller.tenant_id },
      )
    await becomes(async () => (await used()).map((row) => Number(row.last_used_at)), [bench.clock.now()])
  })

  /** The ways in which a key ends; each returns the key. */
  const ends: [what: string, end: () => Promise<string>][] = [
    [
      'an agent that is removed',
      async () => {
        const key = await newAgent()
        await agents.remove(bench.db, cache(), caller, 'worker')
        return key
      },
    ],
    [
      'an agent whose key is rotated',
      async () => {
        const key = await newAgent()
        expect(await isKnown((await rotateAgent(0)).key)).toBe(true)
        return key
      },
    ],
    [
      'an agent whose key is rotated again within its grace',
      async () => {
        const key = await newAgent()
        const second = await rotateAgent(600)
        expect(await isKnown(key)).toBe(true)
        await rotateAgent(600)
        expect(await isKnown(second.key)).toBe(true)
        return key
      },
    ],
    [
      'an approval key that is revoked',
      async () => {
        const { id, key } = await newApprovalKey()
        await approvalKeys.remove(bench.db, cache(), caller, id)
        return key
      },
    ],
    [
      'a tenant whose admin key is rotated',
      async () => {
        const rotate = () => tenants.rotateKey(bench.db, bench.dependencies, caller, caller.tenant_id, 0)
        const { key } = await rotate()
        await rotate()
        return key
      },
    ],
  ]

  test.each(ends)('of %s leaves nothing that leads to it', async (_, end) => {
    const key = await end()
    expect([await isKnown(key), await lookupsOf(key)]).toEqual([false, 0])
  })

  test.each(ends)('of %s has ended although what leads to it could not be removed', async (_, end) => {
    bench.db.failing.add('lookups.remove')
    const key = await end()
    expect([await isKnown(key), await lookupsOf(key)]).toEqual([false, 1])
    expect(await bench.db.write((tx) => purge(tx, caller.tenant_id, 500))).toBeGreaterThan(0)
    await bench.db.write((tx) => purgeLookups(tx, caller.tenant_id, 500))
    expect(await lookupsOf(key)).toBe(0)
  })

  test('among all keys of a tenant is refused before its credential has ended as well', async () => {
    const { key } = await newApprovalKey()
    expect(await isKnown(key)).toBe(true)
    await bench.db.write((tx) => approvalKeys.endSome(tx, caller.tenant_id, 500))
    cache().clear(caller.tenant_id)
    // Without its row it would be bound to no checkpoint, and have no end.
    expect(await isKnown(key)).toBe(false)
  })

  test('has not ended when its transaction fails, and what leads to it is there', async () => {
    const key = await newAgent()
    bench.db.failing.add('quotas.release')
    await expect(agents.remove(bench.db, cache(), caller, 'worker')).rejects.toThrow('fails')
    expect([await isKnown(key), await lookupsOf(key)]).toEqual([true, 1])
  })
})
