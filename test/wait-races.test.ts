// Callers that begin to wait at the very moment at which what they wait for happens, on another node where there is one.
// `npm run wait-races` does it 10,000 times on each engine, and says how late the latest was.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forEachDatabase } from './support/databases.ts'
import { randomFrom } from './support/random.ts'
import { TestService, type TestTenant } from './support/service.ts'

const races_count = Number(process.env.WAIT_RACES ?? 200)
/** Only where it is asked for: a machine that does much else is late by itself. */
const late_ms_max = Number(process.env.WAIT_LATE_MS ?? Number.POSITIVE_INFINITY)
const at_once = 20
const wait_seconds = 50
const environment = { SECRET_KEY: 'one secret key for every node' }

forEachDatabase('A wait and the event that it waits for', (databases) => {
  const nodes: TestService[] = []
  let tenant: TestTenant
  beforeAll(async () => {
    const database_url = await databases.newUrl()
    for (let n = 0; n < (databases.engine === 'sqlite' ? 1 : 2); n++)
      nodes.push(await new TestService(environment).start(database_url))
    tenant = await nodes[0]!.signUp('pro')
  })
  afterAll(async () => {
    for (const node of nodes) await node.stop()
  })

  const ask = async (node: TestService, method: string, path: string, body: object) => {
    const answer = await node.ask(method, path, { key: tenant.api_key, body })
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
      let after = 0
      let race = 0
      const late_ms: number[] = []
      const missed: string[] = []
      const run = async () => {
        while (race < races_count) {
          const workflow_id = `race-${race++}`
          const from = random(2) === 0 ? after : 0
          const [waits_first, pause] = [random(2) === 0, random(12)]
          const began_at = performance.now()
          const wait = async () => {
            if (!waits_first) await turns(pause)
            const any = [{ type: 'audit.appended', workflow_id }, { workflow_id: 'no-such' }]
            const answer = await ask(nodes[0]!, 'POST', '/v1/wait', { any, after: from, wait_seconds })
            return { answer, at: performance.now() }
          }
          const append = async () => {
            if (waits_first) await turns(pause)
            await ask(nodes.at(-1)!, 'POST', '/v1/audit', { action: 'raced', workflow_id })
            return performance.now()
          }
          const [{ answer, at }, appended_at] = await Promise.all([wait(), append()])
          if (answer.event?.workflow_id !== workflow_id) missed.push(workflow_id)
          else after = Math.max(after, answer.after)
          late_ms.push(at - Math.max(began_at, appended_at))
        }
      }
      await Promise.all(Array.from({ length: at_once }, run))
      expect(missed).toEqual([])
      late_ms.sort((one, other) => one - other)
      const at = (part: number) => Math.max(0, late_ms[Math.floor((late_ms.length - 1) * part)]!).toFixed(1)
      console.log(
        `${databases.engine}: after the event's own answer, ms: p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)}`,
      )
      expect(late_ms.at(-1)!).toBeLessThan(late_ms_max)
    },
    120_000 + races_count * 60,
  )
})
