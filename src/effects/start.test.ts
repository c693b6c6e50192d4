// A start while others release the lease, and take it.

import { expect, test } from 'bun:test'
import { type Between, withChangesBetween } from '../../test/support/between.ts'
import { approved, ask, claimed, read } from '../../test/support/effects.ts'
import { forEachService } from '../../test/support/service.ts'
import { second_ms } from '../base/clock.ts'
import { hashKey } from '../base/keys.ts'
import type { Tx } from '../db/db.ts'
import { release } from './report-store.ts'
import * as store from './store.ts'

const taken_token = 'a-token-of-another-01'

forEachService('A start of an effect', (service) => {
  test.each([
    ['ready', 1],
    ['ready', 2],
    ['approved', 1],
    ['approved', 2],
  ])('gets the lease that is released between its statements: %s, %i times', async (status, times) => {
    const tenant = await service.signUp()
    const { tenant_id } = tenant
    const lease =
      status === 'ready'
        ? await claimed(service, tenant)
        : (await ask(service, tenant.api_key, (await approved(service, tenant)).id, 'start')).body
    const { id } = lease
    const released = (lease_token: string): Between => ({
      name: 'effects.find',
      async change(tx: Tx) {
        const before = (await store.find(tx, tenant_id, id))!
        const failure = { lease_token_hash: hashKey(lease_token), error: 'busy' }
        expect(await release(tx, tenant_id, before, failure)).toMatchObject({ status })
      },
    })
    const taken: Between = {
      name: 'effects.start',
      async change(tx: Tx) {
        const given = {
          agent_id: 'agent-two',
          lease_token_hash: hashKey(taken_token),
          lease_ms: 9 * second_ms,
        }
        const known = { payload_hash: '', policies_known: 1 as const }
        expect(await store.start(tx, tenant_id, id, { ...given, ...known })).not.toBeNull()
      },
    }
    const changes = [released(lease.lease_token), ...(times === 2 ? [taken, released(taken_token)] : [])]
    const started = await withChangesBetween(service.app.db, changes, () =>
      ask(service, tenant.api_key, id, 'start'),
    )
    expect([started.status, started.body]).toMatchObject([200, { status: 'running', fence: times + 1 }])
    expect(await read(service, tenant, id)).toMatchObject({ held_by: tenant.agent_id, fence: times + 1 })
  })
})
