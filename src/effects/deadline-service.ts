// Leases of a tenant that is frozen, and is resumed.

import type { AgentCaller } from '../contract/caller.ts'
import type { Deadlines } from '../contract/deadlines.ts'
import type { Tx } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'
import { move } from './deadline-store.ts'

const table = 'effects'

export const leases: Deadlines = { name: table, move }

/** The time by which the lease of this effect is judged and set. */
export function leaseTime(tx: Tx, caller: AgentCaller, id: string) {
  return tenants.deadlineNow(tx, caller, table, id)
}
