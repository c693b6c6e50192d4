// Callers that begin to wait at the very moment at which what they wait for happens, on another node where there is one.
// No node polls: a notification that is lost ends as a missed event. `npm run wait-races` does it 10,000 times on
// each engine, and says how late the latest was.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from './support/databases.ts'
import { randomFrom } from './support/random.ts'
import { served, TestService, type TestTenant } from './support/service.ts'

const races_count = Number(process.env.WAIT_RACES ?? 200)
/** Only where it is asked for: a machine that does much else is late in any case. */
const late_ms_max = Number(process.env.WAIT_LATE_MS ?? Number.POSITIVE_INFINITY)
/** Requests of the first share a tail; each of the second has one of its own, which others' requests cannot wake. */
const [sharing, alone] = [10, 10]
const wait_seconds = 50
const environment = { SECRET_KEY: 'one secret key for every node' }

forEachDatabase('A wait and the event that it waits for', (databases) => {
  const nodes: TestService[] = []
  /** A tenant for each that races: one for those who share it. */
  const tenants: TestTenant[] = []
  beforeAll(async () => {
    const database_url = await databases.newUrl()
    for (let n = 0; n < (databases.engine === 'sqlite' ? 1 : 2); n++) {
      const node = new TestService(environment)
      node.looks_again = false
      nodes.push(await node.start(database_url))
    }
    const shared = await nodes[0]!.signUp('pro')
    for (let n = 0; n < sharing; n++) tenants.push(shared)
    for (let n = 0; n < alone; n++) tenants.push(await nodes[0]!.signUp('pro'))
  })
  afterAll(async () => {
    for (const node of nodes) await node.stop()
  })

  const post = async (node: TestService, path: string, key: string, body: object) => {
    const answer = await served(() => node.ask('POST', path, { key, body }))
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }

  /** Some turns of the event loop, or none. */
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  test(
    `meet ${races_count} times: no event is missed`,
    async () => {
      const random = randomFrom(7)
      const after = new Map<TestTenant, number>()
      let race = 0
      const late_ms: number[] = []
      const missed: string[] = []
      const run = async (tenant: TestTenant) => {
        const { api_key } = tenant
        while (race < races_count) {
          const workflow_id = `race-${race++}`
          const seen = after.get(tenant) ?? 0
          const from = random(2) === 0 ? seen : 0
          const [waits_first, pause] = [random(2) === 0, random(12)]
          const began_at = performance.now()
          const wait = async () => {
            if (!waits_first) await turns(pause)
            const any = [{ type: 'audit.appended', workflow_id }, { workflow_id: 'no-such' }]
            const answer = await post(nodes[0]!, '/v1/wait', api_key, { any, after: from, wait_seconds })
            return { answer, at: performance.now() }
          }
          const append = async () => {
            if (waits_first) await turns(pause)
            await post(nodes.at(-1)!, '/v1/audit', api_key, { action: 'raced', workflow_id })
            return performance.now()
          }
          const [{ answer, at }, appended_at] = await Promise.all([wait(), append()])
          if (answer.event?.workflow_id !== workflow_id) missed.push(workflow_id)
          else after.set(tenant, Math.max(after.get(tenant) ?? 0, answer.after))
          late_ms.push(at - Math.max(began_at, appended_at))
        }
      }
      await Promise.all(tenants.map(run))
      expect(missed).toEqual([])
      late_ms.sort((one, other) => one - other)
      const at = (part: number) => Math.max(0, late_ms[Math.floor((late_ms.length - 1) * part)]!).toFixed(1)
      console.log(
        `${databases.engine}: after the event's own answer, ms: p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)}`,
      )
      expect(late_ms.at(-1)!).toBeLessThan(late_ms_max)
    },
    300_000 + races_count * 60,
  )
})
