import type { HotPath } from './hot-path.ts'
import type { Client } from './service.ts'

export const keys_count = 1_000
const at_once_max = 50

export const kvPut: HotPath = {
  name: 'kv-put',
  summary: 'overwrite a random one of 1,000 keys, values of 100 bytes, no TTL',
  nginx_multiple_max: 5,
  request: () => putOf(Math.floor(Math.random() * keys_count)),
  preload: putAllKeys,
  kept: versionsOfAllKeys,
}

export function pathOfKey(n: number): string {
  return `/v1/kv/bench/key-${String(n).padStart(4, '0')}`
}

export function bodyOfPut(n: number): string {
  const name = String(n).padStart(4, '0')
  return `{"value":{"task":"summarise-${name}","state":"running","step":12,"of":40,"note":"waits for the next page"}}`
}

export async function putAllKeys(client: Client): Promise<void> {
  for (let from = 0; from < keys_count; from += at_once_max) {
    await Promise.all(Array.from({ length: at_once_max }, (_, i) => client.send(putOf(from + i))))
  }
}

function putOf(n: number) {
  return { method: 'PUT', path: pathOfKey(n), body: bodyOfPut(n) } as const
}

/** Every put of a key raises its version by one. */
async function versionsOfAllKeys(client: Client): Promise<number> {
  let versions = 0
  let cursor: string | null = ''
  while (cursor !== null) {
    const after: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const page: { items: { version: number }[]; next_cursor: string | null } = await client.read(
      `/v1/kv/bench?limit=200${after}`,
    )
    for (const { version } of page.items) versions += version
    cursor = page.next_cursor
  }
  return versions
}
