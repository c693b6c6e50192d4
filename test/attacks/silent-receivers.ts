import { join } from 'node:path'
import { runAlone } from './lib/alone.ts'
import { startChild } from './lib/children.ts'
import type { Attack, Lab } from './lib/lab.ts'
import { lateness } from './lib/late.ts'
import { expectMade, statusesText } from './lib/statuses.ts'

const late_p95_ms_max = 1_000
const patience_ms = 13_000
/** A port may be one that the service never calls, such as that of its database. */
const made_part_least = 0.99
const cases: [attackers: number, receivers_each: number][] = [
  [1, 1_000],
  [5, 300],
]

export const silentReceivers: Attack = {
  name: 'silent-receivers',
  about: 'has schedules fired at a thousand addresses that take connections and never answer',
  engines: ['sqlite', 'postgres'],
  seconds_max: 90,
  async run(lab) {
    for (const [attackers, receivers_each] of cases) {
      const service = await lab.service()
      const good = await lab.good(service)
      const receiver = lab.receiver()
      const before = await lateness(good.tenant, receiver, { count: 10, gap_ms: 100, patience_ms })
      const ports = await silentPorts(lab, attackers * receivers_each)
      const tenants = await Promise.all(
        Array.from({ length: attackers }, () => lab.tenant(service, 'pro', 'attacker')),
      )
      await lab.during(
        `${attackers} tenant(s), ${receivers_each} silent receivers each`,
        good,
        async () => {
          const counts = await scheduleAll(tenants, ports)
          expectMade(counts, ports.length * made_part_least)
          const late = await lateness(good.tenant, receiver, { count: 40, gap_ms: 200, patience_ms })
          return {
            late,
            note: `late before p50/p95 ${before.p50}/${before.p95} ms; attackers got ${statusesText(counts)}`,
          }
        },
        { late_p95_ms: late_p95_ms_max },
      )
      await good.probe.stop()
      await receiver.stop()
      await service.stop()
    }
  },
}

async function silentPorts(lab: Lab, count: number): Promise<number[]> {
  const told = Promise.withResolvers<number[]>()
  const child = startChild([process.execPath, join(import.meta.dir, 'lib/silent-process.ts')], {
    onMessage: (ports) => told.resolve(ports as number[]),
  })
  lab.onEnd(async () => child.kill('SIGKILL'))
  child.send(count)
  return told.promise
}

interface Asking {
  status(method: string, path: string, body: object): Promise<number>
}

const clients = 8

/** One schedule for each port, due since long ago. Answers how often each status came. */
async function scheduleAll(tenants: Asking[], ports: number[]): Promise<Map<number, number>> {
  const counts = new Map<number, number>()
  let next = 0
  const client = async () => {
    for (let i = next++; i < ports.length; i = next++) {
      const status = await tenants[i % tenants.length]!.status('POST', '/v1/schedules', {
        callback_url: `http://127.0.0.66:${ports[i]}/`,
        callback_payload: {},
        fire_at: '2020-01-01T00:00:00Z',
      })
      counts.set(status, (counts.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return counts
}

runAlone(import.meta, silentReceivers.name)
