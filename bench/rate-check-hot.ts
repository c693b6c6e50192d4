import type { HotPath } from './hot-path.ts'
import { bodyOfCheck, hitsOf } from './rate-check.ts'

const body = bodyOfCheck(0)

export const rateCheckHot: HotPath = {
  name: 'rate-check-hot',
  summary: 'count a hit on one counter, the same for all',
  nginx_multiple_max: null,
  request: () => ({ method: 'POST', path: '/api/rate-limit/check', body }),
  preload: async () => {},
  kept: (client) => hitsOf(client, 0),
}
