import { describe, expect, test } from 'bun:test'
import { attempt_ms_max as mail_attempt_ms_max } from '../callbacks/mail.ts'
import {
  type AttemptResult,
  attemptOf,
  attempts_max,
  destinationOf,
  errorText,
  lease_ms,
  nextAttemptAt,
  stale_lease_ms,
  stale_mail_ms,
} from './job.ts'

const first_attempt_at = Date.UTC(2026, 0, 1)

function failure(change: Partial<AttemptResult> = {}): AttemptResult {
  return {
    ok: false,
    status_code: 500,
    error: 'status',
    started_at: first_attempt_at,
    duration_ms: 3,
    ...change,
  }
}

describe('the next attempt', () => {
  test.each([
    [1, first_attempt_at + 30_000],
    [2, first_attempt_at + 90_000],
    [3, null],
    [4, null],
  ])('after attempt %i is counted from the first', (attempts, expected) => {
    expect(nextAttemptAt({ attempts, first_attempt_at }, failure())).toBe(expected)
  })

  test('does not depend on when the attempt before was made', () => {
    const late = failure({ started_at: first_attempt_at + 80_000 })
    expect(nextAttemptAt({ attempts: 2, first_attempt_at }, late)).toBe(first_attempt_at + 90_000)
  })

  test.each([1, 2, 3])('is none after 410 Gone at attempt %i', (attempts) => {
    expect(nextAttemptAt({ attempts, first_attempt_at }, failure({ status_code: 410 }))).toBeNull()
  })

  test.each([301, 400, 404, 409, 411, 429, 500, 503])('comes after status %i', (status_code) => {
    const next_at = nextAttemptAt({ attempts: 1, first_attempt_at }, failure({ status_code }))
    expect(next_at).toBe(first_attempt_at + 30_000)
  })

  test.each(['dns', 'refused', 'timeout', 'tls', 'blocked', 'too_large', 'interrupted'])(
    'comes after %s',
    (error) => {
      const next_at = nextAttemptAt({ attempts: 1, first_attempt_at }, failure({ error, status_code: null }))
      expect(next_at).toBe(first_attempt_at + 30_000)
    },
  )
})

test('there are three attempts, and a lease outlives each of them', () => {
  expect(attempts_max).toBe(3)
  const attempt_ms_max = 10_000
  expect(lease_ms).toBeGreaterThan(stale_lease_ms + attempt_ms_max)
  expect(lease_ms).toBeGreaterThan(stale_mail_ms + mail_attempt_ms_max)
})

test.each([
  ['http://127.0.0.1:8080/path?query#fragment', 'http://127.0.0.1:8080'],
  ['https://Example.COM/', 'https://example.com'],
  ['https://example.com:443/a', 'https://example.com'],
  ['https://example.com:8443/a', 'https://example.com:8443'],
  ['http://[::1]:80/', 'http://[::1]'],
])('the destination of %s is %s: scheme, host and port', (url, expected) => {
  expect(destinationOf(url)).toBe(expected)
})

test.each([
  [null, 204, null],
  ['status', 503, 'status 503'],
  ['status', 302, 'status 302'],
  ['timeout', null, 'timeout'],
  ['refused', null, 'refused'],
])('last_error of error %p with status %p is %p', (error, status_code, expected) => {
  expect(errorText({ error, status_code })).toBe(expected)
})

test('an attempt is shown with its number, webhook-id, time, duration, status and error class', () => {
  const row = {
    seq: 7,
    event_id: 'evt_1',
    attempt: 2,
    started_at: first_attempt_at,
    duration_ms: 12,
    status_code: null,
    error: 'refused',
  }
  expect(attemptOf(row)).toEqual({
    attempt: 2,
    webhook_id: 'evt_1',
    started_at: '2026-01-01T00:00:00.000Z',
    duration_ms: 12,
    status_code: null,
    error: 'refused',
  })
})
