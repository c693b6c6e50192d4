// The tenant that an argument names, by its id or its name.

import type { Db } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'

export async function tenantCalled(db: Db, tenant: string) {
  const found = (await tenants.all(db)).find(({ tenant_id, name }) => tenant_id === tenant || name === tenant)
  if (!found) throw new Error(`there is no tenant ${tenant}`)
  return found
}
