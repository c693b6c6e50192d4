import { audit_page, large_value, reference } from './lib/heavy.ts'
import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const connections = 64
const seconds = 4
const reset_after_ms = 10

export const resets: Attack = {
  name: 'resets',
  about: 'opens connections, asks for something large, and resets them 10 ms later',
  engines: ['sqlite', 'postgres'],
  seconds_max: 60,
  async run(lab) {
    // The public files are the same on both engines. Each on a service of its own: memory that the last one took stays.
    const reads = lab.engine === 'sqlite' ? [reference, audit_page, large_value] : [audit_page]
    for (const { what, prepare } of reads) {
      const service = await lab.service()
      const good = await lab.good(service)
      const request = await prepare(await lab.tenant(service, 'free', 'attacker'))
      await lab.during(`${connections} loops reset ${what}`, good, async () =>
        shown(
          await lab.load(service, {
            connections,
            seconds,
            manner: 'resets',
            reset_after_ms,
            requests: [request],
            served: { status: 200, least: 1 },
          }),
        ),
      )
      await good.probe.stop()
      await service.stop()
    }
  },
}
