import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  day_ms,
  hour_ms,
  iso,
  isoOrNull,
  last_instant_ms,
  minute_ms,
  parseTime,
  second_ms,
  systemClock,
} from './clock.ts'

describe('a time', () => {
  test('is written as RFC 3339 in UTC with milliseconds', () => {
    expect(iso(0)).toBe('1970-01-01T00:00:00.000Z')
    expect(iso(Date.UTC(2026, 0, 31, 12, 0, 0, 7))).toBe('2026-01-31T12:00:00.007Z')
    expect(iso(last_instant_ms)).toBe('9999-12-31T23:59:59.999Z')
    expect(isoOrNull(null)).toBeNull()
    expect(isoOrNull(0)).toBe('1970-01-01T00:00:00.000Z')
  })

  test('is written as Date writes it', () => {
    const years_0_to_9999 = fc.integer({ min: -62_167_219_200_000, max: last_instant_ms })
    fc.assert(fc.property(years_0_to_9999, (at) => iso(at) === new Date(at).toISOString()))
  })

  test('that was written is read as the same instant', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: last_instant_ms }), (at) => parseTime(iso(at)) === at))
  })

  test('is read alike in every offset', () => {
    const times = fc.integer({ min: day_ms, max: last_instant_ms - day_ms })
    const offsets = fc.record({
      hours: fc.integer({ min: 0, max: 23 }),
      minutes: fc.integer({ min: 0, max: 59 }),
    })
    fc.assert(
      fc.property(times, offsets, fc.constantFrom('+', '-'), (at, { hours, minutes }, sign) => {
        const shift = (hours * hour_ms + minutes * minute_ms) * (sign === '+' ? 1 : -1)
        const two = (value: number) => String(value).padStart(2, '0')
        return parseTime(iso(at + shift).replace('Z', `${sign}${two(hours)}:${two(minutes)}`)) === at
      }),
    )
  })

  test.each([
    ['0000-01-01T00:00:00Z', -62_167_219_200_000],
    ['0070-01-01T00:00:00Z', -59_958_144_000_000],
    ['0099-12-31T23:59:59Z', -59_011_459_201_000],
    ['1969-12-31T23:59:59.999Z', -1],
    ['1970-01-01T00:00:00+00:01', -60_000],
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01T00:00:00+00:00', 0],
    ['1970-01-01T01:00:00+01:00', 0],
    ['1970-01-01T00:00:00-00:00', 0],
    ['1970-01-01t00:00:00z', 0],
    ['1970-01-01 00:00:00Z', 0],
    ['1970-01-01T00:00:00.1Z', 100],
    ['1970-01-01T00:00:00.12Z', 120],
    ['1970-01-01T00:00:00.123456789Z', 123],
    ['1970-01-01T00:00:00.999999999Z', 999],
    ['2000-02-29T00:00:00Z', Date.UTC(2000, 1, 29)],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['2026-06-30T23:59:59Z', Date.UTC(2026, 5, 30, 23, 59, 59)],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
    ['2026-01-01T00:00:00+23:59', Date.UTC(2026, 0, 1) - 23 * hour_ms - 59 * minute_ms],
    ['9999-12-31T23:59:59.999Z', last_instant_ms],
    ['9999-12-31T23:59:59.9999Z', last_instant_ms],
  ])('%s is %p', (text, at) => {
    expect(parseTime(text)).toBe(at)
  })

  test.each([
    '',
    'now',
    '1767225600000',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00.1234567890Z',
    '2026-01-01T00:00:00,5Z',
    '2026-01-01T00:00:00+0100',
    '2026-01-01T00:00:00+01',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00+00:60',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2026-1-1T00:00:00Z',
    '02026-01-01T00:00:00Z',
    '+002026-01-01T00:00:00Z',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    '2026-01-01T00:00:00Z\n',
    '2026-01-01_00:00:00Z',
    '٢٠٢٦-01-01T00:00:00Z',
    '9999-12-31T23:59:60Z',
    '9999-12-31T23:59:59.999-00:01',
    '10000-01-01T00:00:00Z',
    '0000-01-01T00:00:00+00:01',
  ])('%j is none', (text) => {
    expect(parseTime(text)).toBeNull()
  })
})

describe('the system clock', () => {
  test('tells whole milliseconds, and a second reading that never runs backwards', () => {
    expect(Number.isInteger(systemClock.now())).toBe(true)
    const readings = Array.from({ length: 1_000 }, () => systemClock.monotonic())
    expect(readings).toEqual(readings.toSorted((one, two) => one - two))
  })

  test('knows how long a second, a minute, an hour and a day are', () => {
    expect([second_ms, minute_ms, hour_ms, day_ms]).toEqual([1_000, 60_000, 3_600_000, 86_400_000])
  })
})
