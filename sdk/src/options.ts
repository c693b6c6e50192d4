// Methods take fields of the request and options of the call in one object; they are separated here.

import { Pages } from './pages.ts'
import type { CallOptions, CreateOptions, Input, Transport } from './transport.ts'
import type { Operations } from './types.ts'

export type Body<K extends keyof Operations> = Operations[K]['body']
export type Query<K extends keyof Operations> = Operations[K]['query'] & CallOptions
export type Answer<K extends keyof Operations> = Operations[K]['answer']

const names = ['signal', 'timeout_ms', 'retries', 'request_id', 'idempotency_key'] as const

export function split<T extends object>(
  given: T & CreateOptions,
): [fields: Omit<T, (typeof names)[number]>, options: CallOptions] {
  const fields = { ...given } as Record<string, unknown>
  const options: Record<string, unknown> = {}
  for (const name of names) {
    if (given[name] !== undefined) options[name] = given[name]
    delete fields[name]
  }
  return [fields as T, options]
}

/** Operations that answer an object with these members. */
type Answering<A> = { [K in keyof Operations]: Answer<K> extends A ? K : never }[keyof Operations]
type CursorList = Answering<{ items: unknown[]; next_cursor: string | null }>
type OffsetList = Answering<{ items: unknown[]; total: number }>

/** A list under /v1. */
export function listOf<K extends CursorList>(
  transport: Transport,
  name: K,
  params: Operations[K]['params'],
  given: Query<K>,
): Pages<Answer<K>['items'][number]> {
  const [query, options] = split(given) as [{ cursor?: string }, CallOptions]
  return new Pages<Answer<K>['items'][number]>(query.cursor, (cursor) => {
    const input = { params, query: { ...query, cursor } } as Input<K>
    return transport.call(name, input, options)
  })
}

/** A list under /api. Its cursor is the number of items before the page. */
export function offsetListOf<K extends OffsetList>(
  transport: Transport,
  name: K,
  params: Operations[K]['params'],
  given: Query<K>,
): Pages<Answer<K>['items'][number]> {
  const [query, options] = split(given) as [{ offset?: number }, CallOptions]
  const first = query.offset === undefined ? undefined : String(query.offset)
  return new Pages<Answer<K>['items'][number]>(first, async (cursor) => {
    const offset = Number(cursor ?? 0)
    const input = { params, query: { ...query, offset } } as Input<K>
    const { items, total } = await transport.call(name, input, options)
    const next = offset + items.length
    return { items, next_cursor: items.length > 0 && next < total ? String(next) : null }
  })
}

/** The header of a condition on the stored version. */
export function ifMatch(version: number | undefined): Record<string, string> | undefined {
  return version === undefined ? undefined : { 'if-match': `"${version}"` }
}
