// The service is killed (SIGKILL) in the middle of its work, on SQLite: what belongs together is there together or not
// at all, and the node that starts next finishes the job. All of these run side by side: most of their time is waiting.

import { describe, expect, test } from 'bun:test'
import { iso } from '../src/base/clock.ts'
import { ask, halfDone, Mortal, signUpAt } from './support/job-process.ts'
import { becomes } from './support/patience.ts'
import { seededRandom } from './support/random.ts'
import type { Received } from './support/receiver.ts'
import { rounds } from './support/rounds.ts'

/** Longer than a lease, and than the wait for any retry. */
const long_ms = 90_000

interface Row {
  id: string
  status: string
}

const attemptOf = ({ headers }: Received) => Number(headers['x-waystation-attempt'])
const idOf = ({ headers }: Received) => headers['webhook-id']!
const eventOf = ({ headers }: Received) => headers['x-waystation-event']!
/** One attempt of one delivery. */
const triesOf = (requests: Received[]) => requests.map((request) => `${idOf(request)} ${attemptOf(request)}`)

async function withMortal(run: (mortal: Mortal) => Promise<void>): Promise<void> {
  const mortal = await Mortal.start()
  try {
    await run(mortal)
  } finally {
    await mortal.stop()
  }
}

/** Until this select has a row. */
async function until(mortal: Mortal, text: string): Promise<void> {
  while (mortal.rows(text).length === 0) await Bun.sleep(20)
}

function scheduleAt({ url, receiver }: Mortal, key: string, path: string, over: object = {}): Promise<Row> {
  return ask<Row>(url, 'POST', '/v1/schedules', key, {
    ...{ callback_url: receiver.url + path, callback_payload: { path }, fire_at: iso(Date.now()) },
    ...over,
  })
}

function checkpointAt({ url, receiver }: Mortal, key: string, path: string, over: object = {}): Promise<Row> {
  return ask<Row>(url, 'POST', '/v1/checkpoints', key, {
    ...{ title: path, callback_url: receiver.url + path },
    ...over,
  })
}

describe.concurrent('a service', () => {
  test(
    'killed between a decision and its delivery has decided; the next start delivers under the same webhook-id',
    () => withMortal(betweenDecisionAndDelivery),
    300_000,
  )

  test(
    'killed around the third failure has failed and has its dead letter, or neither; the next start ends it',
    () => withMortal(aroundTheThirdFailure),
    300_000,
  )

  test(
    'killed at any moment under load leaves nothing half done, keeps what it promised, and ends all of it',
    () => withMortal(atAnyMoment),
    300_000,
  )

  test(
    'killed at any moment while failures are sent again sends each again once, whatever is repeated',
    () => withMortal(whileSendingAgain),
    300_000,
  )
})

test(
  'a service killed in the middle of operations on many dead letters archives each once, and ends them',
  () => withMortal(whileManyAreDiscarded),
  300_000,
)

