import { describe, expect, test } from 'bun:test'
import { api, v1 } from '../contract/group.ts'
import { Reply } from '../contract/route.ts'
import { json, reply } from './answers.ts'
import { IgnoredNames } from './ignored.ts'

const common = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}
function asked(request_id: string, ignored_name: string | null = null) {
  const ignored = ignored_name === null ? null : new IgnoredNames()
  if (ignored_name !== null) ignored?.add(ignored_name)
  return { request_id, ignored }
}
const headersOf = (answer: unknown) => Object.fromEntries((answer as Response).headers)
const answered = (request_id: string) => headersOf(reply(asked(request_id), v1, 200, {}))

describe('the headers of an answer', () => {
  test('are its own: those that a handler adds are not in the next one', () => {
    const extra = { etag: '"7"', 'x-version': '7' }
    const first = reply(asked('req_a'), api, 200, new Reply(200, { a: 1 }, extra))
    expect(headersOf(first)).toEqual({ ...common, ...extra, 'x-request-id': 'req_a' })
    expect(answered('req_b')).toEqual({ ...common, 'x-request-id': 'req_b' })
    expect(headersOf(first)).toEqual({ ...common, ...extra, 'x-request-id': 'req_a' })
  })

  test('have the values of this answer where another has the same names', () => {
    const versioned = (request_id: string, version: string) =>
      reply(asked(request_id), v1, 200, new Reply(200, {}, { 'x-version': version }))
    const answers = [versioned('req_a', '1'), versioned('req_b', '2')]
    expect(answers.map(headersOf)).toEqual([
      { ...common, 'x-version': '1', 'x-request-id': 'req_a' },
      { ...common, 'x-version': '2', 'x-request-id': 'req_b' },
    ])
  })

  test('that a handler adds before one that is refused are not in the next one', () => {
    const extra = { etag: '"of another tenant"', 'x-version': 'a\nb' }
    expect(() => reply(asked('req_a'), v1, 200, new Reply(200, {}, extra))).toThrow(TypeError)
    expect(answered('req_b')).toEqual({ ...common, 'x-request-id': 'req_b' })
  })

  test('have the value that a handler gives a common one, and the next one has the common value', () => {
    const public_answer = reply(asked('req_a'), v1, 200, new Reply(200, {}, { 'cache-control': 'public' }))
    expect(headersOf(public_answer)).toEqual({
      ...common,
      'cache-control': 'public',
      'x-request-id': 'req_a',
    })
    expect(answered('req_b')).toEqual({ ...common, 'x-request-id': 'req_b' })
  })

  test('name ignored fields in this answer alone', () => {
    expect(headersOf(json(asked('req_a', 'colour'), 200, '{}', null))).toEqual({
      ...common,
      'x-ignored-fields': 'colour',
      'x-request-id': 'req_a',
    })
    expect(answered('req_b')).toEqual({ ...common, 'x-request-id': 'req_b' })
  })
})
