import type { HotPath } from './hot-path.ts'
import { keys_count, pathOfKey, putAllKeys } from './kv-put.ts'

export const kvGet: HotPath = {
  name: 'kv-get',
  summary: 'read a random one of 1,000 keys, values of 100 bytes',
  nginx_multiple_max: 3.9,
  request: () => ({ method: 'GET', path: pathOfKey(Math.floor(Math.random() * keys_count)) }),
  preload: putAllKeys,
}