async function whileManyAreDiscarded(mortal: Mortal): Promise<void> {
  const kills = rounds(2, 6)
  const letters = kills * 250
  const random = seededRandom(20_260_304)
  const keys = await signUpAt(mortal.url)
  await mortal.kill()
  mortal.inspect((db) => {
    db.run(
      `insert into dlq_items (tenant_id, id, status, source, lock_seconds, claims, created_at, updated_at, cause, error,
         payload)
       with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${letters})
       select ?1, 'dlq_' || (1000000 + i), 'failed', 'agent', 300, 0, 1, 1, 'e', 'e', '1' from numbers`,
      [keys.tenant_id],
    )
    db.run(
      `insert into quota_usage (tenant_id, quota, used, version_floor) values (?1, 'dlq_items', ${letters}, 0)`,
      [keys.tenant_id],
    )
  })
  await mortal.start()
  const paced = { filter: {}, per_second: 400 }
  const discard = () => ask(mortal.url, 'POST', '/v1/dlq/discard', keys.admin_key, paced)
  await Promise.all([discard(), discard()])
  const archived = () =>
    mortal.rows<{ n: number }>(`select count(*) as n from dlq_items where status = 'archived'`)[0]!.n
  for (let kill = 0; kill < kills; kill++) {
    const before = archived()
    while (archived() === before && before < letters) await Bun.sleep(5)
    await Bun.sleep(random() * 40)
    await mortal.kill()
    const [{ used }] = mortal.rows<{ used: number }>(
      `select used from quota_usage where quota = 'dlq_items'`,
    ) as [{ used: number }]
    const [{ done, handled }] = mortal.rows<{ done: number; handled: number }>(
      'select sum(done) as done, sum(done + skipped + failed) as handled from dlq_operations',
    ) as [{ done: number; handled: number }]
    const texts = mortal.rows<{ items: string }>('select items from dlq_operation_parts')
    const lines = texts.flatMap(({ items }) => items.split('\n'))
    expect([done, used]).toEqual([archived(), letters - archived()])
    expect(lines.filter((line) => line.includes(' done '))).toHaveLength(done)
    expect(lines.filter((line) => line.includes(' '))).toHaveLength(handled)
    mortal.pass(long_ms)
    await mortal.start()
  }
  await until(mortal, `select 1 where not exists (select 1 from dlq_operations where status = 'running')`)
  expect(archived()).toBe(letters)
  const [{ done, skipped, matched }] = mortal.rows<{ done: number; skipped: number; matched: number }>(
    'select sum(done) as done, sum(skipped) as skipped, sum(matched) as matched from dlq_operations',
  ) as [{ done: number; skipped: number; matched: number }]
  // One that begins a moment later finds what the other has left.
  expect([done, skipped]).toEqual([letters, matched - letters])
  expect(skipped).toBeGreaterThan(0)
  expect(mortal.rows('select 1 from jobs')).toEqual([])
}

async function betweenDecisionAndDelivery(mortal: Mortal): Promise<void> {
  const { receiver } = mortal
  const keys = await signUpAt(mortal.url)
  receiver.answer = () => new Promise(() => {})
  const decided: string[] = []
  for (const verb of ['approve', 'reject']) {
    const { id } = await checkpointAt(mortal, keys.api_key, `/${verb}`)
    await ask(mortal.url, 'POST', `/v1/checkpoints/${id}/${verb}`, keys.admin_key)
    decided.push(id)
    await receiver.received(decided.length)
    await mortal.kill()
    expect(halfDone(mortal)).toEqual({})
    await mortal.start()
  }
  await mortal.kill()
  mortal.pass(long_ms)
  const before = receiver.requests.map(idOf)
  receiver.answer = () => ({})
  await mortal.start()
  await until(mortal, 'select 1 where not exists (select 1 from jobs)')
  expect(halfDone(mortal)).toEqual({})
  expect(mortal.rows('select id, status, callback_status from checkpoints order by created_at')).toEqual([
    { id: decided[0], status: 'approved', callback_status: 'delivered' },
    { id: decided[1], status: 'rejected', callback_status: 'delivered' },
  ])
  const again = receiver.requests.slice(before.length)
  expect(again.map(idOf).toSorted()).toEqual(before.toSorted())
  expect(again.map(attemptOf)).toEqual([2, 2])
}

async function aroundTheThirdFailure(mortal: Mortal): Promise<void> {
  const cycles = rounds(2, 8)
  const random = seededRandom(20_260_302)
  const { receiver } = mortal
  const { api_key } = await signUpAt(mortal.url)
  for (let cycle = 0; cycle < cycles; cycle++) {
    const third_answered = new Promise<void>((resolve) => {
      receiver.answer = (request) => {
        if (attemptOf(request) === 3) resolve()
        return { status: 500 }
      }
    })
    const { id } = await scheduleAt(mortal, api_key, `/${cycle}`, { dlq_on_failure: true })
    const waits = [30_000, 60_000]
    for (const [i, wait_ms] of waits.entries()) {
      await until(mortal, `select 1 from schedules where id = '${id}' and attempts = ${i + 1}`)
      await mortal.kill()
      mortal.pass(wait_ms)
      await mortal.start()
    }
    await third_answered
    await Bun.sleep(random() * 12)
    await mortal.kill()
    expect(halfDone(mortal)).toEqual({})
    const [{ status }] = mortal.rows<Row>(`select id, status from schedules where id = '${id}'`) as [Row]
    expect(['pending', 'failed']).toContain(status)
    mortal.pass(long_ms)
    await mortal.start()
    await until(mortal, `select 1 from schedules where id = '${id}' and status = 'failed'`)
    expect(halfDone(mortal)).toEqual({})
  }
  expect(mortal.rows(`select id from dlq_items where source = 'schedule'`)).toHaveLength(cycles)
  const by_id = Map.groupBy(receiver.requests, idOf)
  expect([...by_id.values()].map((requests) => requests.map(attemptOf))).toEqual(
    Array(cycles).fill([1, 2, 3]),
  )
}

