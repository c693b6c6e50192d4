import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import '../features.ts'
import { ApiError, declareErrors, type ErrorCode, errorCodes, errors, invalid, statusesOf } from './errors.ts'

/** The API contract's table, as far as this release answers its codes. */
const contract = {
  DELETE_REQUIRES_CONFIRM: 400,
  VALIDATION_FAILED: 400,
  INVALID_JSON: 400,
  UNAUTHORIZED: 401,
  QUOTA_EXCEEDED: 402,
  FORBIDDEN: 403,
  NAMESPACE_FORBIDDEN: 403,
  TENANT_PENDING_DELETION: 403,
  ROUTE_NOT_FOUND: 404,
  KEY_NOT_FOUND: 404,
  AGENT_NOT_FOUND: 404,
  AUDIT_ENTRY_NOT_FOUND: 404,
  APPROVAL_KEY_NOT_FOUND: 404,
  DLQ_NOT_FOUND: 404,
  SCHEDULE_NOT_FOUND: 404,
  CHECKPOINT_NOT_FOUND: 404,
  INBOX_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  TENANT_NAME_TAKEN: 409,
  AGENT_ID_TAKEN: 409,
  VERSION_MISMATCH: 409,
  ALREADY_CLAIMED: 409,
  LOCK_NOT_HELD: 409,
  CHECKPOINT_ALREADY_RESOLVED: 409,
  INVALID_STATE: 409,
  IDEMPOTENCY_IN_PROGRESS: 409,
  INBOX_EXPIRED: 410,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  IDEMPOTENCY_KEY_REUSED: 422,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  OUTCOME_UNKNOWN: 503,
  STORAGE_FULL: 507,
} satisfies Partial<Record<ErrorCode, number>>
const codes = Object.keys(errors) as ErrorCode[]
const in_contract = Object.keys(contract) as (keyof typeof contract)[]
const beyond = codes.filter((code) => !Object.hasOwn(contract, code))

const src = join(import.meta.dir, '..')

/** The folders whose errors.ts declares the code, and what their tests say. */
function declaringTests(code: ErrorCode): string[] {
  const row = new RegExp(`^ {2}${code}: \\{`, 'm')
  return [...new Bun.Glob('*/errors.ts').scanSync(src)]
    .filter((file) => row.test(readFileSync(join(src, file), 'utf8')))
    .map((file) => {
      const folder = join(src, dirname(file))
      const tests = readdirSync(folder).filter((name) => name.endsWith('.test.ts'))
      return tests.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n')
    })
}

describe('an error', () => {
  test('has the status that the contract gives its code', () => {
    const statuses: Record<string, number> = {}
    for (const code of in_contract) statuses[code] = errors[code]?.status
    expect(statuses).toEqual(contract)
  })

  test('that the contract does not have belongs to a feature, whose own tests name it', () => {
    const unnamed = beyond.filter((code) => {
      const tests = declaringTests(code)
      return !(tests.length === 1 && tests[0]!.includes(`'${code}'`))
    })
    expect(unnamed).toEqual([])
  })

  test('of a feature is found where it is declared', () => {
    expect(declaringTests('DLQ_NOT_FOUND')).toEqual([expect.stringContaining("'DLQ_NOT_FOUND'")])
    expect(declaringTests('VALIDATION_FAILED')).toEqual([])
  })

  test.each(codes)('%s carries its status and its sentence, and nothing unless given', (code) => {
    const error = new ApiError(code)
    expect(error).toBeInstanceOf(Error)
    expect([error.name, error.code, error.status]).toEqual(['ApiError', code, errors[code].status])
    expect(error.message).toBe(errors[code].message)
    expect([error.details, error.retry_after_seconds]).toEqual([undefined, undefined])
  })

  test('carries details, and when to come back', () => {
    const error = new ApiError('RATE_LIMITED', { details: { used: 30 }, retry_after_seconds: 7 })
    expect([error.details, error.retry_after_seconds, error.status]).toEqual([{ used: 30 }, 7, 429])
  })

  test('VERSION_MISMATCH alone has two: 409, and 412 for If-Match', () => {
    expect(codes.filter((code) => statusesOf(code).length > 1)).toEqual(['VERSION_MISMATCH'])
    expect(new ApiError('VERSION_MISMATCH').status).toBe(409)
    expect(new ApiError('VERSION_MISMATCH', { precondition: true }).status).toBe(412)
  })

  test.each(codes)('%s says in a sentence or two what the caller does next', (code) => {
    expect(errors[code].next).toMatch(/^[A-Z][^\n]{15,120}\.$/)
    expect(errors[code].when).toMatch(/^[A-Z][^\n]{15,}\.$/)
  })

  test('is declared once', () => {
    const again = { DLQ_NOT_FOUND: errors.DLQ_NOT_FOUND }
    expect(() => declareErrors(again)).toThrow('the error DLQ_NOT_FOUND is declared twice')
  })

  test('of a code that is declared nowhere is a fault of the code, which it names', () => {
    for (const code of ['NO_SUCH_CODE', 'toString'])
      expect(() => new ApiError(code as ErrorCode)).toThrow(
        new Error(`no feature declares the error ${code}`),
      )
  })

  test('stands in the list of codes, by status and then by name', () => {
    expect(errorCodes().toSorted()).toEqual(codes.toSorted())
    const statuses = errorCodes().map((code) => errors[code].status)
    expect(statuses).toEqual(statuses.toSorted((one, other) => one - other))
    expect(errorCodes().filter((code) => errors[code].status === 400)).toEqual([
      ...['DELETE_REQUIRES_CONFIRM', 'INVALID_JSON', 'VALIDATION_FAILED'],
    ] as ErrorCode[])
  })

  test('of validation lists every issue it was given', () => {
    const issues = [
      { path: '/name', message: 'is required' },
      { path: 'query.limit', message: 'must be >= 1' },
    ]
    const error = invalid(...issues)
    expect([error.code, error.status, error.details]).toEqual(['VALIDATION_FAILED', 400, { issues }])
  })

  test('says one sentence to the reader, without a word of what was sent', () => {
    for (const code of codes) expect(errors[code].message).toMatch(/^[A-Z][^\n]{10,120}\.$/)
  })
})
