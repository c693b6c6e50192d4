import { audit_page, inbox_page, reference } from './lib/heavy.ts'
import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

export const unread: Attack = {
  name: 'unread',
  about: 'asks for something large over many connections and never reads the answers',
  engines: ['sqlite', 'postgres'],
  seconds_max: 90,
  async run(lab) {
    const reads = [
      { ...reference, connections: 3_000 },
      { ...audit_page, connections: 100 },
      { ...audit_page, connections: 1_000 },
      { ...inbox_page, connections: 400 },
    ]
    for (const { what, prepare, connections } of lab.engine === 'sqlite' ? reads : reads.slice(1, 3)) {
      const service = await lab.service()
      const good = await lab.good(service)
      const request = await prepare(await lab.tenant(service, 'pro', 'attacker'))
      const served = { status: 200, least: 1 }
      const load = { connections, seconds: 8, manner: 'unread' as const, requests: [request], served }
      await lab.during(`${connections} connections never read ${what}`, good, async () =>
        shown(await lab.load(service, load)),
      )
      await good.probe.stop()
      await service.stop()
    }
  },
}
