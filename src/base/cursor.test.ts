import { describe, expect, test } from 'bun:test'
import { type CursorScope, decodeCursor, encodeCursor, type Position } from './cursor.ts'

const scope: CursorScope = { key: Buffer.alloc(32, 7), tenant_id: 'ten_a', path: '/v1/kv/state' }
const positions: Position[] = [
  [],
  ['last-key'],
  [1_767_225_600_000, 'agent-one'],
  ['é 😀 e\u0301 "quoted" \\ \n'],
  ['', 0, -1, 1.5],
  ['x'.repeat(512)],
]

describe('a cursor', () => {
  test.each(
    positions.map((position): [string, Position] => [JSON.stringify(position).slice(0, 60), position]),
  )('decodes to its position: %s', (_, position) => {
    const cursor = encodeCursor(scope, position)
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(decodeCursor(scope, cursor)).toEqual(position)
    expect(encodeCursor(scope, position)).toBe(cursor)
  })

  test.each([
    ['key', { ...scope, key: Buffer.alloc(32, 8) }],
    ['tenant', { ...scope, tenant_id: 'ten_b' }],
    ['path', { ...scope, path: '/v1/kv/states' }],
    ['empty path', { ...scope, path: '' }],
  ])('is worth nothing under another %s', (_, other) => {
    expect(decodeCursor(other, encodeCursor(scope, ['a']))).toBeNull()
    expect(decodeCursor(scope, encodeCursor(other, ['a']))).toBeNull()
  })

  test('is worth nothing with any character changed, removed or added', () => {
    const cursor = encodeCursor(scope, [12, 'some-key'])
    for (let at = 0; at < cursor.length; at++) {
      const [before, after] = [cursor.slice(0, at), cursor.slice(at + 1)]
      for (const character of ['A', 'B', '9', '-', '_', '=', '+', '/', ' ', '%', 'é', '\0', '']) {
        if (character === cursor[at]) continue
        const changed = before + character + after
        expect([changed, decodeCursor(scope, changed)]).toEqual([changed, null])
      }
      const longer = `${before}A${cursor.slice(at)}`
      if (longer !== cursor) expect(decodeCursor(scope, longer)).toBeNull()
    }
  })

  test.each(['', 'x', 'AAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAAAA', '{}', '[]', 'null', 'x'.repeat(2_048)])(
    'is not %j',
    (text) => {
      expect(decodeCursor(scope, text)).toBeNull()
    },
  )

  test('has one spelling: padding or the other alphabet of base64 makes it none', () => {
    const cursor = encodeCursor(scope, ['\u00ff\u00fe?>~'])
    expect(decodeCursor(scope, `${cursor}=`)).toBeNull()
    expect(decodeCursor(scope, ` ${cursor}`)).toBeNull()
    const standard = Buffer.from(cursor, 'base64url').toString('base64')
    expect(standard === cursor ? null : decodeCursor(scope, standard)).toBeNull()
  })
})
