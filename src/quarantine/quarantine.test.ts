// A database that was restored, as a node finds it.

import { expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { iso } from '../base/clock.ts'
import * as quarantine from './service.ts'

forEachDatabase('Quarantine', (databases) => {
  test('a node does not serve a copy that is not whole, holds a whole one, and learns of its release', async () => {
    const { db, clock } = await databases.open()
    const never = async () => false
    const node = new quarantine.Quarantine()
    await node.begin(db)
    expect([node.since, await node.hasEnded(db)]).toEqual([null, false])

    const since = clock.now()
    await quarantine.enter(db, since - 2, never)
    await expect(quarantine.enter(db, null, never)).rejects.toThrow('a restore into this database has not')
    await quarantine.enter(db, since - 1, async () => true)
    await expect(node.begin(db)).rejects.toThrow('a restore into this database has not ended')
    expect(await db.write((tx) => quarantine.end(tx))).toBe(false)

    await db.write((tx) => quarantine.complete(tx))
    await node.begin(db)
    expect([node.since, await node.hasEnded(db)]).toEqual([since, false])
    expect(await quarantine.find(db)).toEqual({ since, backup_at: since - 1, is_whole: 1 })
    await expect(quarantine.enter(db, null, never)).rejects.toThrow(`in quarantine since ${iso(since)}`)

    expect(await db.write((tx) => quarantine.end(tx))).toBe(true)
    expect([await node.hasEnded(db), node.since, await node.hasEnded(db)]).toEqual([true, null, false])
  })
})

test('what could happen twice is refused while it holds', async () => {
  const now = 1_800_000_000_000
  expect(() => quarantine.requireReleased({ since: null })).not.toThrow()
  expect(() => quarantine.requireReleased({ since: now })).toThrow(
    expect.objectContaining({
      ...{ code: 'QUARANTINED', status: 503, retry_after_seconds: 30 },
      details: { since: iso(now) },
    }),
  )
})
