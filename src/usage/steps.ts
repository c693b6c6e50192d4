// The steps of a usage report: its range, and the counts of each hour or day in it.

import { day_ms, hour_ms, type Millis } from '../base/clock.ts'
import { type Count, kept_ms } from './usage.ts'

export const steps = ['hour', 'day'] as const

export type Step = (typeof steps)[number]

const step_ms: Record<Step, number> = { hour: hour_ms, day: day_ms }

const range_ms_default: Record<Step, number> = { hour: day_ms, day: 30 * day_ms }

export interface Range {
  from: Millis
  to: Millis
}

/** The range of a report, from the start of a step. Null when it is longer than what is kept. */
export function rangeOf(
  step: Step,
  from: Millis | undefined,
  to: Millis | undefined,
  now: Millis,
): Range | null {
  const end = to ?? now
  const begin = Math.max(0, from ?? end - range_ms_default[step])
  if (end - begin > kept_ms) return null
  return { from: startOf(step, begin), to: end }
}

export function startOf(step: Step, at: Millis): Millis {
  return Math.floor(at / step_ms[step]) * step_ms[step]
}

export interface UsageStep {
  start_at: Millis
  calls: number
  failures: number
  features: { feature: string; calls: number; failures: number }[]
}

/** Every step of the range, oldest first; one in which nothing was called has zeros. `groups`: the order within a step. */
export function stepsOf(
  step: Step,
  { from, to }: Range,
  groups: readonly string[],
  counts: readonly Omit<Count, 'tenant_id'>[],
): UsageStep[] {
  const found = new Map<Millis, UsageStep>()
  for (let start_at = from; start_at < to; start_at += step_ms[step]) {
    found.set(start_at, { start_at, calls: 0, failures: 0, features: [] })
  }
  for (const { hour, feature, calls, failures } of counts) {
    const of_step = found.get(startOf(step, hour))
    if (!of_step) continue
    of_step.calls += calls
    of_step.failures += failures
    const known = of_step.features.find((other) => other.feature === feature)
    if (known) {
      known.calls += calls
      known.failures += failures
    } else of_step.features.push({ feature, calls, failures })
  }
  for (const { features: called } of found.values())
    called.sort((one, other) => groups.indexOf(one.feature) - groups.indexOf(other.feature))
  return [...found.values()]
}
