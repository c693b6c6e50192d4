// Agents that may not change anything now: their tenant is frozen, they are paused, or they may only read.

import { iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { Caller, KeyHolder, TenantFacts } from './caller.ts'
import type { Route } from './route.ts'

/** True when an agent may call the route while it is stopped: the route says so, and otherwise when it is a GET. */
export function goesOnWhileStopped({ method, frozen }: Pick<Route, 'method' | 'frozen'>): boolean {
  return frozen === undefined ? method === 'GET' : frozen === 'allowed'
}

/** The refusal of a change; null for a caller that may make it. What concerns the whole tenant comes first. */
export function stopOf(caller: KeyHolder): ApiError | null {
  if (caller.kind !== 'agent') return null
  const { frozen_at = null, frozen_again_at, frozen_reason = null } = caller
  if (frozen_at !== null) return stopped('TENANT_FROZEN', frozen_again_at ?? frozen_at, frozen_reason)
  const { paused_at = null, paused_reason = null, mode } = caller
  if (paused_at !== null) return stopped('AGENT_PAUSED', paused_at, paused_reason)
  return mode === 'read' ? new ApiError('AGENT_READ_ONLY') : null
}

function stopped(code: 'TENANT_FROZEN' | 'AGENT_PAUSED', since: Millis, reason: string | null): ApiError {
  return new ApiError(code, { details: { since: iso(since), reason } })
}

/** Throws TENANT_FROZEN, AGENT_PAUSED, AGENT_READ_ONLY: for a call that goes on for the holder of a token alone. */
export function requireToken(caller: Caller, token: string | undefined): void {
  const stop = token === undefined ? stopOf(caller) : null
  if (stop) throw stop
}

/**
 * The time by which locks, leases and timeouts of the tenant are shown: it stands still while the tenant is frozen, because
 * they are moved by the frozen time when it is resumed.
 */
export function deadlineTime({ frozen_at }: TenantFacts, now: Millis): Millis {
  return frozen_at == null ? now : Math.min(frozen_at, now)
}
