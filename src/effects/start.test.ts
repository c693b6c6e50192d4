// A start, and a claim again, while others release the lease, and take it.

import { expect, test } from 'bun:test'
import { type Between, withChangesBetween } from '../../test/support/between.ts'
import {
  approved,
  ask,
  claim,
  claimed,
  decide,
  expectRefusal,
  proposed,
  read,
} from '../../test/support/effects.ts'
import { forEachService } from '../../test/support/service.ts'
import { second_ms } from '../base/clock.ts'
import { hashKey, hashOf } from '../base/keys.ts'
import type { Tx } from '../db/db.ts'
import * as permits from './permit-store.ts'
import { release, succeed } from './report-store.ts'
import * as store from './store.ts'

const taken_token = 'a-token-of-another-01'

/** Another gets the lease. */
const takenOf = (tenant_id: string, id: string, name: string): Between => ({
  name,
  async change(tx: Tx) {
    const given = { agent_id: 'agent-two', lease_token_hash: hashKey(taken_token), lease_ms: 9 * second_ms }
    const known = { payload_hash: '', policies_known: 1 as const }
    expect(await store.start(tx, tenant_id, id, { ...given, ...known })).not.toBeNull()
  },
})

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
    const taken = takenOf(tenant_id, id, 'effects.start')
    const changes = [released(lease.lease_token), ...(times === 2 ? [taken, released(taken_token)] : [])]
    const started = await withChangesBetween(service.app.db, changes, () =>
      ask(service, tenant.api_key, id, 'start'),
    )
    expect([started.status, started.body]).toMatchObject([200, { status: 'running', fence: times + 1 }])
    expect(await read(service, tenant, id)).toMatchObject({ held_by: tenant.agent_id, fence: times + 1 })
  })

  test.each(['ready', 'approved'])(
    'under the token of a lease that was released begins nothing, also where the release came between: %s',
    async (status) => {
      const tenant = await service.signUp()
      const { tenant_id, api_key } = tenant
      const effect = status === 'ready' ? await claimed(service, tenant) : await approved(service, tenant)
      const { id } = effect
      if (status === 'ready') {
        const failure = { lease_token: effect.lease_token, error: 'busy', retry: true }
        await ask(service, api_key, id, 'fail', failure)
      }
      await service.app.db.write(tenant_id, async (tx) => {
        await takenOf(tenant_id, id, '').change(tx)
        const before = (await store.find(tx, tenant_id, id))!
        const lease_token_hash = hashKey(taken_token)
        const released = await release(tx, tenant_id, before, { lease_token_hash, error: 'busy' })
        expect(released).toMatchObject({ status })
        const lease = { lease_token_hash, agent_id: 'agent-two', lease_ms: 0, payload_hash: '' }
        const known = { ...lease, policies_known: 1 as const }
        expect(await store.start(tx, tenant_id, id, known)).toBeNull()
        const under = { checkpoint_id: 'chk_1', permit_expires_at: null }
        if (status === 'ready')
          expect(await permits.startUnder(tx, tenant_id, id, { ...known, ...under })).toBeNull()
      })
      const late = await ask(service, api_key, id, 'start', { lease_token: taken_token })
      expectRefusal(late, 'EFFECT_NOT_HELD', { status })
    },
  )

  test('by a claim is for the bytes that it sends: not for an edit that was approved between its statements', async () => {
    const tenant = await service.signUp()
    const { tenant_id, api_key } = tenant
    const { id, key, lease_token } = await claimed(service, tenant)
    await ask(service, api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
    const edited: Between = {
      name: 'effects.start',
      async change(tx) {
        expect(await permits.propose(tx, tenant_id, id, 'chk_edited')).not.toBeNull()
        const edit = { effective_payload: '{}', effective_hash: hashOf('{}'), more_bytes: 2 }
        const permit = { ...edit, permit_expires_at: null }
        expect(await permits.approve(tx, tenant_id, id, 'chk_edited', permit)).not.toBeNull()
      },
    }
    const answer = await withChangesBetween(service.app.db, [edited], () => claim(service, tenant, { key }))
    expect([answer.status, answer.body]).toMatchObject([
      200,
      { status: 'approved', effective_payload: {}, lease_token: null },
    ])
  })

  test('by a claim under an approval begins again when another has ended it between the statements', async () => {
    const tenant = await service.signUp()
    const { tenant_id, api_key } = tenant
    const { id, key, lease_token } = await claimed(service, tenant)
    await ask(service, api_key, id, 'fail', { lease_token, error: 'busy', retry: true })
    const { checkpoint_id } = await proposed(service, tenant)
    await decide(service, tenant, checkpoint_id, 'approve', { uses: 9 })
    const taken = takenOf(tenant_id, id, 'effects.start_under')
    const ended: Between = {
      name: taken.name,
      async change(tx) {
        await taken.change(tx)
        const success = { lease_token_hash: hashKey(taken_token), result: null, more_bytes: 0 }
        expect(await succeed(tx, tenant_id, id, success)).not.toBeNull()
      },
    }
    // The success of the other is undone with the use, because it stands in the same transaction.
    const answer = await withChangesBetween(service.app.db, [ended], () =>
      claim(service, tenant, { key, approval: { checkpoint_id } }),
    )
    expect([answer.status, answer.body]).toMatchObject([201, { id, fence: 2, checkpoint_id }])
    const shown = await service.ask('GET', `/v1/checkpoints/${checkpoint_id}`, { key: api_key })
    expect(shown.body.uses_left).toBe(8)
  })
})
