// Nodes forget what they remember of a tenant. Without the signal they learn of it within a second.

import { tenantSignal } from '../base/signal-text.ts'
import type { Db } from '../db/db.ts'

export async function signalChange(db: Db, tenant_id: string): Promise<void> {
  await db.notify(tenantSignal(tenant_id)).catch(() => {})
}
