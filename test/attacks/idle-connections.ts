import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const connections = 5_000

export const idleConnections: Attack = {
  name: 'idle-connections',
  about:
    'opens 5,000 connections from one address and asks once over each: this harms nobody and stays possible',
  engines: ['sqlite'],
  seconds_max: 40,
  async run(lab) {
    const service = await lab.service()
    const good = await lab.good(service)
    const requests = [{ method: 'GET', path: '/livez', headers: {} }]
    let refused = 0
    await lab.during(`${connections} connections from one address`, good, async () => {
      const result = await lab.load(service, { connections, seconds: 6, manner: 'opens', requests })
      refused = connections - (result.answers['200'] ?? 0)
      return shown(result)
    })
    lab.bound('all of them are served', { refused: [refused, 0] })
  },
}
