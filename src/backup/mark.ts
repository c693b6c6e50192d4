// The mark of a restored database: its journals go on in a new epoch, and it is whole.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Secrets } from '../contract/dependencies.ts'
import type { Db, Reader } from '../db/db.ts'
import * as quarantine from '../quarantine/service.ts'
import * as seal from '../seal/service.ts'
import * as tenants from '../tenants/service.ts'

const tenants_max = limit(
  'backup.marked_tenants',
  500,
  'rows',
  'Tenants in whose journals a restore leaves its mark in one transaction.',
)

export interface Restored {
  backup_at: Millis | null
  /** Of the journals, from now on. */
  epoch: number
  tenants: number
}

/** All rows of a restore come at once: before the first tenant there is nothing that could be marked as whole. */
export async function hasTenants(q: Reader): Promise<boolean> {
  return (await tenants.all(q)).length > 0
}

/** For a database in quarantine that is not whole yet. */
export async function markRestored(db: Db, secrets: Secrets, backup_at: Millis | null): Promise<Restored> {
  const all = await tenants.all(db)
  const epoch = await db.write((tx) => seal.beginEpoch(tx, secrets))
  for (let i = 0; i < all.length; i += tenants_max) {
    await db.write(async (tx) => {
      for (const { tenant_id } of all.slice(i, i + tenants_max))
        await seal.markRestored(tx, tenant_id, { epoch, backup_at })
    })
  }
  await db.write((tx) => quarantine.complete(tx))
  return { backup_at, epoch, tenants: all.length }
}
