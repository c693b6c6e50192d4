import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'
import type { LoadRequest } from './lib/load-process.ts'
import type { Tenant } from './lib/service.ts'

const connections = 64
const seconds = 5

export const largeCalls: Attack = {
  name: 'large-calls',
  about: `calls tools of MCP over ${connections} connections with the arguments that cost most to read`,
  engines: ['sqlite', 'postgres'],
  seconds_max: 90,
  async run(lab) {
    const objects = (count: number) => Array.from({ length: count }, () => ({}))
    const members = (count: number) => Object.fromEntries(objects(count).map((_, i) => [`k${i}`, i % 10]))
    const calls: [what: string, tool: string, given: object, status: number][] = [
      ['9,900 objects', 'kv_put', { namespace: 'ns', key: 'k', value: objects(9_900) }, 200],
      ['9,900 members', 'dlq_create', { error: 'e', payload: members(9_900) }, 200],
      ['49,900 texts', 'dlq_create', { error: 'e', payload: Array(49_900).fill('a') }, 200],
      [
        '100,000 numbers, which are too many',
        'dlq_create',
        { error: 'e', payload: Array(100_000).fill(1) },
        400,
      ],
      ['60,000 objects, which are too many', 'dlq_create', { error: 'e', payload: objects(60_000) }, 400],
    ]
    for (const [what, tool, given, status] of calls) {
      const service = await lab.service()
      const good = await lab.good(service, { interval_ms: 10 })
      const attacker = await lab.tenant(service, 'pro', 'attacker')
      const requests = [callOf(attacker, tool, given)]
      const load = { connections, seconds, manner: 'answers', requests } as const
      await lab.during(`${connections} connections call ${tool} with ${what}`, good, async () =>
        shown(await lab.load(service, { ...load, served: { status, least: 5 } })),
      )
      await good.probe.stop()
      await service.stop()
    }
  },
}

function callOf(attacker: Tenant, name: string, given: object): LoadRequest {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }
  const request = attacker.request('POST', '/mcp', JSON.stringify(call))
  return { ...request, headers: { ...request.headers, accept: 'application/json, text/event-stream' } }
}
