// A node that starts while the rotation of SECRET_KEY ends.

import { expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import type { Db } from '../db/db.ts'
import { rotateKey, secretsOf } from './service.ts'
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
      const sealed = secrets.seal('x', 'text')
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
