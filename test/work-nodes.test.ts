// Three nodes, each its own process with its own ticker, on one PostgreSQL: with nothing broken each schedule is one
// POST; with nodes killed every few seconds none is lost. Beside them, one node by the clock on the wall.

import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { iso, second_ms } from '../src/base/clock.ts'
import { lease_ms } from '../src/jobs/job.ts'
import { ask, halfDone, Mortal, signUpAt } from './support/job-process.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { seededRandom } from './support/random.ts'
import { type Received, type Receiver, startReceiver } from './support/receiver.ts'
import { rounds } from './support/rounds.ts'
import { type ServerProcess, startServer } from './support/server-process.ts'

const node_count = 3
const look_ms = 250
const kill_every_ms = 3_000
const due_at_once = rounds(300, 1_000)
/** Fewer may all come while nobody is under way, on a machine that is busy. */
const kills = 6
/** Due from the first to the last kill, and a little later. */
const schedules_count = kills * 100
const repeats = rounds(1, 3)
/** How late an attempt may be here: machines that run tests are busy. */
const late_ms_max = 20_000

/** Several nodes on one new database, a receiver, and one tenant. */
class Cluster {
  nodes: ServerProcess[] = []

  private constructor(
    readonly sql: SQL,
    readonly receiver: Receiver,
    private readonly database_url: string,
    private readonly data_dir: string,
  ) {}

  static async start(): Promise<Cluster> {
    const database_url = await newPostgresDatabase()
    const data_dir = mkdtempSync(join(tmpdir(), 'waystation-nodes-'))
    const sql = new SQL({ url: database_url, max: 2 })
    const cluster = new Cluster(sql, await startReceiver(), database_url, data_dir)
    cluster.nodes = await Promise.all(Array.from({ length: node_count }, () => cluster.startNode()))
    return cluster
  }

  startNode(): Promise<ServerProcess> {
    return startServer({
      DATABASE_URL: this.database_url,
      DATA_DIR: this.data_dir,
      SECRET_KEY: 'the key that every node has',
      CRON_SECRET: 'the cron secret of the tests',
      TICK: 'internal',
    })
  }

  /** Creates schedules through all nodes, some at a time. */
  async schedule(count: number, fire_at: (i: number) => number): Promise<string[]> {
    const { api_key } = await signUpAt(this.nodes[0]!.url)
    const ids: string[] = []
    let next = 0
    const client = async () => {
      for (let i = next++; i < count; i = next++) {
        ids[i] = await scheduled(this.nodes[i % node_count]!.url, api_key, {
          callback_url: `${this.receiver.url}/${i}`,
          callback_payload: { i },
          fire_at: iso(fire_at(i)),
        })
      }
    }
    await Promise.all(Array.from({ length: 24 }, client))
    return ids
  }

  async rows<Row>(text: string): Promise<Row[]> {
    return [...(await this.sql.unsafe(text))] as Row[]
  }

  /** Until no schedule waits for anything any more. */
  async ended(): Promise<void> {
    while ((await this.rows('select 1 from jobs limit 1')).length > 0) await Bun.sleep(look_ms)
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.kill()
    await this.sql.close()
    await this.receiver.stop()
    await dropPostgresDatabase(this.database_url)
    rmSync(this.data_dir, { recursive: true, force: true })
  }
}

/**
 * Creates a schedule, whatever number of calls that takes: on a busy machine a node may say that it cannot answer right now,
 * or close a connection as idle while a request comes in on it.
 */
async function scheduled(url: string, api_key: string, schedule: object): Promise<string> {
  const headers = { authorization: `Bearer ${api_key}`, 'idempotency-key': crypto.randomUUID() }
  for (;;) {
    const body = JSON.stringify(schedule)
    const answer = await fetch(`${url}/v1/schedules`, { method: 'POST', headers, body }).catch(unlessClosed)
    if (answer === null) continue
    const { id } = (await answer.json()) as { id: string }
    if (answer.status === 201) return id
    expect(answer.status).toBe(503)
    await Bun.sleep(Number(answer.headers.get('retry-after')) * second_ms)
  }
}

/** A node that is gone refuses connections, and that is thrown. */
function unlessClosed(error: Error & { code?: string }): null {
  if (error.code === 'ECONNRESET') return null
  throw error
}

const idOf = ({ headers }: Received) => headers['webhook-id']!
const attemptOf = ({ headers }: Received) => Number(headers['x-waystation-attempt'])

