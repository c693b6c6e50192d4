// A policy: an admin's terms for effects of a type, whatever agents ask for. No imports from db or http.

import type { Millis } from '../base/clock.ts'

export const approval_rules = ['optional', 'required'] as const

/** The policy for types that have none of their own. */
export const any_type = '*'

export interface PolicyRow {
  /** A type of effects, or `any_type`. */
  type: string
  approval: (typeof approval_rules)[number]
  /** The least number of approvals. */
  required_approvals: number
  /** JSON: ids of approval keys, or `admin`; null for everybody. */
  approvers: string | null
  lease_seconds_max: number | null
  created_at: Millis
  updated_at: Millis
}

export function asksFor(policy: PolicyRow | null): boolean {
  return policy?.approval === 'required'
}

export function approversOf({ approvers }: Pick<PolicyRow, 'approvers'>): string[] | null {
  return approvers === null ? null : JSON.parse(approvers)
}
