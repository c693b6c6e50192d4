import { newInbox } from './lib/heavy.ts'
import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'
import type { LoadRequest } from './lib/load-process.ts'

const connections = 64
const seconds = 3
/** Most are told to come again, and some are taken. */
const taken_least = 16

export const heavyWrites: Attack = {
  name: 'heavy-writes',
  about: `writes what costs most to take over ${connections} connections`,
  engines: ['sqlite', 'postgres'],
  seconds_max: 90,
  async run(lab) {
    const service = await lab.service()
    const good = await lab.good(service, { interval_ms: 10 })
    const attacker = await lab.tenant(service, 'pro', 'attacker')
    const { token } = await newInbox(attacker)
    const deep = `${'['.repeat(60)}${']'.repeat(60)}`
    const members = Array.from({ length: 70_000 }, (_, i) => `"k${i}":${i}`).join(',')
    const put = (body: string) => attacker.request('PUT', '/v1/kv/ns/p', body)
    const loads: [what: string, request: LoadRequest, status?: number][] = [
      ['values of 256 KiB', put(JSON.stringify({ value: 'q'.repeat(260_000) }))],
      [
        'audit entries of 64 KiB',
        attacker.request('POST', '/v1/audit', `{"action":"x","metadata":{"m":"${'x'.repeat(65_000)}"}}`),
        201,
      ],
      [
        'values of many deep arrays',
        put(`{"value":[${Array.from({ length: 2_000 }, () => deep).join(',')}]}`),
      ],
      ['bodies of many members', put(`{${members},"value":1}`)],
      [
        'messages of many arrays',
        {
          ...{ method: 'POST', path: `/hook/${token}`, headers: { 'content-type': 'application/json' } },
          body: `[${Array.from({ length: 300_000 }, () => '[]').join(',')}]`,
        },
      ],
    ]
    for (const [what, request, status = 200] of loads) {
      const served = { status, least: taken_least }
      const load = { connections, seconds, manner: 'answers' as const, requests: [request], served }
      await lab.during(`${connections} connections write ${what}`, good, async () =>
        shown(await lab.load(service, load)),
      )
    }
  },
}
