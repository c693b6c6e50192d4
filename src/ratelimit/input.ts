// A check as it is sent: its schema, and the rules that a schema cannot say.

import { type Static, Type } from 'typebox'
import { second_ms } from '../base/clock.ts'
import { type Issue, invalid } from '../base/errors.ts'
import type { Param } from '../contract/route.ts'
import { sharing } from '../contract/schemas.ts'
import { type Algorithm, type Check, ceilingOf, key_bytes_max, window_seconds_max } from './window.ts'

export const key_rule = `must be 1 to ${key_bytes_max} bytes of UTF-8`

const Window = Type.Optional(
  Type.Number({
    minimum: 1,
    maximum: window_seconds_max,
    description: 'Length of the window. Either windowSeconds or window is required; both mean the same.',
  }),
)

export const CheckInput = Type.Object(
  {
    key: Type.String({
      minLength: 1,
      maxLength: key_bytes_max,
      description: 'Names the counter: 1 to 256 bytes of UTF-8.',
    }),
    limit: Type.Number({ minimum: 1, description: 'The most hits in a window, rounded down.' }),
    windowSeconds: Window,
    window: Window,
    algorithm: Type.Optional(
      Type.Enum(['fixed_window', 'sliding_window', 'fixed-window', 'sliding-window'], {
        description: 'fixed_window, the default, starts at the first hit; sliding_window has no edges.',
      }),
    ),
    cost: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'The number of hits, from 1 (the default) to limit.',
      }),
    ),
  },
  {
    'x-one-of': ['windowSeconds', 'window'],
    ...sharing('RateLimitRequest', 'The counter, and the limit that it is checked against.'),
  },
)

export const key: Param = {
  schema: Type.String({
    minLength: 1,
    maxLength: key_bytes_max,
    description: 'The counter: 1 to 256 bytes of UTF-8, percent-encoded once.',
  }),
  read: (decoded) => (isKey(decoded) ? decoded : null),
  message: `${key_rule} without NUL`,
}

/** Checks the rules that a schema cannot say. `place` begins the path of an issue. Throws VALIDATION_FAILED with all issues. */
export function checkOf(input: Static<typeof CheckInput>, place: string): Check {
  const { key, limit, windowSeconds, window, cost = 1 } = input
  const issues: Issue[] = []
  const seconds = windowSeconds ?? window
  if (!isKey(key)) issues.push({ path: `${place}key`, message: key_rule })
  if (seconds === undefined) issues.push({ path: `${place}windowSeconds`, message: 'is required' })
  if (window !== undefined && seconds !== window)
    issues.push({ path: `${place}window`, message: 'must not differ from windowSeconds' })
  if (cost > ceilingOf(limit)) issues.push({ path: `${place}cost`, message: 'must not be above limit' })
  if (issues.length > 0) throw invalid(...issues)
  const window_ms = Math.round(seconds! * second_ms)
  return { key, limit, window_ms, algorithm: algorithmOf(input.algorithm), cost }
}

function algorithmOf(name: string | undefined): Algorithm {
  return name === 'sliding_window' || name === 'sliding-window' ? 'sliding_window' : 'fixed_window'
}

export function isKey(key: string): boolean {
  if (key === '' || key.includes('\0')) return false
  return key.length * 3 <= key_bytes_max || Buffer.byteLength(key) <= key_bytes_max
}
