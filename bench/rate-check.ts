import type { HotPath } from './hot-path.ts'
import type { Client } from './service.ts'

const keys_count = 1_000
const at_once_max = 50
const path = '/api/rate-limit/check'

export const rateCheck: HotPath = {
  name: 'rate-check',
  summary: 'count a hit on a random one of 1,000 counters, fixed windows, never blocked',
  nginx_multiple_max: null,
  request: () => ({ method: 'POST', path, body: bodyOfCheck(Math.floor(Math.random() * keys_count)) }),
  preload: checkAllKeys,
  kept: hitsOfAllKeys,
}

/** A limit that nothing reaches, in a window that no run outlives. */
export function bodyOfCheck(n: number): string {
  return `{"key":"${keyOf(n)}","limit":1000000000,"windowSeconds":86400}`
}

function keyOf(n: number): string {
  return `host-${String(n).padStart(4, '0')}.example.com`
}

async function checkAllKeys(client: Client): Promise<void> {
  for (let from = 0; from < keys_count; from += at_once_max) {
    await Promise.all(
      Array.from({ length: at_once_max }, (_, i) =>
        client.send({ method: 'POST', path, body: bodyOfCheck(from + i) }),
      ),
    )
  }
}

async function hitsOfAllKeys(client: Client): Promise<number> {
  let hits = 0
  for (let n = 0; n < keys_count; n++) hits += await hitsOf(client, n)
  return hits
}

export async function hitsOf(client: Client, n: number): Promise<number> {
  return (await client.read<{ data: { count: number } }>(`/api/rate-limit/${keyOf(n)}`)).data.count
}
