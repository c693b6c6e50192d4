// The only place that reads the time. Everything else is handed `now`.

/** Milliseconds since the Unix epoch, UTC. */
export type Millis = number

export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. May jump. */
  now(): Millis
  /** Milliseconds that never run backwards, from an arbitrary start. For durations only. */
  monotonic(): number
  /** How often it was compared with the clock of a server that others follow too; absent where there is none. */
  readonly followed?: number | undefined
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/** The clock of a service whose time can be moved: ahead of another clock, or standing still while it is moved. */
export class MovedClock implements Clock {
  #offset_ms = 0
  #stands_at: Millis | null = null
  #at_least = Number.NEGATIVE_INFINITY

  constructor(readonly base: Clock) {}

  now(): Millis {
    return Math.max(this.#at_least, this.#stands_at ?? this.base.now() + this.#offset_ms)
  }

  monotonic(): number {
    return this.base.monotonic()
  }

  get followed(): number | undefined {
    return this.base.followed
  }

  /** `stands_at`: null for a clock that runs. */
  set(offset_ms: Millis, stands_at: Millis | null): void {
    this.#offset_ms = offset_ms
    this.#stands_at = stands_at
    this.#at_least = Number.NEGATIVE_INFINITY
  }

  /** The same, but a time that was shown before is not followed by an earlier one. */
  follow(offset_ms: Millis, stands_at: Millis | null): void {
    const shown = this.now()
    this.set(offset_ms, stands_at)
    this.#at_least = shown
  }
}

/** `movable`: true for a clock of tests. */
export function clockOf(clock: Clock, movable = false): Clock {
  return movable ? new MovedClock(clock) : clock
}

/** The time outside of the service, which no test clock moves. */
export function realTime(clock: Clock): Millis {
  return clock instanceof MovedClock ? clock.base.now() : clock.now()
}

export const second_ms = 1_000
export const minute_ms = 60 * second_ms
export const hour_ms = 60 * minute_ms
export const day_ms = 24 * hour_ms

/** 0000-01-01T00:00:00.000Z, the first instant that RFC 3339 can write. */
const first_instant_ms: Millis = -62_167_219_200_000

/** 9999-12-31T23:59:59.999Z, the last one. */
export const last_instant_ms: Millis = 253_402_300_799_999

/** RFC 3339, UTC, milliseconds: `2026-01-31T12:00:00.000Z`. */
export function iso(at: Millis): string {
  const day = Math.floor(at / day_ms)
  if (day !== last_day) {
    last_date = new Date(at).toISOString().slice(0, -time_characters)
    last_day = day
  }
  const ms = Math.trunc(at - day * day_ms)
  const seconds = Math.floor(ms / second_ms)
  const minutes = Math.floor(seconds / 60)
  const time = `${two_digits[Math.floor(minutes / 60)]}:${two_digits[minutes % 60]}:${two_digits[seconds % 60]}`
  return `${last_date}${time}.${three_digits[ms % second_ms]}Z`
}

// A Date for each time costs three times as much: only the date of a day is left to it.
const time_characters = '00:00:00.000Z'.length
const two_digits = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'))
const three_digits = Array.from({ length: 1_000 }, (_, n) => String(n).padStart(3, '0'))
let last_day = Number.NaN
let last_date = ''

/** The same for a column that may be empty. */
export function isoOrNull(at: Millis | null): string | null {
  return at === null ? null : iso(at)
}

/** The beginning of the next calendar month, UTC. */
export function nextMonth(now: Millis): Millis {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
}

const rfc3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

/**
 * Reads an RFC 3339 section 5.6 date-time (offset required, years 0000 to 9999, a leap second counts as the
 * second after it). Digits past the millisecond are cut. Null for any other text.
 */
export function parseTime(text: string): Millis | null {
  const parts = rfc3339.exec(text)
  if (!parts) return null
  const [year, month, day, hour, minute, leap] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const offset_hours = Number(parts[9] ?? 0)
  const offset_minutes = Number(parts[10] ?? 0)
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null
  if (hour > 23 || minute > 59 || leap > 60 || offset_hours > 23 || offset_minutes > 59) return null
  const millis = Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3))
  const sign = parts[8] === '-' ? -1 : 1
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day) // Date.UTC takes the years 0 to 99 for 1900 to 1999
  const local = date.setUTCHours(hour, minute, leap, millis)
  const at = local - sign * (offset_hours * hour_ms + offset_minutes * minute_ms)
  return at < first_instant_ms || at > last_instant_ms ? null : at
}

function daysIn(year: number, month: number): number {
  const date = new Date(0)
  date.setUTCFullYear(year, month, 0)
  return date.getUTCDate()
}
