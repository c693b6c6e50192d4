import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import {
  claimRefusal,
  type DlqStatus,
  type ItemRow,
  isOpen,
  moveRefusal,
  moves,
  seenAt,
  statuses,
} from './item.ts'

const now = Date.UTC(2026, 0, 1)

function item(change: Partial<ItemRow>): ItemRow {
  return {
    id: 'dlq_1',
    status: 'failed',
    payload: '{}',
    error: 'boom',
    cause: 'boom',
    workflow_id: null,
    source: 'agent',
    source_id: null,
    agent_id: 'agent-one',
    lock_seconds: 300,
    locked_by: null,
    locked_until: null,
    lock_token_hash: null,
    claims: 0,
    created_at: now,
    updated_at: now,
    resolved_at: null,
    redriven_as: null,
    ...change,
  }
}

const claimed = item({
  status: 'claimed',
  locked_by: 'agent-one',
  locked_until: now + 1_000,
  lock_token_hash: 'lck_1',
  claims: 1,
})

describe('a lock', () => {
  test.each([
    ['a millisecond before it runs out', now + 999, claimed],
    [
      'when it runs out',
      now + 1_000,
      { ...claimed, status: 'failed', locked_by: null, locked_until: null, lock_token_hash: null },
    ],
    [
      'long after it ran out',
      now + 1e12,
      { ...claimed, status: 'failed', locked_by: null, locked_until: null, lock_token_hash: null },
    ],
  ] as [string, number, ItemRow][])('%s', (_, at, expected) => {
    expect(seenAt(claimed, at)).toEqual(expected)
  })

  test.each(['failed', 'resolved', 'archived'] as const)('is nothing that a %s item has', (status) => {
    expect(seenAt(item({ status }), now)).toEqual(item({ status }))
  })
})

test('failed and claimed items count against the quota, resolved and archived ones do not', () => {
  expect(statuses.filter(isOpen)).toEqual(['failed', 'claimed'])
})

describe('the table of moves', () => {
  test('names every status that there is, and no other', () => {
    const named = Object.values(moves).flatMap(({ from, to }) => [...from, to])
    expect(new Set<DlqStatus>(named)).toEqual(new Set(statuses))
  })

  test('is the state diagram of docs/dlq.md', () => {
    const page = readFileSync(new URL('../../docs/dlq.md', import.meta.url), 'utf8')
    const drawn = [...page.matchAll(/^ +(\w+) --> (\w+): (\w+)$/gm)].map(([, from, to, verb]) => [
      from,
      verb,
      to,
    ])
    const moved = Object.entries(moves).flatMap(([verb, { from, to }]) =>
      from.map((status) => [status, verb, to]),
    )
    expect(drawn.toSorted()).toEqual(moved.toSorted())
  })
})

describe('a refused move', () => {
  test('of an item that is not there is DLQ_NOT_FOUND', () => {
    expect(claimRefusal(null).code).toBe('DLQ_NOT_FOUND')
    for (const verb of ['extend', 'release', 'fail', 'resolve'] as const) {
      expect(moveRefusal(null, verb).code).toBe('DLQ_NOT_FOUND')
    }
  })

  test.each([
    ['claimed', 'ALREADY_CLAIMED', undefined],
    ['resolved', 'INVALID_STATE', { status: 'resolved' }],
    ['archived', 'INVALID_STATE', { status: 'archived' }],
  ] as const)('claim of a %s item is %s', (status, code, details) => {
    expect(claimRefusal(item({ status }))).toMatchObject({ code, status: 409, details })
  })

  test.each(
    (['extend', 'release', 'fail', 'resolve'] as const).flatMap((verb) =>
      statuses.map((status) => [verb, status] as const),
    ),
  )('%s of a %s item: not claimed comes before not held', (verb, status) => {
    const expected =
      status === 'claimed'
        ? { code: 'LOCK_NOT_HELD', details: undefined }
        : { code: 'INVALID_STATE', details: { status } }
    expect(moveRefusal(item({ status }), verb)).toMatchObject({ ...expected, status: 409 })
  })
})