async function withCluster(run: (cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = await Cluster.start()
  await run(cluster).finally(() => cluster.stop())
}

/** One busy cluster at a time is enough for the machine. */
let busy_before: Promise<unknown> = Promise.resolve()
function withBusyCluster(run: (cluster: Cluster) => Promise<void>): Promise<void> {
  const running = busy_before.then(() => withCluster(run))
  busy_before = running.catch(() => {})
  return running
}

describe.concurrent('three nodes on one PostgreSQL, all ticking', () => {
  test(`make exactly ${due_at_once} POSTs of ${due_at_once} schedules that are due at once`, () => {
    return withBusyCluster(async (cluster) => {
      const due_at = Date.now() + 6_000
      await cluster.schedule(due_at_once, () => due_at)
      await cluster.ended()
      const { requests } = cluster.receiver
      const sent = Map.groupBy(requests, idOf)
      expect(sent.size).toBe(due_at_once)
      expect(new Set(requests.map(({ target }) => target)).size).toBe(due_at_once)
      // A lease that runs out on a busy machine, before its request is sent or before its outcome is written, counts as an
      // attempt, and is logged as one.
      const interrupted = await cluster.rows<{ event_id: string; count: number }>(
        `select event_id, count(*)::int as count from attempts where error = 'interrupted' group by event_id`,
      )
      const begun = new Map(interrupted.map(({ event_id, count }) => [event_id, count]))
      for (const [event_id, posts] of sent) {
        const attempts = posts.map(attemptOf)
        expect(new Set(attempts).size).toBe(attempts.length)
        expect(Math.max(...attempts)).toBe(1 + (begun.get(event_id) ?? 0))
      }
      const interrupted_early = await cluster.rows(
        `select a.event_id from attempts a join attempts b on b.event_id = a.event_id and b.attempt = a.attempt + 1
          where a.error = 'interrupted' and b.started_at < a.started_at + ${lease_ms}`,
      )
      expect(interrupted_early).toEqual([])
      const statuses = await cluster.rows(
        'select status, count(*)::int as count from schedules group by status',
      )
      expect(statuses).toEqual([{ status: 'fired', count: due_at_once }])
    })
  }, 300_000)

  test(`lose none of ${schedules_count} schedules while one of them is killed every 3 s and 20 % of the first answers are 500`, () => {
    const random = seededRandom(20_260_301)
    return withBusyCluster(async (cluster) => {
      const { receiver } = cluster
      receiver.answer = async (request) => {
        const fails = attemptOf(request) === 1 && random() < 0.2
        await Bun.sleep(200 + random() * 400)
        return { status: fails ? 500 : 204 }
      }
      const from = Date.now() + 5_000
      const ids = await cluster.schedule(
        schedules_count,
        (i) => from + ((i % (kills * 30)) * kill_every_ms) / 30,
      )
      await Bun.sleep(Math.max(0, from - Date.now()))

      /** The jobs that any node had in flight when one of them was killed. */
      const in_flight = new Set<string>()
      for (let kill = 0; kill < kills; kill++) {
        await Bun.sleep(kill_every_ms)
        const victim = Math.floor(random() * node_count)
        await cluster.nodes[victim]!.kill()
        const leased = await cluster.rows<{ event_id: string }>(
          'select event_id from jobs where lease_until > 0 and attempts > 0',
        )
        for (const { event_id } of leased) in_flight.add(event_id)
        cluster.nodes[victim] = await cluster.startNode()
      }
      await cluster.ended()

      const rows = await cluster.rows<{ id: string; status: string; logged: number }>(
        `select id, status, (select count(*)::int from attempts a
                              where a.tenant_id = s.tenant_id and a.source_id = s.id and a.error is distinct from
                                    'interrupted') as logged
           from schedules s`,
      )
      expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
      expect(rows.filter(({ status }) => status !== 'fired' && status !== 'failed')).toEqual([])

      const posts = Map.groupBy(receiver.requests, ({ target }) => target)
      expect(posts.size).toBe(schedules_count)
      let repeated = 0
      for (const [i, id] of ids.entries()) {
        const sent = posts.get(`/${i}`)!
        expect(new Set(sent.map(idOf)).size).toBe(1)
        const attempts = sent.map(attemptOf)
        expect(attempts).toEqual([...new Set(attempts)].toSorted((a, b) => a - b))
        expect(attempts.at(-1)!).toBeLessThanOrEqual(3)
        const extra = sent.length - rows.find((row) => row.id === id)!.logged
        repeated += extra
        if (extra > 0) expect(in_flight.has(idOf(sent[0]!))).toBe(true)
      }
      // The kills hit work in progress: some was in flight, and the work of dead nodes was done again.
      expect(in_flight.size).toBeGreaterThan(0)
      expect(repeated).toBeLessThanOrEqual(in_flight.size)
      const failures = receiver.requests.filter((request) => attemptOf(request) > 1).length
      expect(failures).toBeGreaterThan(schedules_count / 10)
    })
  }, 300_000)

  // Beside the others: most of its time it waits for leases of nodes that died.
  test(`send each of ${repeats * 40} failures again once, though one is killed meanwhile and calls are repeated at another`, () => {
    const random = seededRandom(20_261_123)
    return withCluster(async (cluster) => {
      const { receiver } = cluster
      const { api_key } = await signUpAt(cluster.nodes[0]!.url)
      /** The event that came first to a path has to fail, with all its attempts. */
      const first_of = new Map<string, string>()
      receiver.answer = (request) => {
        if (!first_of.has(request.target)) first_of.set(request.target, idOf(request))
        return { status: first_of.get(request.target) === idOf(request) ? 410 : 204 }
      }
      for (let round = 0; round < repeats; round++) {
        const ids = await Promise.all(
          Array.from({ length: 40 }, async (_, n) => {
            const body = {
              ...{ callback_url: `${receiver.url}/${round}/${n}`, callback_payload: n, dlq_on_failure: true },
              fire_at: iso(Date.now()),
            }
            return scheduled(cluster.nodes[n % node_count]!.url, api_key, body)
          }),
        )
        const waiting = `select 1 from schedules where status = 'pending' and retry_of is null`
        while ((await cluster.rows(waiting)).length > 0) await Bun.sleep(look_ms)
        const left = new Map(
          (
            await cluster.rows<{ id: string; dead_letter_id: string }>(
              'select id, dead_letter_id from schedules where dead_letter_id is not null',
            )
          ).map((row) => [row.id, row.dead_letter_id]),
        )
        const paths = ids.map((id, n) =>
          n % 2 === 0 ? `/v1/schedules/${id}/retry` : `/v1/dlq/${left.get(id)}/redrive`,
        )
        const send = (url: string, path: string) =>
          fetch(url + path, {
            method: 'POST',
            headers: { authorization: `Bearer ${api_key}`, 'idempotency-key': path },
          })
        const victim = round % node_count
        const { url } = cluster.nodes[victim]!
        const answered = new Map<string, string>()
        const first = Promise.all(
          paths.map(async (path) => {
            const answer = await send(url, path).catch(() => null)
            const text = await answer?.text().catch(() => undefined)
            if (answer?.ok && text !== undefined) answered.set(path, text)
          }),
        )
        await Bun.sleep(random() * 40)
        await cluster.nodes[victim]!.kill()
        await first
        const other = cluster.nodes[(victim + 1) % node_count]!
        for (const path of paths) {
          let answer = await send(other.url, path)
          // The transaction of the node that died may hold its rows until PostgreSQL has seen that it is gone.
          while ([409, 503].includes(answer.status) && answer.headers.has('retry-after')) {
            await Bun.sleep(look_ms)
            answer = await send(other.url, path)
          }
          expect([path, answer.ok]).toEqual([path, true])
          const text = await answer.text()
          expect(text).toBe(answered.get(path) ?? text)
        }
        cluster.nodes[victim] = await cluster.startNode()
      }
      await cluster.ended()
      const [counts] = await cluster.rows<Record<string, number>>(
        `select count(*) filter (where retry_of is null)::int as made,
                count(*) filter (where retry_of is not null)::int as again,
                count(distinct retry_of)::int as repeated,
                count(*) filter (where status = 'fired')::int as fired from schedules`,
      )
      const all = repeats * 40
      expect(counts).toEqual({ made: all, again: all, repeated: all, fired: all })
      const open = await cluster.rows(
        `select id from dlq_items d where status <> 'resolved' or not exists
           (select 1 from schedules s
             where s.tenant_id = d.tenant_id and s.id = d.redriven_as and s.redrive_of = d.id)`,
      )
      expect(open).toEqual([])
      const quotas = await cluster.rows<{ used: number }>(
        "select used::int from quota_usage where quota in ('active_schedules', 'dlq_items')",
      )
      expect(quotas.map(({ used }) => used)).toEqual([0, 0])
    })
  }, 300_000)

  // In this block, because it waits as well: what is concurrent in another block begins after this one.
  test('and beside them a single one tries a schedule at 0, 30 and 90 seconds in real time, and never early', async () => {
    const mortal = await Mortal.start()
    try {
      await inRealTime(mortal)
    } finally {
      await mortal.stop()
    }
  }, 300_000)
})

async function inRealTime(mortal: Mortal): Promise<void> {
  const { receiver } = mortal
  const { api_key } = await signUpAt(mortal.url)
  const times: number[] = []
  receiver.answer = () => {
    times.push(Date.now())
    return { status: 500 }
  }
  const fire_at = Date.now() + second_ms
  const over = { dlq_on_failure: true, fire_at: iso(fire_at) }
  const { id } = await ask<{ id: string }>(mortal.url, 'POST', '/v1/schedules', api_key, {
    ...{ callback_url: `${receiver.url}/slow`, callback_payload: {} },
    ...over,
  })
  await receiver.received(3)
  for (const [i, seconds] of [0, 30, 90].entries()) {
    expect(times[i]!).toBeGreaterThanOrEqual(fire_at + seconds * second_ms)
    expect(times[i]! - times[0]!).toBeLessThan(seconds * second_ms + late_ms_max)
  }
  expect(receiver.requests.map(attemptOf)).toEqual([1, 2, 3])
  const failed = `select 1 from schedules where id = '${id}' and status = 'failed'`
  while (mortal.rows(failed).length === 0) await Bun.sleep(20)
  expect(halfDone(mortal)).toEqual({})
}
