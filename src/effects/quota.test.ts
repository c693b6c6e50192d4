// The quota of effects: what counts in it, and what does not any more.

import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { iso, second_ms } from '../../src/base/clock.ts'
import {
  approval,
  ask,
  claim,
  claimed,
  decide,
  eventsOf,
  proposed,
  quotaOf,
  read,
} from '../../test/support/effects.ts'
import { forEachService } from '../../test/support/service.ts'
import { default_plans } from '../features.ts'

const folder = mkdtempSync(join(tmpdir(), 'waystation-effects-'))
const plans_file = join(folder, 'plans.json')
const { free, pro } = default_plans
writeFileSync(plans_file, JSON.stringify({ free: { ...free, effects: 3 }, pro }))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

forEachService(
  'The quota of effects',
  (service) => {
    test('is not filled by those whose permit is over: a claim at the limit ends them', async () => {
      const tenant = await service.signUp()
      const expires_at = iso(service.clock.now() + 60 * second_ms)
      const permitted = async () => {
        const effect = await proposed(service, tenant)
        expect((await decide(service, tenant, effect.checkpoint_id, 'approve', { expires_at })).status).toBe(
          200,
        )
        return effect
      }
      const [never, again] = [await permitted(), await permitted()]
      const { lease_token } = (await ask(service, tenant.api_key, again.id, 'start')).body
      const report = { lease_token, error: 'busy', retry: true }
      expect((await ask(service, tenant.api_key, again.id, 'fail', report)).body.status).toBe('approved')
      const running = await claimed(service, tenant, { lease_seconds: 3_600 })
      const refused = await claim(service, tenant)
      expect(refused.body.error).toMatchObject({
        code: 'QUOTA_EXCEEDED',
        details: { quota: 'effects', used: 3, limit: 3 },
      })

      service.clock.advance(60 * second_ms)
      expect(await quotaOf(service, tenant)).toBe(1)
      await claimed(service, tenant)
      expect(await quotaOf(service, tenant)).toBe(2)
      for (const { id, checkpoint_id } of [never, again]) {
        expect(await read(service, tenant, id)).toMatchObject({ status: 'rejected', refused_as: 'expired' })
        const { type, actor, data } = (await eventsOf(service, tenant, id)).at(-1)
        expect([type, actor, data.status, data.checkpoint_id]).toEqual([
          ...['effect.rejected', 'service', 'expired', checkpoint_id],
        ])
      }
      expect((await read(service, tenant, running.id)).status).toBe('running')
      await proposed(service, tenant, { approval })
      expect((await claim(service, tenant)).status).toBe(402)
    })

    test('is filled by one whose last lease nobody has reported, also when its permit is over', async () => {
      const tenant = await service.signUp()
      const { id, checkpoint_id } = await proposed(service, tenant, { on_unknown: 'retry', lease_seconds: 1 })
      const expires_at = iso(service.clock.now() + 60 * second_ms)
      expect((await decide(service, tenant, checkpoint_id, 'approve', { expires_at })).status).toBe(200)
      expect((await ask(service, tenant.api_key, id, 'start')).status).toBe(200)
      for (let i = 0; i < 2; i += 1) await claimed(service, tenant, { lease_seconds: 3_600 })
      service.clock.advance(second_ms)
      await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
      service.clock.advance(60 * second_ms)
      expect((await read(service, tenant, id)).status).toBe('approved')
      expect(await quotaOf(service, tenant)).toBe(3)
      expect((await claim(service, tenant)).status).toBe(402)
    })
  },
  { PLANS_FILE: plans_file },
)
