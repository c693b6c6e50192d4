// Times and sizes as people write them.

import { day_ms, hour_ms, type Millis, minute_ms } from './clock.ts'

const units: Readonly<Record<string, Millis>> = { m: minute_ms, h: hour_ms, d: day_ms }

/** Of `30m`, `6h` or `1d`; null for any other text. */
export function durationMs(text: string): Millis | null {
  const [, digits = '', unit = ''] = /^(\d+)([mhd])$/.exec(text) ?? []
  const ms = Number(digits) * (units[unit] ?? Number.NaN)
  return Number.isSafeInteger(ms) ? ms : null
}

const byte_units: Readonly<Record<string, number>> = {
  '': 1,
  kb: 1_000,
  mb: 1_000_000,
  gb: 1_000_000_000,
  kib: 1_024,
  mib: 1_048_576,
  gib: 1_073_741_824,
}

/** Of `134217728`, `128MiB` or `128 MB`; null for any other text. */
export function bytesOf(text: string): number | null {
  const [, digits = '', unit = ''] = /^(\d+) ?([A-Za-z]*)$/.exec(text) ?? []
  const bytes = digits === '' ? Number.NaN : Number(digits) * (byte_units[unit.toLowerCase()] ?? Number.NaN)
  return Number.isSafeInteger(bytes) ? bytes : null
}
