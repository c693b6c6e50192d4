// The attempts of schedules: when they are made, how they are sent, and what follows from the answer.

import { equal, holds, refused, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { hour, minute } from '../contract.ts'
import * as objects from '../objects.ts'
import { type Hook, isSignedCallback } from '../receiver.ts'
import { hasShape, schedule as scheduleShape } from '../shapes.ts'
import type { Actor, Tenant } from '../tenant.ts'
import { unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

/** Past, and so due at once. */
const now = '2000-01-01T00:00:00Z'

export const attempts = chapter('attempts', {
  fires: [
    'pending → fired: a schedule whose fire_at is past is sent now, signed, its payload byte for byte; 2xx makes it fired',
    'core 3, core 6, decisions 5 Schedules, decisions 5 Callbacks',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      const text = '{"b":1e400, "a":[ 123456789012345678901234567890 ],"b":-0.10}'
      const body = `{"callback_url":"${hook.url}","fire_at":"${now}","callback_payload":${text}}`
      const { id } = succeeded(await agent.post('/v1/schedules', body), 201)
      const fired = await reaches(t, agent, id, 'fired')
      equal(
        [fired.attempts, fired.last_status_code, fired.next_attempt_at],
        [1, 204, null],
        'the fired schedule',
      )
      holds(fired.fired_at !== null, 'fired_at is null')
      const [request] = hook.received
      equal(request!.body, text, 'body of the callback')
      isSignedCallback(request!, tenant.keys.signing_secret, 'schedule.fired', 1)
      refused(await agent.delete(`/v1/schedules/${id}`), 'INVALID_STATE', { status: 'fired' })
      refused(await agent.patch(`/v1/schedules/${id}`, { dlq_on_failure: true }), 'INVALID_STATE', {
        status: 'fired',
      })
      await t.settled()
      equal(hook.received.length, 1, 'calls of a schedule that has fired')
    },
  ],
  gone: [
    'An answer of 410 ends the attempts: failed, with a DLQ item when dlq_on_failure is true',
    'decisions 5 Callbacks',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await answering(t, 410)
      const id = await due(agent, hook, { dlq_on_failure: true })
      const failed = await reaches(t, agent, id, 'failed')
      equal(
        [failed.attempts, failed.last_status_code, failed.next_attempt_at],
        [1, 410, null],
        'the failed schedule',
      )
      const items = await lettersOf(tenant, id)
      equal(items.length, 1, 'dead letters of the schedule')
      equal(
        [items[0].source, items[0].source_id, items[0].status],
        ['schedule', id, 'failed'],
        'the dead letter',
      )
    },
  ],
  'no-letter': [
    'Without dlq_on_failure a schedule that fails leaves no DLQ item',
    'core 3, core 6',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await answering(t, 410)
      const id = await due(agent, hook, {})
      await reaches(t, agent, id, 'failed')
      equal(await lettersOf(tenant, id), [], 'dead letters of the schedule')
    },
  ],
  retries: timed(
    2 * minute,
    'Attempts are made at fire_at, 30 s and 90 s after the first; after the third the schedule is failed and leaves a DLQ item',
    'core 3, core 8, decisions 5 Schedules',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await answering(t, 500)
      const begun_ms = await t.time.now()
      const since = async () => ((await t.time.now()) - begun_ms) / 1_000
      // On a slow machine the time may be over already: then there is nothing to see.
      const notYet = async (count: number, seconds: number) => {
        await t.settled()
        const seen = hook.received.length
        if ((await since()) < seconds) equal(seen, count, `attempts less than ${seconds} s after the first`)
      }
      const waitUntil = async (seconds: number) => t.time.wait(Math.max(0.1, seconds - (await since())))
      const id = await due(agent, hook, { dlq_on_failure: true })
      await reached(t, hook, 1)
      await t.until(async () => (await read(agent, id)).attempts === 1, 'the first attempt is counted')
      const pending = await read(agent, id)
      equal([pending.status, pending.last_status_code], ['pending', 500], 'the schedule after an attempt')
      holds(typeof pending.last_error === 'string' && pending.last_error !== '', 'last_error is missing')
      const next = (Date.parse(pending.next_attempt_at) - (await t.time.now())) / 1_000
      holds(next <= 30, `next_attempt_at is in ${next} s`)
      await waitUntil(25)
      await notYet(1, 30)
      await t.time.wait(6)
      await t.until(() => hook.received.length >= 2, 'the second attempt')
      await waitUntil(80)
      await notYet(2, 90)
      if ((await since()) < 90)
        equal(await lettersOf(tenant, id), [], 'dead letters before the third attempt')
      await t.time.wait(12)
      await reached(t, hook, 3)
      equal((await reaches(t, agent, id, 'failed')).attempts, 3, 'attempts of the failed schedule')
      equal((await lettersOf(tenant, id)).length, 1, 'dead letters of the schedule')
      for (const [i, request] of hook.received.entries())
        isSignedCallback(request, tenant.keys.signing_secret, 'schedule.fired', i + 1)
      equal(
        new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size,
        1,
        'different webhook-ids of the attempts',
      )
    },
  ),
  'retry-succeeds': timed(
    minute,
    'A later attempt that is answered with 2xx makes the schedule fired',
    'core 3, decisions 5 Schedules',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      hook.answer = (_, count) => ({ status: count === 1 ? 503 : 200 })
      const id = await due(agent, hook, { dlq_on_failure: true })
      await reached(t, hook, 1)
      await t.time.wait(31)
      const fired = await reaches(t, agent, id, 'fired')
      equal([fired.attempts, fired.last_error, fired.last_status_code], [2, null, 200], 'the fired schedule')
      equal(await lettersOf(tenant, id), [], 'dead letters')
    },
  ),
  'fires-in-time': timed(
    minute,
    'A schedule fires at fire_at and not before; PATCH moves it, DELETE stops it',
    'core 3, core 6, decisions 5 Schedules',
    async (t) => {
      const { agent } = await caller(t)
      const kept = await t.hook()
      const moved = await t.hook()
      const stopped = await t.hook()
      const fire_at = new Date((await t.time.now()) + 20_000).toISOString()
      const [, moved_id, stopped_id] = [
        await due(agent, kept, { fire_at }),
        await due(agent, moved, { fire_at }),
        await due(agent, stopped, { fire_at }),
      ]
      const later = new Date(Date.parse(fire_at) + 20_000).toISOString()
      succeeded(await agent.patch(`/v1/schedules/${moved_id}`, { fire_at: later }), 200)
      succeeded(await agent.delete(`/v1/schedules/${stopped_id}`), 204)
      await t.time.wait(15)
      await t.settled()
      equal(kept.received.length, 0, 'calls before fire_at')
      await t.time.wait(7)
      await reached(t, kept, 1)
      equal(
        [moved.received.length, stopped.received.length],
        [0, 0],
        'calls of the moved and the cancelled schedule',
      )
      await t.time.wait(20)
      await reached(t, moved, 1)
      equal([kept.received.length, stopped.received.length], [1, 0], 'calls in the end')
    },
  ),
  'patch-starts-again': timed(
    hour,
    'A new fire_at starts the attempts again',
    'decisions 5 Schedules',
    async (t) => {
      const { agent } = await caller(t)
      const hook = await answering(t, 500)
      const id = await due(agent, hook, {})
      await reached(t, hook, 1)
      await t.time.wait(31)
      await reached(t, hook, 2)
      await t.until(async () => (await read(agent, id)).attempts === 2, 'the second attempt is counted')
      const fire_at = new Date((await t.time.now()) + 600_000).toISOString()
      const patched = succeeded(await agent.patch(`/v1/schedules/${id}`, { fire_at }), 200)
      equal([patched.status, patched.attempts], ['pending', 0], 'status and attempts after the PATCH')
      await t.time.wait(300)
      await t.settled()
      equal(hook.received.length, 2, 'calls before the new fire_at')
      await t.time.wait(301)
      await reached(t, hook, 3)
      equal(
        hook.received[2]!.headers['x-waystation-attempt'],
        '1',
        'x-waystation-attempt of the first after the PATCH',
      )
    },
  ),
  'large-answer': [
    'However long the answer of a receiver is, 2xx is success',
    'decisions 5 Callbacks',
    async (t) => {
      const { agent } = await caller(t)
      const hook = await t.hook()
      hook.answer = () => ({ status: 200, body: 'x'.repeat(1_000_000) })
      await reaches(t, agent, await due(agent, hook, {}), 'fired')
    },
  ],
  'changed-during-attempt': [
    'DELETE or PATCH during an attempt succeeds; the result of that attempt changes nothing',
    'decisions 5 Schedules',
    async (t) => {
      const { agent } = await caller(t)
      const cancelled = await duringAttempt(t, agent, async (path) => {
        succeeded(await agent.delete(path), 204)
      })
      equal((await read(agent, cancelled)).status, 'cancelled', 'status of the cancelled schedule')
      const moved = await duringAttempt(t, agent, async (path) => {
        succeeded(await agent.patch(path, { fire_at: objects.far_time }), 200)
      })
      const shown = await read(agent, moved)
      equal([shown.status, shown.attempts], ['pending', 0], 'status and attempts of the moved schedule')
      equal(shown.next_attempt_at, objects.far_time, 'next_attempt_at of the moved schedule')
    },
  ],
  'no-redirects': [
    'Redirects are not followed: they are an attempt that failed',
    'decisions 5 Callbacks',
    async (t) => {
      const { agent } = await caller(t)
      const target = await t.hook()
      const hook = await t.hook()
      hook.answer = () => ({ status: 302, headers: { location: target.url } })
      const id = await due(agent, hook, {})
      await t.until(async () => (await read(agent, id)).attempts === 1, 'the attempt is counted')
      const shown = await read(agent, id)
      equal([shown.status, shown.last_status_code], ['pending', 302], 'status and last_status_code')
      equal(target.received.length, 0, 'calls of where the redirect leads')
    },
  ],
  retry: [
    'POST /schedules/{id}/retry, by agent or admin, sends a schedule that failed once more, as a new one',
    'decisions 8',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      hook.answer = (_, count) => ({ status: count === 1 ? 410 : 200 })
      const id = await due(agent, hook, {})
      await reaches(t, agent, id, 'failed')
      const again = succeeded(await tenant.admin.post(`/v1/schedules/${id}/retry`), 201)
      hasShape(again, scheduleShape, 'POST /v1/schedules/{id}/retry')
      holds(again.id !== id, 'the retry has the id of the first')
      await reaches(t, agent, again.id, 'fired')
      const { id: pending } = await objects.schedule(tenant)
      refused(await agent.post(`/v1/schedules/${pending}/retry`), 'INVALID_STATE')
    },
  ],
  redrive: [
    'POST /dlq/{id}/redrive, by agent or admin, sends again what a schedule left, and resolves the item',
    'decisions 8',
    async (t) => {
      const { agent, tenant } = await caller(t)
      const hook = await t.hook()
      hook.answer = (_, count) => ({ status: count === 1 ? 410 : 200 })
      const id = await due(agent, hook, { dlq_on_failure: true })
      await reaches(t, agent, id, 'failed')
      const [item] = await lettersOf(tenant, id)
      equal(
        succeeded(await agent.post(`/v1/dlq/${item.id}/redrive`), 200).status,
        'resolved',
        'status of the item',
      )
      await reached(t, hook, 2)
    },
  ],
})

