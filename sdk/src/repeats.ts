// Repeats of a request whose outcome is unknown. Reads are repeated, and so is what carries an Idempotency-Key. The rules
// of the other operations come from the contract.

import type { WaystationError } from './errors.ts'
import { retries } from './generated-retries.ts'
import type { Operations } from './types.ts'

export interface Sent {
  body?: Readonly<Record<string, unknown>> | undefined
  headers?: Readonly<Record<string, string>> | undefined
}

/** A rule as the contract has it. */
export interface Retry {
  /** With this member of the body; without any of these members and headers. */
  safe: boolean | { with: string } | { without: readonly string[] }
  /** As in the table of the documentation. */
  why: string
  /** A refusal of the repeat with one of these codes says that the first request had its effect. */
  done?: Done | readonly Done[]
}

export interface Done {
  code: WaystationError['code']
  /** Only when `details.status` is this, and `details.decision` that. */
  status?: string
  decision?: string
  /** The call then answers this, or what this operation reads. */
  answer?: unknown
  read?: keyof Operations
}

interface Rule {
  /** True when it is sent again. */
  repeat(sent: Sent): boolean
  why: string
  done?: readonly Done[]
}

export const repeats = Object.fromEntries(
  Object.entries(retries).map(([name, { safe, why, done }]) => [
    name,
    { why, repeat: (sent: Sent) => isSafe(safe, sent), ...(done && { done: [done].flat() }) },
  ]),
) as { readonly [K in keyof Operations]?: Rule }

function isSafe(safe: Retry['safe'], { body = {}, headers = {} }: Sent): boolean {
  if (typeof safe === 'boolean') return safe
  if ('with' in safe) return body[safe.with] !== undefined && body[safe.with] !== null
  // null is a value of its own where any JSON goes, such as the payload of an edit.
  return !safe.without.some((name) => body[name] !== undefined || headers[name] !== undefined)
}
