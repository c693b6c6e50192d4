// The assertions of checks. One that fails ends the check with a sentence that says what came instead.

import type { Answer } from './client.ts'
import { errorStatuses, marksErrors } from './contract.ts'
import { rawAt } from './raw-json.ts'

/** The service does not keep the contract. */
export class Failure extends Error {}

/** This check cannot be made on this service, or with these options. */
export class NotRun extends Error {}

export function holds(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Failure(what)
}

export function equal(actual: unknown, expected: unknown, what: string): void {
  if (!same(actual, expected)) throw new Failure(`${what}: expected ${shown(expected)}, got ${shown(actual)}`)
}

export function matches(actual: unknown, pattern: RegExp, what: string): void {
  if (typeof actual !== 'string' || !pattern.test(actual))
    throw new Failure(`${what}: expected text like ${pattern}, got ${shown(actual)}`)
}

/** The object of an answer with this status: the body under /v1, its `data` under /api. */
// biome-ignore lint/suspicious/noExplicitAny: a check reaches into an answer and reports what it lacks
export function succeeded(answer: Answer, status: number): any {
  const { method, path } = answer.sent
  if (answer.status !== status)
    throw new Failure(
      `${method} ${path}: expected ${status}, got ${answer.status} ${answer.text.slice(0, 300)}`,
    )
  if (status === 204 || status === 304) {
    equal(answer.text, '', `${method} ${path}: the body of a ${status}`)
    return undefined
  }
  if (!path.startsWith('/api/')) return answer.json
  equal(answer.json?.success, status < 400, `${method} ${path}: success`)
  return answer.json.data
}

/** The answer is this error, in the envelope of its part of the API. */
export function refused(answer: Answer, code: string, details?: Record<string, unknown>): void {
  const what = `${answer.sent.method} ${answer.sent.path}`
  const got = `${answer.status} ${answer.text.slice(0, 300)}`
  const error = answer.json?.error
  if (error?.code !== code) throw new Failure(`${what}: expected ${code}, got ${got}`)
  const statuses = errorStatuses[code] ?? []
  if (!statuses.includes(answer.status))
    throw new Failure(`${what}: ${code} has status ${statuses.join(' or ')}, got ${got}`)
  if (marksErrors(answer.sent.path)) equal(answer.json.success, false, `${what}: success of an error`)
  for (const [name, value] of Object.entries(details ?? {}))
    equal(error.details?.[name], value, `${what}: details.${name} of ${code}`)
}

/** The answer is a VALIDATION_FAILED whose issues name exactly these paths. */
export function invalid(answer: Answer, ...paths: string[]): void {
  refused(answer, 'VALIDATION_FAILED')
  const issues: { path?: unknown; message?: unknown }[] = answer.json.error.details?.issues ?? []
  const what = `${answer.sent.method} ${answer.sent.path}`
  holds(
    issues.every(({ message }) => typeof message === 'string' && message !== ''),
    `${what}: each issue has a message`,
  )
  const named = issues.map(({ path }) => path)
  equal([...new Set(named)].sort(), paths.sort(), `${what}: paths of details.issues`)
}

/** Asserts that the value at this place of the JSON is this text, byte for byte. */
export function sameText(json: string, expected: string, ...way: [string, ...(string | number)[]]): void {
  const got = rawAt(json, ...way)
  if (got !== expected)
    throw new Failure(
      `${way.join('.')} came otherwise: expected ${expected.slice(0, 200)}, got ${(got ?? json).slice(0, 300)}`,
    )
}

/** Status and body without what differs at every answer, to compare answers byte for byte. */
export function bytesOf({ status, text, headers }: Answer): string {
  const id = headers['x-request-id']
  return `${status} ${id ? text.replaceAll(id, '<request id>') : text}`
}

export function same(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const [names, others] = [Object.keys(one), Object.keys(other)]
  return (
    names.length === others.length &&
    names.every((name) => name in other && same(Reflect.get(one, name), Reflect.get(other, name)))
  )
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 400 ? `${text.slice(0, 400)}…` : text
}
