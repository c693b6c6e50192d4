// A settlement whose answer from the database was lost runs again: it finds what it has done.

import { expect, test } from 'bun:test'
import { forEachService } from '../../test/support/service.ts'
import { happen, shown, subscribed, updates } from '../../test/support/subscriptions.ts'
import { minute_ms } from '../base/clock.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { event_types, follows } from '../features.ts'
import { type AttemptResult, lease_ms, type Sequence } from '../jobs/job.ts'
import { lease as leaseJobs } from '../jobs/store.ts'
import * as journal from '../journal/service.ts'
import { subscription_job } from './jobs.ts'
import { attempts_max } from './subscription.ts'

forEachService('A settlement of a subscription', (service) => {
  const dependencies = { event_types, jobs: { wake: () => {} } } as unknown as Dependencies

  async function delivering(count: number) {
    const { db } = service.app
    const tenant = await service.signUp()
    const { tenant_id } = tenant
    const id = await subscribed(service, tenant, { url: 'http://127.0.0.1:9/', types: updates })
    await happen(service, tenant, count)
    await journal.number(db, dependencies, follows, tenant_id)
    const lease = () =>
      db.write(async (tx) => {
        const [job] = await leaseJobs(tx, tenant_id, subscription_job, [id], tx.now + lease_ms)
        return job!
      })
    const reached = await journal.lastSeq(db, tenant_id)
    const events = await journal.page(db, tenant_id, {}, { after: reached - count, rows_max: count })
    const result = (ok: boolean): AttemptResult => ({
      ...{ ok, status_code: ok ? 204 : 503, error: ok ? null : 'status' },
      ...{ started_at: service.clock.now(), duration_ms: 3 },
    })
    const delivered = (results: AttemptResult[]): AttemptResult => ({
      ...results.at(-1)!,
      sequence: {
        events,
        reached,
        more: false,
        attempt: 1,
        results,
        next: async () => null,
      } as unknown as Sequence,
    })
    const settle = (job: Awaited<ReturnType<typeof lease>>, sent: AttemptResult) =>
      db.write((tx) => subscription_job.settle(tx, dependencies, job, sent))
    const attempts = async () =>
      (
        await service.ask('GET', `/v1/subscriptions/${id}/attempts`, { key: tenant.admin_key })
      ).body.items.map(({ attempt, status_code }: { attempt: number; status_code: number }) => [
        attempt,
        status_code,
      ])
    const state = async () => {
      const { after, behind, attempts, next_attempt_at, last_error } = await shown(service, tenant, id)
      return { after, behind, attempts, next_attempt_at, last_error }
    }
    return { lease, reached, result, delivered, settle, attempts, state }
  }

  test('that runs again logs each attempt once, and changes nothing', async () => {
    const { lease, result, delivered, settle, attempts, state } = await delivering(3)
    const job = await lease()
    const sent = delivered([result(true), result(true), result(false)])
    await settle(job, sent)
    const before = await state()
    expect(before).toMatchObject({ behind: 1, attempts: 1, last_error: expect.any(String) })
    service.clock.advance(1)
    await settle(job, sent)
    const made = [
      [1, 503],
      [1, 204],
      [1, 204],
    ]
    expect([await attempts(), await state()]).toEqual([made, before])
    service.clock.advance(minute_ms)
    const next = await lease()
    await settle(job, sent) // the next lease is given already
    expect([await attempts(), await state()]).toEqual([made, before])
    expect(next).toMatchObject({ fence: job.fence + 1, attempts: 2 })
  })

  test('of an event whose node died each time counts the attempts that there were', async () => {
    const { lease, settle, state } = await delivering(1)
    for (let n = 0; n < attempts_max; n++) {
      await lease()
      service.clock.advance(lease_ms)
    }
    const job = await lease() // says only that no node lived to end the last one
    const started_at = service.clock.now()
    await settle(job, { ok: false, status_code: null, error: 'interrupted', started_at, duration_ms: 0 })
    expect(await state()).toMatchObject({
      ...{ attempts: attempts_max, next_attempt_at: null, last_error: 'interrupted' },
    })
  })

  test('that comes after its lease was lost logs the attempts that were made, once', async () => {
    const { lease, reached, result, delivered, settle, attempts, state } = await delivering(2)
    const lost = await lease()
    const late = delivered([result(true), result(true)])
    service.clock.advance(lease_ms)
    const second = await lease()
    for (let n = 0; n < 2; n++) await settle(lost, late)
    expect(await attempts()).toEqual([
      [1, 204],
      [1, 204],
    ])
    await settle(second, delivered([result(true), result(true)]))
    expect(await attempts()).toHaveLength(4)
    expect(await state()).toMatchObject({ after: reached, behind: 0, next_attempt_at: null })
  })
})
