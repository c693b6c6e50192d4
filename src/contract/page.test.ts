import { expect, test } from 'bun:test'
import { limits } from '../base/limit.ts'
import { cursorKeyUnder } from '../secrets/service.ts'
import '../features.ts'
import { page_bytes_max, pageOf } from './page.ts'

const context = {
  caller: { tenant_id: 'ten_a' },
  dependencies: { keys: { cursor: cursorKeyUnder('the secret of these tests') } },
  path: () => '/v1/list',
} as unknown as Parameters<typeof pageOf>[0]

/** Items of these lengths, and whether others follow. Of a look that its bytes or its end have ended. */
function page(...texts: string[]) {
  const rows = texts.map((text, id) => ({ id, text, bytes: Buffer.byteLength(text) }))
  const request = { rows_max: 51, bytes_max: page_bytes_max + 1, after: null }
  const { items, next_cursor } = pageOf(context, request, {
    rows,
    itemOf: ({ text }) => text,
    positionOf: ({ id }) => [id],
  })
  return [items.map(({ text }) => JSON.parse(text).length), next_cursor !== null]
}

const of = (bytes: number) => 'x'.repeat(bytes)

/** Of an item that is a text: its quotes, and a comma. */
const around = 3

test('a page whose first item alone is more than a page goes on after it', () => {
  expect(page(of(page_bytes_max))).toEqual([[page_bytes_max], false])
  expect(page(of(page_bytes_max + 1))).toEqual([[page_bytes_max + 1], true])
})

test('a page ends before the item that would take it past its bytes', () => {
  const left = page_bytes_max - (1 + around) - around
  expect(page(of(1), of(left))).toEqual([[1, left], false])
  expect(page(of(1), of(left + 1))).toEqual([[1], true])
})

test('the bytes of a page are those of its JSON in UTF-8', () => {
  const [control, euro] = ['\u0001', '\u20ac']
  const most = (bytes: number) => Math.floor((page_bytes_max - (1 + around) - around) / bytes)
  for (const [character, bytes] of [
    [control, 6],
    ['"', 2],
    [euro, 3],
  ] as const) {
    const text = character.repeat(most(bytes))
    expect(page('x', text)).toEqual([[1, text.length], false])
    expect(page('x', text + character)).toEqual([[1], true])
  }
})

test('no listed row comes to a page: its largest texts together are less', () => {
  const names = ['json.value_bytes', 'json.metadata_bytes', 'checkpoints.prompt_bytes', 'dlq.error_bytes']
  const bytes = names.reduce((sum, name) => sum + limits.get(name)!.value, 0)
  expect(bytes).toBeLessThan(page_bytes_max)
})
