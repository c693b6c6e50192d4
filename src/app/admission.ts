// The number of requests of a kind that one client address may make.

import { type Clock, hour_ms, minute_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { AddressLimit, type Limiters, limiterOf } from '../http/limits.ts'

const sign_ups_an_hour_max = limit(
  'http.sign_ups',
  30,
  'requests',
  'Sign-ups of one client address in an hour. Past it 429.',
)
const failed_keys_a_minute_max = limit(
  'http.failed_keys',
  60,
  'requests',
  'Wrong keys of one client address in a minute. Past it 429.',
)

export type AddressLimits = ReturnType<typeof addressLimits>

export function addressLimits(clock: Clock) {
  return {
    sign_ups: new AddressLimit(clock, sign_ups_an_hour_max, hour_ms),
    failed_keys: new AddressLimit(clock, failed_keys_a_minute_max, minute_ms),
  }
}

/** The limits of a service that is one process. */
export function ownLimiters(clock: Clock): Limiters {
  const { sign_ups, failed_keys } = addressLimits(clock)
  return { sign_ups: limiterOf(sign_ups), failed_keys: limiterOf(failed_keys) }
}
