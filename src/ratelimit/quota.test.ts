import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sweep } from '../../test/support/maintenance.ts'
import { forEachRacedService } from '../../test/support/service.ts'
import { day_ms } from '../base/clock.ts'
import { default_plans } from '../features.ts'

const keys_max = 20
const folder = mkdtempSync(join(tmpdir(), 'waystation-plans-'))
const plans_file = join(folder, 'plans.json')
writeFileSync(
  plans_file,
  JSON.stringify({ ...default_plans, pro: { ...default_plans.pro!, kv_keys: keys_max } }),
)
afterAll(() => rmSync(folder, { recursive: true }))

forEachRacedService(
  'Rate counters and the quota of keys',
  (service) => {
    const check = (key: string, name: string, windowSeconds: number) =>
      service.ask('POST', '/api/rate-limit/check', { key, body: { key: name, limit: 5, windowSeconds } })

    test('counters that have expired never fill the quota, however many new ones come at once', async () => {
      for (let round = 0; round < 8; round++) {
        const { api_key } = await service.signUp('pro')
        for (let i = 0; i < keys_max; i++) expect((await check(api_key, `old-${i}`, 1)).status).toBe(200)
        service.clock.advance(1_000)
        const fresh = Array.from({ length: 8 }, (_, i) => check(api_key, `new-${i}`, 60))
        expect((await Promise.all(fresh)).map(({ status }) => status)).toEqual(Array(8).fill(200))
      }
    })

    test('a counter over the quota is 402 and counts nothing; at the limit it is the last', async () => {
      const { api_key } = await service.signUp('pro')
      for (let i = 0; i < keys_max; i++) expect((await check(api_key, `k-${i}`, 60)).status).toBe(200)
      const refused = await check(api_key, 'one more', 60)
      expect([refused.status, refused.body.error.code, refused.body.error.details]).toEqual([
        402,
        'QUOTA_EXCEEDED',
        { quota: 'kv_keys', used: keys_max, limit: keys_max },
      ])
    })

    test('windows that come and go leave the versions of keys alone: a new key begins at 1', async () => {
      const { api_key } = await service.signUp('pro')
      for (let window = 0; window < 5; window++) {
        await check(api_key, 'often', 1)
        service.clock.advance(1_000)
      }
      await sweep(service.app.db, service.clock)
      service.clock.advance(day_ms)
      await sweep(service.app.db, service.clock)
      const put = await service.ask('PUT', '/v1/kv/state/new', { key: api_key, body: { value: 1 } })
      expect(put.body.version).toBe(1)
    })
  },
  { PLANS_FILE: plans_file },
)
