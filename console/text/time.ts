// Times in words, which tick once a second while the tab is visible.

import { computed, signal } from '@preact/signals'

export const second_ms = 1_000
export const minute_ms = 60 * second_ms
export const hour_ms = 60 * minute_ms
export const day_ms = 24 * hour_ms

/** The time by which the service's clock is ahead of this device's. */
let ahead_ms = 0
/** A smaller difference comes from the network and from the whole seconds of the Date header. */
const ahead_ms_min = 5 * second_ms

/** The service's time, in milliseconds. */
export const now = signal(Date.now())

/** Since when the tenant of the page is frozen, in milliseconds; null where it is not. */
export const frozen_at = signal<number | null>(null)

/** The time that counts for what a resume moves: it stands still while the tenant is frozen. */
export const held_now = computed(() => Math.min(now.value, frozen_at.value ?? Number.POSITIVE_INFINITY))

setInterval(() => document.hidden || tick(), second_ms)
document.addEventListener('visibilitychange', () => document.hidden || tick())

function tick(): void {
  now.value = Date.now() + ahead_ms
}

/** The time of a service with a test clock is not that of its Date header. */
export const has_test_clock = document.querySelector('meta[name=test-clock]') !== null

/** Takes the time of a test clock. */
export function followTime(iso: string): void {
  ahead_ms = Date.parse(iso) - Date.now()
  tick()
}

/**
 * Takes the time from the Date header of an answer, so that a device with a wrong clock counts down correctly. `asked_at`: when this
 * device asked. The service answered at some time since then: a difference that fits to that is kept.
 */
export function learnTime(date: string | null, asked_at: number): void {
  const at = Date.parse(date ?? '')
  if (has_test_clock || Number.isNaN(at)) return
  const difference_ms = at - Date.now()
  const fits = ahead_ms > difference_ms - ahead_ms_min && ahead_ms < at - asked_at + ahead_ms_min
  if (fits) return
  ahead_ms = Math.abs(difference_ms) < ahead_ms_min ? 0 : difference_ms
  // The view of this answer has the right time at once, not a second later.
  tick()
}

/** `3 min ago`, `in 2 h`, a date when it is further away than 30 days. */
export function relative(at_ms: number, now_ms: number): string {
  const away_ms = Math.abs(at_ms - now_ms)
  if (away_ms < 5 * second_ms) return 'just now'
  if (away_ms > 30 * day_ms) return dates.format(at_ms)
  const amount = rough(away_ms)
  return at_ms > now_ms ? `in ${amount}` : `${amount} ago`
}

function rough(ms: number): string {
  if (ms < minute_ms) return `${Math.floor(ms / second_ms)} s`
  if (ms < hour_ms) return `${Math.floor(ms / minute_ms)} min`
  if (ms < 2 * day_ms) return `${Math.floor(ms / hour_ms)} h`
  return `${Math.floor(ms / day_ms)} d`
}

/** `1 d 3 h`, `2 h 14 min`, `4 min 09 s`, `38 s`. Never below zero. */
export function duration(ms: number): string {
  const left = Math.max(0, ms)
  const two = (value: number) => String(value).padStart(2, '0')
  const [days, hours] = [Math.floor(left / day_ms), Math.floor((left % day_ms) / hour_ms)]
  const [minutes, seconds] = [
    Math.floor((left % hour_ms) / minute_ms),
    Math.floor((left % minute_ms) / second_ms),
  ]
  if (days > 0) return `${days} d ${hours} h`
  if (hours > 0) return `${hours} h ${two(minutes)} min`
  return minutes > 0 ? `${minutes} min ${two(seconds)} s` : `${seconds} s`
}

/** The same without a zero at its end: `5 min`, `2 h`. */
export function span(ms: number): string {
  return duration(ms).replace(/ 0+ \w+$/, '')
}

/** The time of a field of a form, which is local; undefined for one that is empty or written in part. */
export function isoOf(local: string): string | undefined {
  const at = new Date(local)
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
}

/** In the reader's time zone, and as it is stored. */
export function exact(iso: string): string {
  return `${moment(iso)}\n${iso}`
}

/** `Sun 28 Mar 2027, 03:30:00 CEST`, in the reader's time zone. */
export function moment(iso: string): string {
  return moments.format(Date.parse(iso))
}

/** `14:03:22`, in the reader's time zone. */
export function clock(iso: string): string {
  return clocks.format(Date.parse(iso))
}

/** `Sun 22 Nov` */
export function day(iso: string): string {
  return days.format(Date.parse(iso))
}

const clocks = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const days = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' })
const dates = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
const moments = new Intl.DateTimeFormat('en-GB', {
  ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
})
