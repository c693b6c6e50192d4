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

/** Of a look that its bytes or its end have ended. */
function page(...bytes: number[]) {
  const rows = bytes.map((bytes, id) => ({ id, bytes }))
  const request = { rows_max: 51, bytes_max: page_bytes_max + 1, after: null }
  const { items, next_cursor } = pageOf(context, request, {
    rows,
    itemOf: ({ id }) => id,
    positionOf: ({ id }) => [id],
  })
  return [items, next_cursor !== null]
}

test('a page whose first row alone is more than a page goes on after it', () => {
  expect(page(page_bytes_max)).toEqual([[0], false])
  expect(page(page_bytes_max + 1)).toEqual([[0], true])
})

test('a page ends before the row that would take it past its bytes', () => {
  expect(page(1, page_bytes_max - 1)).toEqual([[0, 1], false])
  expect(page(1, page_bytes_max)).toEqual([[0], true])
})

test('no listed row comes to a page: its largest texts together are less', () => {
  const names = ['json.value_bytes', 'json.metadata_bytes', 'checkpoints.prompt_bytes', 'dlq.error_bytes']
  const bytes = names.reduce((sum, name) => sum + limits.get(name)!.value, 0)
  expect(bytes).toBeLessThan(page_bytes_max)
})
