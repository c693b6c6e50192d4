// Stored bytes that two calls change at once: each counts from the row that it changes.

import { expect, test } from 'bun:test'
import { type Between, withChangesBetween } from '../../test/support/between.ts'
import { ask, claimed, read, runOut } from '../../test/support/effects.ts'
import { forEachService } from '../../test/support/service.ts'
import { hashKey } from '../base/keys.ts'
import { recount } from '../db/recount.ts'
import { textBytes } from '../db/stored.ts'
import { recounted_tables } from '../features.ts'
import * as policies from './policy-store.ts'
import { release } from './report-store.ts'
import * as store from './store.ts'

forEachService(
  'The stored bytes of effects',
  (service) => {
    /** Bytes of rows that the counter lacks. */
    async function missing(tenant_id: string): Promise<number> {
      await service.app.db.maintain()
      return recount(service.app.db, recounted_tables, tenant_id)
    }

    test.each([[null], [['admin']]])(
      'and their policies are exact when another call sets a policy between the statements: %j',
      async (approvers) => {
        const { tenant_id, admin_key } = await service.signUp()
        const set = (body: object) =>
          service.ask('PUT', '/v1/effect-policies/refund', { key: admin_key, body })
        const policy = { approval: 'optional', ...(approvers && { approvers }) }
        expect((await set(policy)).status).toBe(200)
        const other: Between = {
          name: 'effects.update_policy',
          async change(tx) {
            const before = (await policies.find(tx, tenant_id, 'refund'))!
            const changed = { ...before, approvers: approvers ? null : '["admin"]' }
            expect(await policies.update(tx, tenant_id, changed, before)).not.toBeNull()
            tx.stores(tenant_id, textBytes(changed.approvers) - textBytes(before.approvers))
          },
        }
        expect(await missing(tenant_id)).toBe(0)
        const answer = await withChangesBetween(service.app.db, [other], () => set(policy))
        expect([answer.status, answer.body]).toMatchObject([200, { approvers }])
        expect(await missing(tenant_id)).toBe(0)
      },
    )

    test('are exact when the holder of the last lease reports between the statements of a verdict', async () => {
      const tenant = await service.signUp()
      const { tenant_id, admin_key } = tenant
      const { id, lease_token } = await claimed(service, tenant, { on_unknown: 'retry' })
      await runOut(service)
      const reported: Between = {
        name: 'effects.resolve',
        async change(tx) {
          const before = (await store.find(tx, tenant_id, id))!
          const error = 'the card was declined'
          const failure = { lease_token_hash: hashKey(lease_token), error }
          expect(await release(tx, tenant_id, before, failure)).not.toBeNull()
          tx.stores(tenant_id, textBytes(error))
        },
      }
      await withChangesBetween(service.app.db, [reported], () =>
        ask(service, admin_key, id, 'resolve', { outcome: 'failed', error: 'not wanted' }),
      )
      expect(await read(service, tenant, id)).toMatchObject({ status: 'failed', error: 'not wanted' })
      expect(await missing(tenant_id)).toBe(0)
    })
  },
  {},
  { background: false },
)
