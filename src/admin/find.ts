// The tenant that an argument names, by its id or its name.

import type { Db } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'

/** A name in any spelling that a sign-up would find taken. An id comes first: a tenant chooses its name. */
export async function tenantCalled(db: Db, tenant: string) {
  const all = await tenants.all(db)
  const key = tenants.nameKey(tenant)
  const found =
    all.find(({ tenant_id }) => tenant_id === tenant) ?? all.find(({ name }) => tenants.nameKey(name) === key)
  if (!found) throw new Error(`there is no tenant ${tenant}`)
  return found
}
