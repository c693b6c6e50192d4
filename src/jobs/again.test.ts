// A source has a second job under the same key: a late report of the first one must not count for it.

import { afterEach, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, kindOf } from '../../test/support/job-bench.ts'
import { approve, attemptsOf, checkpoint } from '../../test/support/job-features.ts'
import { callback_job } from '../checkpoints/jobs.ts'
import type { AgentCaller } from '../contract/caller.ts'
import { service_cause } from '../contract/event.ts'
import { redrive } from '../dlq/redrive.ts'
import { forward_job } from '../inbox/jobs.ts'
import * as receiving from '../inbox/receive.ts'
import { replay } from '../inbox/replay.ts'
import * as inboxes from '../inbox/service.ts'
import { type AttemptResult, type LeasedJob, lease_ms } from './job.ts'
import type { SendingKind } from './kind.ts'
import * as store from './store.ts'

forEachDatabase('A job that follows another of the same source', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })
  afterEach(() => bench.clear())

  async function lease({ tenant_id }: AgentCaller, kind: string, id: string): Promise<LeasedJob> {
    const leased = await bench.db.write((tx) =>
      store.lease(tx, tenant_id, kindOf(kind), [id], tx.now + lease_ms),
    )
    expect(leased).toHaveLength(1)
    return leased[0]!
  }

  const settle = (kind: SendingKind, job: LeasedJob, result: AttemptResult) =>
    bench.db.write((tx) => kind.settle(tx, bench.dependencies, job, result))
  const ended = (ok: boolean): AttemptResult => ({
    ...{ ok, status_code: ok ? 204 : 410, error: ok ? null : 'status' },
    ...{ started_at: bench.clock.now(), duration_ms: 1 },
  })

  test.each([true, false])('is not ended by a late report of a callback (ok: %p)', async (ok) => {
    const caller = await bench.tenant()
    const { id } = await checkpoint(bench, caller)
    await approve(bench, caller, id)
    const lost = await lease(caller, 'callback', id)
    bench.clock.advance(lease_ms)
    const second = await lease(caller, 'callback', id)
    await settle(callback_job, second, ended(false))
    const look = async () => {
      const rows = await bench.rows<{ callback_status: string; callback_dead_letter_id: string }>(
        'select callback_status, callback_dead_letter_id from checkpoints where id = :id',
        { id },
      )
      return rows[0]!
    }
    const { callback_status, callback_dead_letter_id } = await look()
    expect(callback_status).toBe('failed')
    const letter = { id: callback_dead_letter_id, cause: service_cause }
    await bench.db.write((tx) => redrive(tx, caller, bench.dependencies, letter))

    for (const late of [lost, second]) expect(await settle(callback_job, late, ended(ok))).toBeNull()
    expect((await look()).callback_status).toBe('pending')
    const third = await lease(caller, 'callback', id)
    expect(third.fence).toBeGreaterThan(second.fence)
    expect(third).toMatchObject({ attempts: 1, event_id: lost.event_id })
    for (const late of [lost, second]) expect(await settle(callback_job, late, ended(ok))).toBeNull()
    expect(await settle(callback_job, third, ended(true))).toBe('checkpoints.callbacks')
    expect((await look()).callback_status).toBe('delivered')
    expect((await attemptsOf(bench, id)).map(({ attempt }) => attempt)).toEqual([1, 2, 1])
    expect(await bench.rows("select id from dlq_items where status = 'failed'")).toEqual([])
  })

  test.each([true, false])('is not ended by a late report of a forward (ok: %p)', async (ok) => {
    const caller = await bench.tenant()
    const settings = {
      label: '',
      forward_url: 'http://receiver.test/',
      workflow_id: null,
      ttl_seconds: 86_400,
    }
    const { id, token } = await bench.db.write((tx) =>
      inboxes.create(tx, caller, bench.dependencies, settings),
    )
    const request = {
      request_id: 'req_of_a_test',
      method: 'POST',
      headers: new Headers(),
      bytes: Buffer.from('x'),
      address: '192.0.2.1',
    }
    await receiving.receive(bench.db, bench.dependencies, token, { ...request, url: '/hook/t' })
    const source_id = `${id}/1`
    const lost = await lease(caller, 'forward', source_id)
    bench.clock.advance(lease_ms)
    const second = await lease(caller, 'forward', source_id)
    await settle(forward_job, second, { ...ended(false), error: 'interrupted', status_code: null })
    const look = async () => {
      const rows = await bench.rows<{ id: string; forward_status: string }>(
        'select id, forward_status from inbox_messages where inbox_id = :id',
        { id },
      )
      return rows[0]!
    }
    const message = await look()
    expect(message.forward_status).toBe('failed')
    await bench.db.write((tx) => replay(tx, caller, bench.dependencies, id, message.id))

    for (const late of [lost, second]) await settle(forward_job, late, ended(ok))
    expect((await look()).forward_status).toBe('pending')
    const third = await lease(caller, 'forward', source_id)
    expect(third.fence).toBeGreaterThan(second.fence)
    for (const late of [lost, second]) await settle(forward_job, late, ended(ok))
    expect((await look()).forward_status).toBe('pending')
    await settle(forward_job, third, ended(true))
    expect((await look()).forward_status).toBe('delivered')
  })
})
