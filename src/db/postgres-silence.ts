// A server that says nothing at all, which keeps its connections open: callers that use them would wait for ever.

import { limit } from '../base/limit.ts'
import type { Traffic } from './postgres-queries.ts'

const look_ms = 250
const silent_looks_max = limit(
  'postgres.silent_looks',
  12,
  'attempts',
  'Looks in a row, four a second, at which PostgreSQL has answered nothing although statements were sent; then the connections are opened again.',
)

interface Watched {
  /** Statements of requests are under way. */
  isAsked: () => boolean
  onSilence: () => void
}

/** Calls `onSilence` when nothing was answered for as many looks in a row, at each of which statements were under way. */
export function watchSilence(traffic: Traffic, { isAsked, onSilence }: Watched): Timer {
  let silent_looks = 0
  let answers = 0
  const watch = setInterval(() => {
    const is_silent = isAsked() && traffic.answers === answers
    answers = traffic.answers
    silent_looks = is_silent ? silent_looks + 1 : 0
    if (silent_looks < silent_looks_max) return
    silent_looks = 0
    onSilence()
  }, look_ms)
  watch.unref()
  return watch
}
