// How long the texts of an effect that is over are kept: by the plan under which it was claimed.

import { day_ms, type Millis } from '../base/clock.ts'
import type { Plans } from '../contract/dependencies.ts'
import { limitOf } from '../quotas/service.ts'

/** Null: for ever. */
export function keptMs(plans: Plans, plan: string): Millis | null {
  const days = limitOf(plans, plan, 'effect_days')
  return days === null ? null : days * day_ms
}
