// A node that starts while the rotation of SECRET_KEY ends.

import { expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { ApiError } from '../base/errors.ts'
import { type Db, unnamedAcrossTenants } from '../db/db.ts'
import { sealed_columns } from '../features.ts'
import { signingContext } from '../tenants/signing.ts'
import { rotateKey, secretsOf, secretsUnder } from './service.ts'
import * as store from './store.ts'

const before = { current: 'the key before the rotation', previous: null }
const both = { current: 'the key after the rotation', previous: before.current }
const swapped = { current: before.current, previous: both.current }

/** A database on which `work` is done right after the first look at the setting of this name. */
function interrupted(db: Db, name: string, work: () => Promise<unknown>): Db {
  let is_done = false
  const one: Db['one'] = async (statement, params) => {
    const row = await db.one(statement, params)
    if (!is_done && params.name === name) {
      is_done = true
      await work()
    }
    return row
  }
  return new Proxy(db, {
    get(target, property) {
      if (property === 'one') return one
      const value = Reflect.get(target, property)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

forEachDatabase('A rotation of SECRET_KEY that ends while a node starts', (databases) => {
  const finish = (db: Db) => rotateKey(db, both, [], () => [])

  test.each(['secret_key_check', 'secret_key_next', 'secret_key_retired'])(
    'has ended, and the node starts: behind its look at %s',
    async (name) => {
      const { db } = await databases.open()
      await secretsOf(db, before)
      await secretsOf(db, both)
      const secrets = await secretsOf(
        interrupted(db, name, () => finish(db)),
        both,
      )
      expect(await store.setting(db, 'secret_key_next')).toBeNull()
      const sealed = await db.write(async (tx) => (await secrets.sealerIn(tx)).seal('x', 'text'))
      expect((await secretsOf(db, { ...both, previous: null })).open('x', sealed)).toBe('text')
      expect(await finish(db)).toBe(0)
    },
  )

  test('has ended, and no node begins one back to the key that it has replaced', async () => {
    const { db } = await databases.open()
    await secretsOf(db, before)
    await secretsOf(db, both)
    await finish(db)
    await expect(secretsOf(db, swapped)).rejects.toThrow('SECRET_KEY: a rotation has replaced this key')
    await secretsOf(db, both)
    const third = { current: 'the key after another rotation', previous: both.current }
    await secretsOf(db, third)
    await rotateKey(db, third, [], () => [])
    await secretsOf(db, { ...third, previous: null })
  })
})

const tenant_id = 'ten_test'
const context = signingContext(tenant_id)
const ADD_TENANT = unnamedAcrossTenants(
  'test.add_tenant',
  `insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
   values (:tenant_id, 'test', 'test@example.com', 'free', 'active', :sealed, :now)`,
)
const SIGNING_SECRET = unnamedAcrossTenants<{ sealed: string }>(
  'test.signing_secret',
  'select signing_secret as sealed from tenants where tenant_id = :tenant_id',
)

forEachDatabase('A node that runs on while SECRET_KEY is rotated', (databases) => {
  const finish = (db: Db) => rotateKey(db, both, sealed_columns, () => [{ tenant_id }])
  const opensAlone = (sealed: string) => secretsUnder(both.current).open(context, sealed)

  test('seals with the old key until the rotation has ended, and with the new one from then on', async () => {
    const { db } = await databases.open()
    const first = await secretsOf(db, before)
    const waiting = await secretsOf(db, swapped) // step 1 of several nodes
    const next = await secretsOf(db, both)
    const sealedBy = (node: typeof first) =>
      db.write(async (tx) => (await node.sealerIn(tx)).seal(context, 'text'))
    for (const node of [first, waiting]) expect(next.open(context, await sealedBy(node))).toBe('text')
    expect(opensAlone(await sealedBy(next))).toBe('text')
    await finish(db)
    expect(opensAlone(await sealedBy(waiting))).toBe('text')
    expect(opensAlone(await sealedBy(next))).toBe('text')
    expect(waiting.open(context, await sealedBy(next))).toBe('text')
    const refused = await sealedBy(first).catch((error) => error) // it never had the new key
    expect(refused).toBeInstanceOf(ApiError)
    expect(refused).toMatchObject({
      ...{ code: 'UNAVAILABLE', status: 503, retry_after_seconds: 30 },
      details: { reason: 'secret_key_replaced' },
    })
  })

  test('leaves nothing under the old key that it was just writing when the rotation ended', async () => {
    const { db } = await databases.open()
    const first = await secretsOf(db, before)
    await secretsOf(db, both)
    const { promise: looked, resolve: hasLooked } = Promise.withResolvers<void>()
    const { promise: goes_on, resolve: goOn } = Promise.withResolvers<void>()
    const writing = db.write(async (tx) => {
      const sealer = await first.sealerIn(tx)
      hasLooked()
      await goes_on
      await tx.run(ADD_TENANT, { tenant_id, sealed: sealer.seal(context, 'text'), now: 0 })
    })
    await looked
    const finished = finish(db)
    await Promise.race([finished, becomesStuck(db)])
    goOn()
    await writing
    expect(await finished).toBeGreaterThan(0)
    expect(opensAlone((await db.one(SIGNING_SECRET, { tenant_id }))!.sealed)).toBe('text')
    expect(await finish(db)).toBe(0)
  })
})

/** Resolves when the end of the rotation has had its turn many times over. */
async function becomesStuck(db: Db): Promise<void> {
  for (let i = 0; i < 50; i++) await store.setting(db, 'secret_key_check')
}
