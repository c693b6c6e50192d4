// Rate windows on two nodes of which one has followed the clock of the database, which was set, and the other has not yet.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { randomFrom } from '../../test/support/random.ts'
import { type Answer, TestService } from '../../test/support/service.ts'
import { minute_ms, second_ms } from '../base/clock.ts'

/** Of a node that asks the database for the time. */
class FollowingClock extends TestClock {
  followed = 0

  follow(ms: number): void {
    this.jump(ms)
    this.followed += 1
  }
}

const limit = 3
const window_seconds = 10

onPostgres('Two nodes after the clock of the database was set', () => {
  const nodes: TestService[] = []
  let clocks: FollowingClock[] = []
  let database_url: string
  let key: string
  beforeAll(async () => {
    database_url = await newPostgresDatabase()
    for (let i = 0; i < 2; i++) {
      const node = new TestService({ SECRET_KEY: 'the key that every node has' })
      node.clock = new FollowingClock()
      nodes.push(await node.start(database_url))
    }
    clocks = nodes.map(({ clock }) => clock as FollowingClock)
  })
  afterAll(async () => {
    for (const node of nodes) await node.stop()
    await dropPostgresDatabase(database_url)
  })
  beforeEach(async () => {
    const behind = clocks[0]!.now() - clocks[1]!.now()
    clocks[1]!.jump(behind)
    key = (await nodes[0]!.signUp('pro')).api_key
  })

  const checkAt = (node: number, algorithm: string, cost = 1) =>
    nodes[node]!.ask('POST', '/api/rate-limit/check', {
      key,
      body: { key: 'k', limit, windowSeconds: window_seconds, algorithm, cost },
    })
  const untilReset = (node: number, { body }: Answer) => Date.parse(body.data.resetAt) - clocks[node]!.now()

  /** Of checks on both in turn, how many are allowed. */
  async function allowed(algorithm: string): Promise<number> {
    let count = 0
    for (let i = 0; i < 8 * limit; i++) if ((await checkAt(i % 2, algorithm)).status === 200) count += 1
    return count
  }

  describe.each(['fixed_window', 'sliding_window'])('%s', (algorithm) => {
    test('set ahead, past the end of the window, it ends once', async () => {
      expect(await allowed(algorithm)).toBe(limit)
      clocks[0]!.follow(minute_ms)
      expect(await allowed(algorithm)).toBe(limit)
      clocks[1]!.follow(minute_ms)
      expect(await allowed(algorithm)).toBe(0)
    })

    test('set back, the window goes on until both have followed, and then begins now', async () => {
      expect(await allowed(algorithm)).toBe(limit)
      clocks[0]!.follow(-minute_ms)
      expect(await allowed(algorithm)).toBe(0)
      expect(untilReset(0, await checkAt(0, algorithm))).toBeLessThanOrEqual(2 * window_seconds * second_ms)
      clocks[1]!.follow(-minute_ms)
      for (const clock of clocks) for (let i = 0; i < 2; i++) clock.follow(0)
      expect(await allowed(algorithm)).toBe(0)
      for (const clock of clocks) clock.advance(2 * window_seconds * second_ms)
      expect(await allowed(algorithm)).toBe(limit)
    })

    test('however far apart they are, an answer says what it does, and its times are those of its node', async () => {
      const random = randomFrom(7)
      for (let step = 0; step < 60; step++) {
        if (random(4) === 0) clocks[random(2)]!.jump((random(2) === 0 ? -1 : 1) * random(minute_ms))
        for (const clock of clocks) clock.advance(random(4_000))
        const node = random(2)
        const answer = await checkAt(node, algorithm, 1 + random(limit))
        const { allowed, count, remaining } = answer.body.data
        expect([answer.status, allowed]).toEqual(count > limit ? [429, false] : [200, true])
        expect(remaining).toBe(Math.max(0, limit - count))
        expect(untilReset(node, answer)).toBeGreaterThan(0)
        expect(untilReset(node, answer)).toBeLessThanOrEqual(2 * window_seconds * second_ms)
      }
    })
  })
})
