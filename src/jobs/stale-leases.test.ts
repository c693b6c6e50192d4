import { expect, test } from 'bun:test'
import { at, begin, hour_s, schedule, withReceiver, withService } from '../../test/support/advance.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import type { TestService } from '../../test/support/service.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { StaleLeases } from './stale-leases.ts'

const LEASE = unnamedAcrossTenants(
  'test.lease',
  'update jobs set next_at = :due_at, lease_until = :until, fence = :fence',
)
const LEASE_UNTIL = unnamedAcrossTenants<{ lease_until: number }>(
  'test.lease_until',
  'select lease_until from jobs',
)
const until = begin + hour_s * 1_000

const lease = ({ app }: TestService, fence: number) =>
  app.db.write((tx) => tx.run(LEASE, { due_at: begin, until, fence }))
const leaseUntil = async ({ app }: TestService) => (await app.db.one(LEASE_UNTIL, {}))!.lease_until

forEachDatabase('A lease that a test clock waits for', (databases) => {
  test('ends when it was seen for 30 s of real time, not before, and each lease counts for itself', async () => {
    await withReceiver(async (receiver) => {
      await withService(await databases.newUrl(), async (service) => {
        const { api_key } = await service.signUp()
        await schedule(service, api_key, receiver.url, hour_s)
        const leases = new StaleLeases(service.app.db)
        const looksAfter = async (ms: number) => {
          service.clock.advance(ms)
          await leases.look()
          return leaseUntil(service)
        }
        await lease(service, 1)
        expect(await looksAfter(0)).toBe(until)
        expect(await looksAfter(29_999)).toBe(until)
        await lease(service, 2) // by a node that lives
        expect(await looksAfter(1)).toBe(until)
        expect(await looksAfter(29_999)).toBe(until)
        expect(new Date(await looksAfter(1)).toISOString()).toBe(at(60))
      })
    })
  })
})
