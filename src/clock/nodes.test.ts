// A test clock of several nodes: an advance finishes what any of them has left.

import { expect, test } from 'bun:test'
import {
  advance,
  at,
  begin,
  hour_s,
  schedule,
  shown,
  withReceiver,
  withService,
} from '../../test/support/advance.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import type { TestService } from '../../test/support/service.ts'
import { subscribed } from '../../test/support/subscriptions.ts'
import { unnamedAcrossTenants } from '../db/db.ts'

const types = ['agent.created']

async function withNodes(work: (one: TestService, other: TestService) => Promise<void>): Promise<void> {
  const url = await newPostgresDatabase()
  try {
    await withService(url, async (one) => {
      const SECRET_KEY = one.app.secret_key.value
      await withService(url, (other) => work(one, other), { SECRET_KEY })
    })
  } finally {
    await dropPostgresDatabase(url)
  }
}

const newAgent = (service: TestService, key: string, name: string) =>
  service.ask('POST', '/v1/agents', { key, body: { name } })

onPostgres('An advance of one of several nodes', () => {
  test('delivers before it answers what another node has left, of whatever tenant', async () => {
    await withReceiver(async (receiver) => {
      await withNodes(async (one, other) => {
        const [mine, theirs] = [await one.signUp('pro'), await one.signUp('pro')]
        await subscribed(one, theirs, { url: receiver.url, types })
        await advance(one, mine.admin_key, 1)
        expect(receiver.requests).toHaveLength(0)
        await newAgent(other, theirs.admin_key, 'of-the-other-node')
        expect((await advance(one, mine.admin_key, 1)).body).toMatchObject({ done: true })
        expect(receiver.requests).toHaveLength(1)
      })
    })
  })

  test('delivers at its instant what another node leaves while the time stands, and reports it', async () => {
    await withReceiver(async (receiver) => {
      await withNodes(async (one, other) => {
        const { admin_key, api_key } = await one.signUp('pro')
        await subscribed(one, { admin_key }, { url: `${receiver.url}/events`, types })
        await schedule(one, api_key, `${receiver.url}/late`, hour_s)
        await schedule(one, api_key, `${receiver.url}/later`, 2 * hour_s)
        receiver.answer = async ({ target }) => {
          if (target !== '/events') await newAgent(other, admin_key, `made-at-${target.slice(1)}`)
          return { status: 204 }
        }
        const { body } = await advance(one, admin_key, 2 * hour_s)
        expect(body.done).toBe(true)
        expect(receiver.requests.map(({ target }) => target)).toEqual([
          '/late',
          '/events',
          '/later',
          '/events',
        ])
        expect(shown(body.events)).toEqual([
          `${at(hour_s)} agent.created`,
          `${at(hour_s)} schedule.attempted`,
          `${at(hour_s)} schedule.fired`,
          `${at(2 * hour_s)} agent.created`,
          `${at(2 * hour_s)} schedule.attempted`,
          `${at(2 * hour_s)} schedule.fired`,
        ])
      })
    })
  })

  test('does what a node was at when it died, once a lease is over by real time', async () => {
    await withReceiver(async (receiver) => {
      await withNodes(async (one) => {
        const { admin_key, api_key } = await one.signUp('pro')
        const id = await schedule(one, api_key, receiver.url, hour_s)
        await advance(one, admin_key, hour_s - 1)
        await one.app.db.write((tx) =>
          tx.run(
            unnamedAcrossTenants(
              'test.lease',
              'update jobs set lease_until = :until, attempts = 1, first_attempt_at = :due_at, fence = 1',
            ),
            {
              ...{ due_at: begin + hour_s * 1_000, until: begin + (hour_s + 30) * 1_000 },
            },
          ),
        )
        // A second of real time passes with each look at what is due.
        one.app.db.onStatement((name) => name === 'jobs.oldest_due' && one.clock.advance(1_000))
        const first = await advance(one, admin_key, 2)
        expect([first.body.done, receiver.requests.length]).toEqual([false, 0])
        let left = 2 - first.body.advanced_seconds
        // On a busy machine the time that passes with the looks is over before the delivery, as it was for the first.
        for (let is_done = false; !is_done; ) {
          const { status, body } = await advance(one, admin_key, Math.max(1, left))
          expect(status).toBe(200)
          left -= body.advanced_seconds
          is_done = body.done
        }
        one.app.db.onStatement(null)
        // Not from the answers: what such a machine settles between two advances is in neither.
        const fired = await one.ask('GET', '/v1/events?type=schedule.fired', { key: admin_key })
        expect([fired.body.items.length, receiver.requests.length]).toEqual([1, 1])
        const attempts = await one.ask('GET', `/v1/schedules/${id}/attempts`, { key: api_key })
        expect(attempts.body.items.at(-1)).toMatchObject({ error: 'interrupted', started_at: at(hour_s) })
      })
    })
  })
})