async function caller(t: Trial): Promise<{ agent: Actor; tenant: Tenant }> {
  const tenant = await t.tenant()
  return { agent: await tenant.agent(), tenant }
}

async function due(agent: Actor, hook: Hook, rest: Record<string, unknown>): Promise<string> {
  const body = { callback_url: hook.url, callback_payload: { x: unique() }, fire_at: now, ...rest }
  return succeeded(await agent.post('/v1/schedules', body), 201).id
}

async function answering(t: Trial, status: number): Promise<Hook> {
  const hook = await t.hook()
  hook.answer = () => ({ status })
  return hook
}

/** Makes a schedule, and calls `change` while its receiver is answering. Returns its id. */
async function duringAttempt(
  t: Trial,
  agent: Actor,
  change: (path: string) => Promise<void>,
): Promise<string> {
  const hook = await t.hook()
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  hook.answer = async () => {
    await released
    return { status: 200 }
  }
  const id = await due(agent, hook, {})
  // It answers once the attempt has ended.
  const pushed = t.world.pushDueWork().then(
    () => null,
    (error: Error) => error,
  )
  try {
    await t.happens(() => hook.received.length > 0, 'an attempt reaches the receiver')
    await change(`/v1/schedules/${id}`)
  } finally {
    release()
  }
  const error = await pushed
  if (error) throw error
  await t.settled()
  return id
}

async function reached(t: Trial, hook: Hook, count: number): Promise<void> {
  await t.until(() => hook.received.length >= count, `attempt ${count} reaches the receiver`)
  equal(hook.received.length, count, 'attempts so far')
}

async function read(agent: Actor, id: string) {
  return succeeded(await agent.get(`/v1/schedules/${id}`), 200)
}

async function reaches(t: Trial, agent: Actor, id: string, status: string) {
  await t.until(async () => (await read(agent, id)).status === status, `the schedule is ${status}`)
  return read(agent, id)
}

/** The dead letters that this schedule or checkpoint left. */
export async function lettersOf(tenant: Tenant, source_id: string) {
  // Newest first: past these pages it is older than the run.
  const found = []
  let cursor = ''
  for (let pages = 0; pages < 10; pages++) {
    const { items, next_cursor } = succeeded(await tenant.admin.get(`/v1/dlq?limit=200${cursor}`), 200)
    found.push(...items.filter((one: { source_id: string }) => one.source_id === source_id))
    if (next_cursor === null) break
    cursor = `&cursor=${encodeURIComponent(next_cursor)}`
  }
  return found
}
