// Methods take fields of the request and options of the call in one object; this tells them apart.

import { Pages } from './pages.ts'
import type { CallOptions, CreateOptions, Input, Transport } from './transport.ts'
import type { Operations } from './types.ts'

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

type ListName = {
  [K in keyof Operations]: Operations[K]['answer'] extends { items: unknown[]; next_cursor: string | null }
    ? K
    : never
}[keyof Operations]

type ItemOf<K extends ListName> = Operations[K]['answer']['items'][number]

/** A list under /v1. */
export function listOf<K extends ListName>(
  transport: Transport,
  name: K,
  params: Operations[K]['params'],
  given: Operations[K]['query'] & CallOptions,
): Pages<ItemOf<K>> {
  const [query, options] = split(given) as [{ cursor?: string }, CallOptions]
  return new Pages<ItemOf<K>>(query.cursor, (cursor) => {
    const input = { params, query: { ...query, cursor } } as Input<K>
    return transport.call(name, input, options)
  })
}
