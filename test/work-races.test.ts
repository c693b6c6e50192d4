// Many callers after one thing: what is settled is settled once, and nothing is fired twice. On PostgreSQL the callers
// ask three nodes.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { iso } from '../src/base/clock.ts'
import { rowsOf } from './support/job-bench.ts'
import { type Received, type Receiver, startReceiver } from './support/receiver.ts'
import { rounds } from './support/rounds.ts'
import {
  type Answer,
  type Ask,
  forEachRacedService,
  isUnknown,
  served,
  TestService,
  type TestTenant,
} from './support/service.ts'

const environment = { CRON_SECRET: 'the cron secret of the tests', SECRET_KEY: 'the key that every node has' }
const node_count = { sqlite: 1, postgres: 3 }

/**
 * Also one whose commit had no answer in time, as on a busy machine: nothing is broken here, so it was made. What it did is
 * looked at afterwards. One that loses is refused before it commits.
 */
function isDone(answer: Answer, status: number): boolean {
  return answer.status === status || isUnknown(answer)
}

forEachRacedService(
  'a race',
  (service) => {
    const nodes: TestService[] = []
    let receiver: Receiver
    let tenant: TestTenant
    beforeAll(async () => {
      nodes.push(service)
      while (nodes.length < node_count[service.engine]) {
        const node = new TestService(environment)
        node.clock = service.clock
        nodes.push(await node.start(service.database_url))
      }
      receiver = await startReceiver()
      tenant = await service.signUp('pro')
    })
    afterAll(async () => {
      for (const node of nodes.slice(1)) await node.stop()
      await receiver.stop()
    })

    let asked = 0
    /** Each call goes to the next node. */
    const ask = (method: string, path: string, options: Ask): Promise<Answer> =>
      served(() => nodes[asked++ % nodes.length]!.ask(method, path, options))
    const tick = () => ask('POST', '/v1/tick', { key: environment.CRON_SECRET })
    const ticks = (count: number) => Promise.all(Array.from({ length: count }, tick))
    const read = async (path: string) => (await ask('GET', path, { key: tenant.api_key })).body
    const now = () => iso(service.clock.now())

    async function create(path: string, body: object): Promise<string> {
      const headers = { 'idempotency-key': crypto.randomUUID() }
      const node = nodes[asked++ % nodes.length]!
      const send = () => node.ask('POST', path, { key: tenant.api_key, headers, body })
      const answer = await served(send, { repeatable: true })
      expect(answer.status).toBe(201)
      return answer.body.id
    }

    /** So many at a time: what is raced comes afterwards, and no request here may wait as long as it takes to be refused. */
    const created_at_once = 30

    async function createMany(count: number, path: string, body: (i: number) => object): Promise<string[]> {
      const ids: string[] = []
      for (let from = 0; from < count; from += created_at_once) {
        const size = Math.min(created_at_once, count - from)
        ids.push(...(await Promise.all(Array.from({ length: size }, (_, i) => create(path, body(from + i))))))
      }
      return ids
    }

    async function usedOf(quota: string): Promise<number> {
      const path = `/v1/tenants/${tenant.tenant_id}`
      return (await ask('GET', path, { key: tenant.admin_key })).body.quota[quota].used
    }

    const jobs = () =>
      rowsOf(service.app.db, 'select source_id from jobs where tenant_id = :tenant_id', {
        tenant_id: tenant.tenant_id,
      })

    describe('of approve, reject, cancel and timeout', () => {
      const rounds_count = rounds(3, 10)
      const checkpoints_a_round = 20

      test(`settles each of ${rounds_count * checkpoints_a_round} checkpoints once, and calls back at most once`, async () => {
        receiver.requests.length = 0
        await ticks(1)
        const decide = (verb: string, id: string) =>
          ask('POST', `/v1/checkpoints/${id}/${verb}`, { key: tenant.admin_key })
        const cancel = (id: string) => ask('DELETE', `/v1/checkpoints/${id}`, { key: tenant.api_key })
        const outcomes: Record<string, number> = {}
        let timed_out = 0
        const told: Answer[] = []

        for (let round = 0; round < rounds_count; round++) {
          const ids = await createMany(checkpoints_a_round, '/v1/checkpoints', () => ({
            ...{ title: 'May I?', callback_url: `${receiver.url}/decided`, expires_at: now() },
          }))
          const begun = ids.map((id, i) => {
            const racers = [
              () => decide('approve', id),
              () => decide('reject', id),
              () => cancel(id),
              async () => {
                told.push(await tick())
                return null
              },
            ]
            const [first, ...others] = racers.map((_, k) => (i + k) % racers.length)
            return { racers, others, first: { k: first!, answer: racers[first!]!() } }
          })
          // The one that is asked first often wins: each is first for a quarter of them, and then a turn ahead of the others,
          // because decisions come before cancellations within a commit.
          await new Promise((resolve) => setImmediate(resolve))
          const races = begun.map(async ({ racers, others, first }) => {
            const asked = new Map([[first.k, first.answer]])
            for (const k of others) asked.set(k, racers[k]!())
            return Promise.all(racers.map((_, k) => asked.get(k)!))
          })
          for (const [i, answers] of (await Promise.all(races)).entries()) {
            const [approved, rejected, cancelled] = answers as [Answer, Answer, Answer]
            const checkpoint = await read(`/v1/checkpoints/${ids[i]}`)
            const settled = {
              approved: isDone(approved, 200),
              rejected: isDone(rejected, 200),
              cancelled: isDone(cancelled, 204),
              timeout: checkpoint.resolved_by === 'timeout',
            }
            expect(Object.values(settled).filter(Boolean)).toHaveLength(1)
            const [winner] = Object.entries(settled).find(([, won]) => won)!
            expect(checkpoint.status).toBe(winner === 'timeout' ? 'rejected' : winner)
            const others = [approved, rejected, cancelled].filter((answer) => !isUnknown(answer))
            for (const loser of others.filter(({ status }) => status > 299)) {
              expect([loser.status, loser.body.error.code]).toEqual([409, 'CHECKPOINT_ALREADY_RESOLVED'])
            }
            outcomes[checkpoint.status] = (outcomes[checkpoint.status] ?? 0) + 1
            timed_out += winner === 'timeout' ? 1 : 0
          }
        }
        for (const _ of nodes) told.push(await tick())

        expect(Object.keys(outcomes).toSorted()).toEqual(['approved', 'cancelled', 'rejected'])
        const posts = receiver.requests.map(({ body }: Received) => JSON.parse(body))
        const called = posts.map(({ data }) => data.checkpoint_id)
        expect(new Set(called).size).toBe(called.length)
        expect(called.length).toBe(outcomes.approved! + outcomes.rejected!)
        for (const { type, data } of posts) {
          const { status, callback } = await read(`/v1/checkpoints/${data.checkpoint_id}`)
          expect([type, callback.status]).toEqual([`checkpoint.${status}`, 'delivered'])
        }
        const counted = (of: 'rejected' | 'callbacks') =>
          told.reduce((sum, { body }) => sum + body.checkpoints[of], 0)
        expect([counted('rejected'), counted('callbacks')]).toEqual([timed_out, called.length])
        expect(await jobs()).toEqual([])
      })
    })

    const repeats = rounds(1, 3)
    test(`of redrives, retries, claims and ticks sends each of ${repeats * 20} failures again once`, async () => {
      receiver.requests.length = 0
      receiver.answer = () => ({ status: 410 })
      const counted = {
        active_schedules: await usedOf('active_schedules'),
        dlq_items: await usedOf('dlq_items'),
      }
      for (let round = 0; round < repeats; round++) {
        const ids = await createMany(20, '/v1/schedules', (i) => ({
          ...{ callback_url: `${receiver.url}/${round}/${i}`, callback_payload: i, fire_at: now() },
          dlq_on_failure: true,
        }))
        receiver.answer = () => ({ status: 410 })
        await ticks(2)
        receiver.answer = () => ({ status: 204 })
        const key = tenant.api_key
        const races = ids.map(async (id, i) => {
          const { dead_letter_id } = await read(`/v1/schedules/${id}`)
          const letter = `/v1/dlq/${dead_letter_id}`
          const racers = [
            () => ask('POST', `${letter}/redrive`, { key }),
            () => ask('POST', `/v1/schedules/${id}/retry`, { key }),
            () => ask('POST', `${letter}/claim`, { key }),
            () => ask('POST', `${letter}/redrive`, { key: tenant.admin_key }),
            () => ask('POST', `/v1/schedules/${id}/retry`, { key: tenant.admin_key }),
            tick,
          ]
          const order = racers.map((_, k) => (i + k) % racers.length)
          const answers = await Promise.all(order.map((k) => racers[k]!()))
          const of = (k: number) => answers[order.indexOf(k)]!
          const sent = [of(0), of(3)].filter((redriven) => isDone(redriven, 200))
          sent.push(...[of(1), of(4)].filter((retried) => isDone(retried, 201)))
          expect(sent.length + (isDone(of(2), 200) ? 1 : 0)).toBe(1)
          const { retried_as } = await read(`/v1/schedules/${id}`)
          const { status, redriven_as } = await read(letter)
          expect([status, redriven_as]).toEqual(
            sent.length === 1 ? ['resolved', retried_as] : ['claimed', null],
          )
          if (sent.length === 0) expect((await ask('POST', `${letter}/resolve`, { key })).status).toBe(200)
          return sent.length
        })
        const again = (await Promise.all(races)).reduce((sum, one) => sum + one, 0)
        await ticks(3)
        const targets = receiver.requests.filter(({ target }) => target.startsWith(`/${round}/`))
        expect(targets).toHaveLength(20 + again)
      }
      expect(await usedOf('active_schedules')).toBe(counted.active_schedules)
      expect(await usedOf('dlq_items')).toBe(counted.dlq_items)
      expect(await jobs()).toEqual([])
      receiver.answer = () => ({ status: 204 })
    })

    describe('for a dead letter', () => {
      const claimed_rounds = rounds(2, 5)
      test(`has one winner for each of ${claimed_rounds * 20} that 20 claim at once`, async () => {
        const keys = [tenant.api_key]
        for (const name of ['agent-two', 'agent-three', 'agent-four']) {
          keys.push((await service.addAgent(tenant.admin_key, name)).api_key)
        }
        for (let round = 0; round < claimed_rounds; round++) {
          const ids = await createMany(20, '/v1/dlq', (i) => ({ payload: i, error: 'x' }))
          const claims = ids.map((id) =>
            Promise.all(
              Array.from({ length: 20 }, (_, i) =>
                ask('POST', `/v1/dlq/${id}/claim`, { key: keys[i % keys.length]! }),
              ),
            ),
          )
          for (const [i, answers] of (await Promise.all(claims)).entries()) {
            const won = answers.filter((answer) => isDone(answer, 200))
            expect(won).toHaveLength(1)
            const claimed = isUnknown(won[0]!) ? await read(`/v1/dlq/${ids[i]}`) : won[0]!.body
            expect(claimed).toMatchObject({ status: 'claimed', claims: 1 })
            const lost = answers.filter((answer) => !isDone(answer, 200))
            expect(lost.map(({ status, body }) => `${status} ${body.error.code}`)).toEqual(
              Array(19).fill('409 ALREADY_CLAIMED'),
            )
          }
        }
        expect(await usedOf('dlq_items')).toBe(claimed_rounds * 20)
      })
    })

    describe('of many ticks', () => {
      test('fires 300 schedules once each, and counts each once', async () => {
        await ticks(nodes.length)
        receiver.requests.length = 0
        await createMany(300, '/v1/schedules', (i) => ({
          ...{ callback_url: `${receiver.url}/${i}`, callback_payload: i, fire_at: now() },
        }))
        const answers = await ticks(30)
        // Settlements that the last of these ticks did not see are counted by the next tick of the same node.
        answers.push(...(await ticks(nodes.length)))
        const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
        expect(ids).toHaveLength(300)
        expect(new Set(ids).size).toBe(300)
        expect(new Set(receiver.requests.map(({ target }) => target)).size).toBe(300)
        expect(answers.reduce((sum, { body }) => sum + body.schedules.fired, 0)).toBe(300)
        expect(await jobs()).toEqual([])
        expect(await usedOf('active_schedules')).toBe(0)
      })

      const changes: [verb: string, method: string, body: object | undefined, done: number][] = [
        ['a cancellation', 'DELETE', undefined, 204],
        ['a new time', 'PATCH', { fire_at: '9999-01-01T00:00:00Z' }, 200],
      ]
      test.each(changes)('and %s: the schedule is fired, or it is not', async (_, method, body, done) => {
        receiver.requests.length = 0
        const ids = await createMany(80, '/v1/schedules', (i) => ({
          ...{ callback_url: `${receiver.url}/${method}/${i}`, callback_payload: i, fire_at: now() },
        }))
        const [answers] = await Promise.all([
          Promise.all(
            ids.map((id) =>
              ask(method, `/v1/schedules/${id}`, { key: tenant.api_key, ...(body ? { body } : {}) }),
            ),
          ),
          ticks(6),
        ])
        await ticks(nodes.length)
        const targets = receiver.requests.map(({ target }) => target)
        expect(new Set(targets).size).toBe(targets.length)
        for (const [i, id] of ids.entries()) {
          const { status } = await read(`/v1/schedules/${id}`)
          const changed = isDone(answers[i]!, done)
          expect(changed || answers[i]!.status === 409).toBe(true)
          expect(status).toBe(changed ? { DELETE: 'cancelled', PATCH: 'pending' }[method] : 'fired')
          if (!changed) expect(targets).toContain(`/${method}/${i}`)
        }
        expect(await usedOf('active_schedules')).toBe((await jobs()).length)
        for (const id of ids) await ask('DELETE', `/v1/schedules/${id}`, { key: tenant.api_key })
      })
    })
  },
  environment,
)