/** Redrives and retries of both kinds, each with an Idempotency-Key, and sent until it has an answer. */
async function whileSendingAgain(mortal: Mortal): Promise<void> {
  const cycles = rounds(2, 6)
  const each = 24
  const random = seededRandom(20_261_122)
  const { receiver } = mortal
  const keys = await signUpAt(mortal.url)

  /** Again when a busy service says that it cannot answer right now: whatever it has done, the answers are the same. */
  async function post(path: string, idempotency_key?: string) {
    const authorization = `Bearer ${keys.api_key}`
    const headers = { authorization, ...(idempotency_key ? { 'idempotency-key': idempotency_key } : {}) }
    for (;;) {
      const answer = await fetch(mortal.url + path, { method: 'POST', headers })
      const text = await answer.text()
      if (answer.status !== 503) return { status: answer.status, text }
      await Bun.sleep(20)
    }
  }

  for (let cycle = 0; cycle < cycles; cycle++) {
    receiver.answer = () => ({ status: 410 })
    const made = await Promise.all(
      Array.from({ length: each }, (_, n) =>
        scheduleAt(mortal, keys.api_key, `/${cycle}/${n}`, { dlq_on_failure: n % 3 > 0 }),
      ),
    )
    await until(mortal, `select 1 where not exists (select 1 from schedules where status = 'pending')`)
    const paths = made.map(({ id }, n) => {
      const [schedule] = mortal.rows<Row>(`select id, status from schedules where id = '${id}'`)
      expect(schedule!.status).toBe('failed')
      const [letter] = mortal.rows<Row>(`select id, status from dlq_items where source_id = '${id}'`)
      return n % 3 === 1 ? `/v1/dlq/${letter!.id}/redrive` : `/v1/schedules/${id}/retry`
    })
    for (const verb of ['approve', 'reject']) {
      const { id } = await checkpointAt(mortal, keys.api_key, `/${cycle}/${verb}`)
      await ask(mortal.url, 'POST', `/v1/checkpoints/${id}/${verb}`, keys.admin_key)
      await until(mortal, `select 1 from checkpoints where id = '${id}' and callback_status = 'failed'`)
      const [letter] = mortal.rows<Row>(`select id, status from dlq_items where source_id = '${id}'`)
      paths.push(`/v1/dlq/${letter!.id}/redrive`)
    }
    receiver.answer = () => ({ status: 204 })
    const answered = new Map<string, string>()
    /** Until the service dies. */
    const client = async (mine: string[]) => {
      for (const path of mine) {
        const { status, text } = await post(path, path)
        expect([200, 201]).toContain(status)
        answered.set(path, text)
      }
    }
    const clients = [0, 1].map((which) => client(paths.filter((_, n) => n % 2 === which)).catch(() => {}))
    await Bun.sleep(random() * 30)
    await mortal.kill()
    await Promise.all(clients)
    expect(halfDone(mortal)).toEqual({})
    await mortal.start()
    for (const path of paths) {
      const first = answered.get(path)
      const repeated = await post(path, path)
      expect([200, 201]).toContain(repeated.status)
      if (first !== undefined) expect(repeated.text).toBe(first)
      expect((await post(path)).status).toBe(409)
    }
    mortal.pass(long_ms)
    await until(mortal, 'select 1 where not exists (select 1 from jobs)')
    expect(halfDone(mortal)).toEqual({})
  }
  const [{ again }] = mortal.rows<{ again: number }>(
    'select count(*) as again from schedules where retry_of is not null',
  ) as [{ again: number }]
  expect(again).toBe(cycles * each)
  expect(mortal.rows(`select id from schedules where retry_of is not null and status <> 'fired'`)).toEqual([])
  expect(mortal.rows(`select id from checkpoints where callback_status <> 'delivered'`)).toEqual([])
  expect(mortal.rows(`select id from dlq_items where status <> 'resolved' or redriven_as is null`)).toEqual(
    [],
  )
}

