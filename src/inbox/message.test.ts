import { describe, expect, test } from 'bun:test'
import { encode } from '../contract/encode.ts'
import { InParts } from '../contract/route.ts'
import { incomingOf, type MessageRow, onOneLine, previewOf } from './message.ts'
import { messageOf } from './shapes.ts'
import { alone, messagesOf, streamed } from './texts.ts'

const request = (url: string) =>
  incomingOf({
    ...{ method: 'GET', headers: new Headers(), bytes: new Uint8Array(0), url, address: '192.0.2.1' },
    request_id: 'req_of_a_test',
  })

describe('What follows the token', () => {
  test.each([
    ['http://a.test/hook/t', '', ''],
    ['http://a.test/hook/t/', '/', ''],
    ['https://a.test:8443/hook/t/b/c?d=e?f', '/b/c', 'd=e?f'],
    ['http://a.test/hook/%74/b', '/b', ''],
    ['http://a.test/hook/t?u=http://b.test/hook/c', '', 'u=http://b.test/hook/c'],
    ['http://a.test/hook/t/b?c#d?e', '/b', 'c'],
    // Without a usable Host.
    ['/hook/t', '', ''],
    ['/hook/t/b?u=http://b.test/', '/b', 'u=http://b.test/'],
    // A path that only looked like one of ours.
    ['http://a.test/hook/b', '', ''],
    ['http://a.test/', '', ''],
  ])('in %s is %j, with the query %j', (url, path, query) => {
    expect(request(url)).toMatchObject({ path, query })
  })
})

test('A message has the size of its long texts', () => {
  const { size } = incomingOf({
    ...{ method: 'POST', headers: new Headers({ a: 'b' }), url: 'http://a.test/hook/t/cd?e', address: '' },
    bytes: Buffer.from('fgh'),
    request_id: 'req_of_a_test',
  })
  expect(size).toBe('{"a":"b"}'.length + '/cd'.length + 'e'.length + 'fgh'.length)
})

describe('The preview of a message', () => {
  test.each([
    ['text', 'one\ntwo', 'one'],
    ['text', '\r\n \t\n  two  \r\nthree', 'two'],
    ['text', ' \n ', null],
    ['text', '', null],
    ['text', 'x'.repeat(200), 'x'.repeat(200)],
    ['text', `${'x'.repeat(201)}`, 'x'.repeat(200)],
    ['text', '\u{1f4e8}'.repeat(201), '\u{1f4e8}'.repeat(200)],
    ['json', '{\n  "type": "paid",\n  "id": 7\n}\n', '{ "type": "paid", "id": 7 }'],
    ['json', ' null', 'null'],
    ['json', `[${' \n'.repeat(2_000)}]`, '['],
    ['json', `"${'\u{1f4e8}'.repeat(2_000)}"`, `"${'\u{1f4e8}'.repeat(199)}`],
    ['json', `[${' '.repeat(16_000)}]`, '['],
    ['json', `[ ${' \t'.repeat(100)}\n${' \t'.repeat(100)}1,  2]`, '[ 1,  2]'],
    ['binary', null, null],
  ] as const)('of %s %j is %j', (kind, text, preview) => {
    expect(previewOf(kind, text)).toBe(preview)
  })

  // An algorithm of quadratic time would not finish on these texts.
  test.each([
    [' '.repeat(2_000_000), ' '.repeat(2_000_000)],
    [`${'\t '.repeat(1_000_000)}\n`, ' '],
    [`${'\n'.repeat(2_000_000)}x`, ' x'],
  ])('is put on one line in steps of the length of the text (%#)', (text, line) => {
    expect(onOneLine(text) === line).toBe(true)
  })
})

describe('Messages on a page', () => {
  function messages(count: number, query: string): MessageRow[] {
    return Array.from({ length: count }, (_, i) => ({
      ...{ id: `msg_${i}`, seq: i, method: 'POST', path: '', query, headers: '{}', created_at: 0 },
      ...{ kind: 'text', encoding: 'text', body: 'x', content_type: '', source_ip: '192.0.2.1' },
      ...{ forward_status: null, forward_status_code: null, forward_error: null },
      ...{ forward_duration_ms: null, forward_attempted_at: null },
    }))
  }

  test.each([
    ['none where their queries have 64 KiB together', 64, 0],
    ['one for each 64 KiB of their queries', 640, 9],
  ])('leave turns of the event loop to others: %s', async (_, count, expected) => {
    const rows = messages(count, 'a&'.repeat(512))
    let turns = 0
    const others = () => {
      turns++
      next = setImmediate(others)
    }
    let next = setImmediate(others)
    const shown = await messagesOf(rows)
    clearImmediate(next)
    expect(turns).toBe(expected)
    expect(shown).toEqual(rows.map(messageOf))
  })
})

describe('The text of large messages', () => {
  const kib = 1_024
  const of = (bytes: Uint8Array | string, headers = new Headers()): MessageRow => ({
    ...incomingOf({
      ...{ request_id: 'req_of_a_test', method: 'POST', url: '/hook/t/a?b=1', address: '192.0.2.1' },
      headers,
      bytes: Buffer.from(bytes),
    }),
    ...{ id: 'msg_1', seq: 1, created_at: 0, forward_status: null, forward_status_code: null },
    ...{ forward_error: null, forward_duration_ms: null, forward_attempted_at: null },
  })
  const pairs = '\u{1f600}'.repeat(100 * kib)

  test.each([
    ['of control characters', '\u0001'.repeat(1_024 * kib)],
    ['of quotes', '"'.repeat(200 * kib)],
    ['of characters of two units', pairs],
    ['of these, one unit later', `a${pairs}`],
    ['of characters of three bytes, and one more', `${'\u20ac'.repeat(100 * kib)}a`],
    ['with NUL', '\0'.repeat(200 * kib)],
    ['of JSON', `[${' '.repeat(200 * kib)}]`],
    ['that are not UTF-8', Buffer.alloc(200 * kib, 0xff)],
    ['that are small', 'a'],
    ['that are empty', ''],
  ])('%s is that of the messages, in parts of bounded size', async (_, body) => {
    const rows = [of(body), of('{}'), of(body)]
    const parts: string[] = []
    const { pieces } = streamed(
      '{"items":[',
      [() => rows, () => [], () => rows.slice(1)],
      '],"nextAfter":"a"}',
    )
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
      if (next.value instanceof InParts) parts.push(...next.value.texts)
      else parts.push(next.value)
    }
    const page = alone(rows[0]!, { nextAfter: 'a' })
    expect([...page.texts].join('') === encode({ items: [messageOf(rows[0]!)], nextAfter: 'a' })).toBe(true)
    expect(page.held_bytes).toBeGreaterThanOrEqual(2 * rows[0]!.body.length)
    const expected = encode({ items: [...rows, ...rows.slice(1)].map(messageOf), nextAfter: 'a' })
    expect(parts.join('') === expected).toBe(true) // not toBe: nobody reads a diff of megabytes
    const stored = rows[0]!.kind === 'text' && rows[0]!.encoding === 'text' ? 0 : rows[0]!.body.length
    expect(Math.max(...parts.map(({ length }) => length))).toBeLessThanOrEqual(Math.max(300 * kib, stored))
  })
})
