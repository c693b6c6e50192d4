import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const levels = 100_000
const values = 490_000
const answer_ms_max = 200

export const nestedIds: Attack = {
  name: 'nested-ids',
  about: `posts to /mcp messages that are nested ${levels} levels deep, or have ${values} values`,
  engines: ['sqlite'],
  seconds_max: 60,
  async run(lab) {
    const deep = `${'['.repeat(levels)}${']'.repeat(levels)}`
    const wide = `[0${',0'.repeat(values - 1)}]`
    const cancelled = `"method":"notifications/cancelled","params":{"requestId":${deep}}`
    const client = `"clientInfo":{"name":"a","version":"1","icons":${wide}}`
    const starting = `"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},${client}}`
    for (const [what, body] of [
      ['deep id', `{"jsonrpc":"2.0","id":${deep},"method":"tools/list"}`],
      ['deep params.requestId', `{"jsonrpc":"2.0",${cancelled}}`],
      ['deep params', `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${deep}}}`],
      ['wide list of icons', `{"jsonrpc":"2.0","id":1,${starting}}`],
    ] as const) {
      const service = await lab.service() // what the last one left is under way for long
      const good = await lab.good(service, { interval_ms: 10 })
      const attacker = await lab.tenant(service, 'free', 'attacker')
      const request = attacker.request('POST', '/mcp', body)
      const requests = [
        { ...request, headers: { ...request.headers, accept: 'application/json, text/event-stream' } },
      ]
      const load = { connections: 4, rounds_max: 8, seconds: 15, manner: 'answers', requests } as const
      let failures = 0
      let slowest_ms = 0
      await lab.during(`8 messages with a ${what}`, good, async () => {
        const result = await lab.load(service, load)
        failures = result.answers['500'] ?? 0
        slowest_ms = result.p99_ms
        return shown(result)
      })
      lab.bound(`a ${what} is refused at once`, {
        'answers of 500': [failures, 0],
        'slowest ms': [slowest_ms, answer_ms_max],
      })
      await good.probe.stop()
      await service.stop()
    }
  },
}
