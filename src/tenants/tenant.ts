// A tenant: its statuses, moves and name. No imports from db or http.

import { day_ms, hour_ms, type Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

/** From the deletion's request to the purge. */
export const purge_grace_ms = limit(
  'tenants.purge_grace',
  30 * day_ms,
  'milliseconds',
  'How long a deleted tenant can be restored. After that it is removed.',
)
/** How long the secret before still signs after a rotation. */
export const previous_secret_ms = limit(
  'tenants.previous_secret',
  24 * hour_ms,
  'milliseconds',
  'How long a rotated signing secret still signs along with the new one.',
)

export type TenantStatus = 'active' | 'pending_deletion'

export const moves = {
  delete: { from: ['active', 'pending_deletion'], to: 'pending_deletion' },
  restore: { from: ['pending_deletion'], to: 'active' },
} as const satisfies Record<string, { from: readonly TenantStatus[]; to: TenantStatus }>

export interface TenantRow {
  tenant_id: string
  name: string
  owner_email: string
  plan: string
  status: TenantStatus
  purge_at: Millis | null
  /** The bytes that the operator allows this tenant to store; null: those of its plan. */
  storage_bytes_max: number | null
  created_at: Millis
  /** Since when it is frozen; null while it is not. */
  frozen_at: Millis | null
  frozen_reason: string | null
  /** When it was resumed, while what runs out is still being moved. */
  resumed_at: Millis | null
  /** When it was frozen again meanwhile. */
  frozen_again_at: Millis | null
}

/** Since when the freeze that holds does, also while the resume before it goes on; null while none does. */
export function frozenSince({
  frozen_at,
  frozen_again_at,
}: Pick<TenantRow, 'frozen_at' | 'frozen_again_at'>): Millis | null {
  return frozen_again_at ?? frozen_at
}

/**
 * Names are unique regardless of case and of how accents were typed (Unicode NFC). By way of upper case, because
 * in lower case alone STRASSE and straße differ, and ΟΔΟΣ and οδοσ.
 */
export function nameKey(name: string): string {
  return name.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')
}

/** C0 and C1 controls (Unicode category Cc). */
export function hasControls(text: string): boolean {
  return /\p{Cc}/u.test(text)
}
