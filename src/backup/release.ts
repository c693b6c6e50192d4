// The end of quarantine. Keys that were revoked after the backup was made work again in the copy: on request all end first.

import * as approvalKeys from '../approval-keys/service.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import * as quarantine from '../quarantine/service.ts'
import * as tenants from '../tenants/service.ts'

const rows_max = limit(
  'backup.revoked_rows',
  500,
  'rows',
  'Approval keys that one transaction of `admin release --revoke-keys` ends.',
)
/** Nodes take a key for no longer than a second after it has ended; one may have made another key in it. */
const remembered_ms = 1_500

/** Throws unless the database is in quarantine. Returns how many keys ended; null when none was to end. */
export async function release(db: Db, revokes_keys: boolean): Promise<{ keys_revoked: number | null }> {
  await requireQuarantine(db)
  const keys_revoked = revokes_keys ? await revokeAll(db) : null
  if (await db.write((tx) => quarantine.end(tx))) return { keys_revoked }
  await requireQuarantine(db) // somebody else may have released it meanwhile
  throw new Error('the restore of this database has not ended: restore again, into an empty one')
}

async function requireQuarantine(db: Db): Promise<void> {
  if ((await quarantine.find(db)) === null) throw new Error('the database is not in quarantine')
}

async function revokeAll(db: Db): Promise<number> {
  let revoked = 0
  for (;;) {
    let found = 0
    for (const { tenant_id } of await tenants.all(db))
      found += await tenants.revokeKeys(db, (tx, id) => approvalKeys.endSome(tx, id, rows_max), tenant_id)
    revoked += found
    if (found === 0) return revoked
    await Bun.sleep(remembered_ms)
  }
}