async function atAnyMoment(mortal: Mortal): Promise<void> {
  const cycles = rounds(3, 10)
  const random = seededRandom(20_260_303)
  const { receiver } = mortal
  const keys = await signUpAt(mortal.url)
  /** The paths of schedules whose creation was answered with 2xx. */
  const scheduled: string[] = []
  const decided = new Map<string, string>()

  async function work(path: string, i: number): Promise<void> {
    const schedule = await scheduleAt(mortal, keys.api_key, path, { dlq_on_failure: i % 2 === 0 })
    scheduled.push(schedule.id)
    const timeout_action = i % 3 === 0 ? 'dlq' : 'auto_reject'
    const expired = i % 4 === 0
    const { id } = await checkpointAt(mortal, keys.api_key, path, {
      ...{ timeout_action, ...(expired ? { expires_at: iso(Date.now()) } : {}) },
    })
    if (expired) return
    const verb = i % 2 === 0 ? 'approve' : 'reject'
    await ask(mortal.url, 'POST', `/v1/checkpoints/${id}/${verb}`, keys.admin_key)
    decided.set(id, verb === 'approve' ? 'approved' : 'rejected')
  }

  /** Until the service dies; goes on when a busy one refuses, or nobody would be left to make work. */
  async function client(name: string, is_over: () => boolean): Promise<void> {
    for (let i = 0; !is_over(); i++) await work(`/${name}/${i}`, i).catch(() => {})
  }

  for (let cycle = 0; cycle < cycles; cycle++) {
    const kill_at = 5 + Math.floor(random() * 30)
    const time_to_die = new Promise<void>((resolve) => {
      let received = 0
      let silent = 0
      receiver.answer = async () => {
        received += 1
        if (received === kill_at) resolve()
        const fate = random()
        // A receiver that is silent to all that it gets at once gets no more for 10 s: most of it is just before the kill.
        if (fate < 0.15 && received > 4 && (silent < 2 || received > kill_at - 4)) {
          silent += 1
          await new Promise(() => {})
        }
        await Bun.sleep(fate * 10)
        return { status: fate < 0.55 ? 500 : 204 }
      }
    })
    let over = false
    const clients = ['a', 'b'].map((name) => client(`${name}${cycle}`, () => over))
    await time_to_die
    // A slow machine may get there with less work than the floor below asks of each cycle.
    const done = () => [scheduled.length > (cycle + 1) * 5, decided.size > (cycle + 1) * 2]
    await becomes(done, [true, true])
    await Bun.sleep(random() * 8)
    over = true
    await mortal.kill()
    await Promise.all(clients)
    expect(halfDone(mortal)).toEqual({})
    mortal.pass(long_ms)
    await mortal.start()
  }

  // One that will be fired and one that will fail, also when the kills have left neither.
  receiver.answer = () => ({ status: 500 })
  for (const path of ['/last/6', '/last/7']) scheduled.push((await scheduleAt(mortal, keys.api_key, path)).id)
  await mortal.kill()
  receiver.answer = ({ target }) => ({ status: target.endsWith('7') ? 410 : 204 })
  mortal.pass(long_ms)
  await mortal.start()
  // The timeouts of checkpoints whose decision was never asked for are due tomorrow.
  await until(
    mortal,
    `select 1 where not exists (select 1 from jobs where next_at < ${Date.now() + long_ms})`,
  )
  expect(halfDone(mortal)).toEqual({})

  const statusesOf = (table: string) =>
    new Map(mortal.rows<Row>(`select id, status from ${table}`).map(({ id, status }) => [id, status]))
  const schedules = statusesOf('schedules')
  const ends = new Set(scheduled.map((id) => schedules.get(id)))
  expect(ends).toEqual(new Set(['fired', 'failed']))
  const checkpoints = statusesOf('checkpoints')
  for (const [id, status] of decided) expect(checkpoints.get(id)).toBe(status)
  // A floor: there was work of every kind; and no attempt was made twice.
  expect(scheduled.length).toBeGreaterThan(cycles * 5)
  expect(decided.size).toBeGreaterThan(cycles * 2)
  expect(new Set(receiver.requests.map(eventOf)).size).toBe(3)
  expect(new Set(triesOf(receiver.requests)).size).toBe(receiver.requests.length)
}
