import type { HotPath } from './hot-path.ts'
import { bodyOfPut } from './kv-put.ts'

export const kvPutNew: HotPath = {
  name: 'kv-put-new',
  summary: 'create a key, which counts against the quota; values of 100 bytes, no TTL',
  nginx_multiple_max: null,
  request: (n, run) => ({ method: 'PUT', path: `/v1/kv/bench/${run}-${n}`, body: bodyOfPut(n % 10_000) }),
  preload: async () => {},
  async kept(client) {
    const { quota } = await client.readTenant<{ quota: { kv_keys: { used: number } } }>()
    return quota.kv_keys.used
  },
}
