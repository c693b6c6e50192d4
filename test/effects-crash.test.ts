// Agents do their effects while they and the service are killed (SIGKILL) at any moment: each effect happens exactly once, because
// a person looks at the target where nobody knows. EFFECT_KILLS says how often the service is killed.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onPostgres } from './support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { randomFrom } from './support/random.ts'
import { type ServerProcess, startServer } from './support/server-process.ts'

const kills = Number(process.env.EFFECT_KILLS ?? 3)
const keys_a_kill = 12
const lease_seconds = 4
/** A holder with less time than this does not begin. */
const least_left_ms = 1_500

interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an answer's shape
  body: any
}

/** A service that is killed and started again, and the target of the effects. */
class Story {
  readonly #below: (below: number) => number
  /** How often each effect has happened. */
  readonly target = new Map<string, number>()
  #server!: ServerProcess
  admin_key = ''
  api_key = ''

  constructor(
    private readonly environment: Record<string, string>,
    seed: number,
  ) {
    this.#below = randomFrom(seed)
  }

  async start(): Promise<void> {
    this.#server = await startServer({ ...this.environment, PLANS_OPEN: 'free,unlimited' })
  }

  async signUp(): Promise<void> {
    const body = { name: 'story', owner_email: 'owner@example.com', plan: 'unlimited' }
    this.admin_key = (await this.ask('', 'POST', '/v1/tenants', body)).body.admin_key
    this.api_key = (await this.ask(this.admin_key, 'POST', '/v1/agents', { name: 'one' })).body.api_key
  }

  async kill(): Promise<void> {
    await this.#server.kill()
    await this.start()
  }

  stop(): Promise<number> {
    return this.#server.stop()
  }

  /** Until it is answered: the same request is sent again when the service was killed meanwhile. */
  async ask(key: string, method: string, path: string, body?: object): Promise<Answer> {
    for (;;) {
      try {
        const response = await fetch(this.#server.url + path, {
          method,
          headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
          ...(body && { body: JSON.stringify(body) }),
        })
        const answer = { status: response.status, body: await response.json() }
        if (answer.status < 500) return answer
      } catch {
        // Killed: whether it had its effect is not known.
      }
      await Bun.sleep(50)
    }
  }

  /** An agent's life: it does the effect, unless it is killed before or after that. True once the effect is over. */
  async live(key: string): Promise<boolean> {
    const payload = { key }
    const lease_token = crypto.randomUUID()
    const claim = { type: 'story', key, payload, lease_seconds, lease_token }
    const { status, body } = await this.ask(this.api_key, 'POST', '/v1/effects', claim)
    if (status === 200) return body.status === 'succeeded'
    if (status === 409) {
      if (body.error.code === 'EFFECT_UNKNOWN') await this.look(body.error.details.effect_id, key)
      else await Bun.sleep(200)
      return false
    }
    expect([status, body.error ?? null]).toEqual([201, null])
    const fate = this.#below(4)
    if (fate === 0) return false // killed before it
    if (Date.parse(body.lease_until) - Date.now() < least_left_ms) return false
    this.target.set(key, (this.target.get(key) ?? 0) + 1)
    if (fate === 1) return false // killed after it, before its report
    const report = { lease_token, result: key }
    const done = await this.ask(this.api_key, 'POST', `/v1/effects/${body.id}/succeed`, report)
    // Another may have looked at the target, and resolved it, while the service was down.
    if (done.status === 200) expect(done.body).toMatchObject({ status: 'succeeded', result: key })
    else expect(done.body.error.code).toBe('EFFECT_NOT_HELD')
    return true
  }

  /** A person looks at the target. */
  async look(id: string, key: string): Promise<void> {
    const outcome = this.target.has(key) ? 'succeeded' : 'retry'
    await this.ask(this.admin_key, 'POST', `/v1/effects/${id}/resolve`, { outcome })
  }
}

async function told(environment: Record<string, string>, seed: number): Promise<void> {
  const story = new Story(environment, seed)
  await story.start()
  try {
    await story.signUp()
    const keys = Array.from({ length: kills * keys_a_kill }, (_, i) => `order-${i}`)
    const open = new Set(keys)
    const lives = Array.from({ length: 6 }, async (_, agent) => {
      for (let turn = agent; open.size > 0; turn++) {
        const key = [...open][turn % open.size]!
        if (await story.live(key)) open.delete(key)
      }
    })
    const below = randomFrom(seed + 1)
    for (let i = 0; i < kills; i++) {
      await Bun.sleep(100 + below(400))
      await story.kill()
    }
    await Promise.all(lives)
    expect(keys.filter((key) => story.target.get(key) !== 1)).toEqual([])
    const list = await story.ask(story.admin_key, 'GET', '/v1/effects?limit=200')
    expect(list.body.items.filter(({ status }: { status: string }) => status !== 'succeeded')).toEqual([])
  } finally {
    await story.stop()
  }
}

const folder = mkdtempSync(join(tmpdir(), 'waystation-effects-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const name = `happen exactly once while agents and the service are killed, the service ${kills} times`

describe('Effects on SQLite', () => {
  test(name, () => told({ DATABASE_URL: `sqlite:${join(folder, 'story.db')}`, DATA_DIR: folder }, 1), 600_000)
})

onPostgres('Effects on PostgreSQL', () => {
  test(name, async () => {
    const url = await newPostgresDatabase()
    try {
      await told({ DATABASE_URL: url, DATA_DIR: folder }, 2)
    } finally {
      await dropPostgresDatabase(url)
    }
  }, 600_000)
})
