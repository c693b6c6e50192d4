import type { Attack } from './lib/lab.ts'
import { attacker_address, requestBytes, Wire } from './lib/wire.ts'

const connections = 16
const requests = 10_000
const rounds = 8
const round_ms = 400

export const pipelinedFloods: Attack = {
  name: 'pipelined-floods',
  about: `sends ${requests} requests at once over each of ${connections} connections, of a kind that is answered at once`,
  engines: ['sqlite'],
  seconds_max: 90,
  async run(lab) {
    const service = await lab.service()
    const good = await lab.good(service, { interval_ms: 10 })
    for (const [what, method, path, headers] of [
      ['/livez', 'GET', '/livez', {}],
      ['OPTIONS', 'OPTIONS', '/v1/audit', {}],
      ['an unknown path', 'GET', '/nowhere', {}],
      ['a call without a key', 'GET', '/v1/audit', {}],
      ['an unknown host', 'GET', '/v1/audit', { host: 'example.com' }],
      ['a wrong key', 'GET', '/v1/audit', { authorization: 'Bearer svc_agt_x' }],
    ] as const) {
      const one = requestBytes(method, path, headers)
      const flood = Buffer.concat(Array.from({ length: requests }, () => one))
      await lab.during(`${requests} times ${what} over ${connections} connections`, good, async () => {
        for (let round = 0; round < rounds; round++) {
          const wires: Wire[] = []
          for (let i = 0; i < connections; i++)
            wires.push(await Wire.connect(service.port, { from: attacker_address }))
          for (const wire of wires) wire.push(flood)
          await Bun.sleep(round_ms)
          for (const wire of wires) wire.reset()
        }
        return `${rounds} rounds`
      })
    }
  },
}
