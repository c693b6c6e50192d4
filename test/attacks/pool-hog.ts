import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const seconds = 4
const good_p99_ms = 20

export const poolHog: Attack = {
  name: 'pool-hog',
  about: 'keeps many transactions of one tenant waiting, so that others wait for a connection of the pool',
  engines: ['postgres', 'sqlite'],
  seconds_max: 90,
  async run(lab) {
    const service = await lab.service()
    const attacker = await lab.tenant(service, 'pro', 'attacker')
    const append = attacker.request('POST', '/v1/audit', '{"action":"x"}')
    const put = attacker.request('PUT', '/v1/kv/ns/p', '{"value":1}')
    const probes = [
      ['read', { method: 'GET', path: '/v1/kv/ns/k' }],
      ['write', { method: 'PUT', path: '/v1/kv/ns/k2', body: '{"value":1}' }],
    ] as const
    let acknowledged = 0
    for (const [kind, request] of probes) {
      const good = await lab.good(service, { request })
      for (const [what, requests, connections] of [
        ['appends', [append], 64],
        ['appends', [append], 200],
        ['puts of one key', [put], 256],
      ] as const) {
        await lab.during(
          `others ${kind} beside ${connections} ${what} at once`,
          good,
          async () => {
            const result = await lab.load(service, {
              connections,
              seconds,
              manner: 'answers',
              requests: [...requests],
            })
            if (requests[0] === append) acknowledged += result.answers['201'] ?? 0
            return shown(result)
          },
          lab.engine === 'postgres' ? { good_p99_ms } : {},
        )
      }
      await good.probe.stop()
    }
    const page = await attacker.ask<{ items: { seq: number }[] }>('GET', '/v1/audit?limit=1')
    const lost = Math.max(0, acknowledged - page.items[0]!.seq)
    lab.bound('every acknowledged append is there', { lost: [lost, 0] }, `${acknowledged} acknowledged`)
  },
}
