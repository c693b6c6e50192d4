import { audit_page, inbox_detail, inbox_page, large_value, mcp_audit_page, reference } from './lib/heavy.ts'
import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const connections = 64
const seconds = 4
const good_p99_ms = 50

export const heavyReads: Attack = {
  name: 'heavy-reads',
  about: `reads the largest answers over ${connections} connections, as fast as they come`,
  engines: ['sqlite', 'postgres'],
  seconds_max: 120,
  async run(lab) {
    const reads = [audit_page, mcp_audit_page, inbox_page, inbox_detail, large_value, reference]
    for (const { what, prepare, answers_least } of lab.engine === 'sqlite' ? reads : reads.slice(0, 4)) {
      const service = await lab.service()
      const good = await lab.good(service, { interval_ms: 10 })
      const served = { status: 200, least: answers_least }
      const requests = [await prepare(await lab.tenant(service, 'pro', 'attacker'))]
      await lab.during(
        `${connections} connections read ${what}`,
        good,
        async () => {
          const result = await lab.load(service, {
            connections,
            seconds,
            manner: 'answers',
            requests,
            served,
          })
          return `${shown(result)}, ${(result.bytes / 1e6 / result.seconds).toFixed(0)} MB/s`
        },
        { good_p99_ms },
      )
      await good.probe.stop()
      await service.stop()
    }
  },
}
