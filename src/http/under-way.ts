// The requests under way on a node, shared out between clients once there are many: `Places` counts them.

import { limit } from '../base/limit.ts'

export const requests_max = limit(
  'http.requests',
  16_384,
  'requests',
  'Requests under way on a node, including those that wait; past it 503 UNAVAILABLE and the connection is closed.',
)

export const urgent_requests_max = limit(
  'http.urgent_requests',
  1_024,
  'requests',
  'Requests under way beyond http.requests of what is refused last: what stops agents, revokes keys and decides.',
)

export const urgent_requests_of_address_max = limit(
  'http.urgent_requests_of_address',
  urgent_requests_max / 4,
  'requests',
  'Counted requests under way of one client address, beyond http.requests_of_address, of what is refused last; past it 503 UNAVAILABLE, so that it leaves places for others.',
)

export const uncounted_max = limit(
  'http.uncounted_requests',
  2_048,
  'requests',
  'Requests under way on a node up to which none is counted; each that comes past it is counted by its client address.',
)

export const requests_of_address_max = limit(
  'http.requests_of_address',
  requests_max / 2,
  'requests',
  'Counted requests under way of one client address on a node; past it 503 UNAVAILABLE, so that it leaves places for others.',
)
