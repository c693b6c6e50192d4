import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'
import { attacker_address, requestBytes, Wire } from './lib/wire.ts'

const streams = 900

export const eventStreams: Attack = {
  name: 'event-streams',
  about: `opens ${streams} streams of its events, read or never read, and makes events as fast as it can`,
  engines: ['sqlite', 'postgres'],
  seconds_max: 60,
  async run(lab) {
    for (const reads of [true, false]) {
      const service = await lab.service()
      const good = await lab.good(service, { interval_ms: 10 })
      const attacker = await lab.tenant(service, 'unlimited', 'attacker')
      const stream = requestBytes('GET', '/v1/events', { ...attacker.headers, accept: 'text/event-stream' })
      const wires: Wire[] = []
      for (let i = 0; i < streams; i++) {
        const wire = await Wire.connect(service.port, { from: attacker_address })
        if (!reads) wire.stopReading()
        wire.push(stream)
        wires.push(wire)
      }
      await Bun.sleep(500)
      // Much text in each event, of characters that take two bytes each in memory.
      const letter = { payload: 1, error: 'é'.repeat(300), workflow_id: '漢'.repeat(256) }
      const requests = [attacker.request('POST', '/v1/dlq', JSON.stringify(letter))]
      const served = { status: 201, least: 500 }
      await lab.during(`${streams} streams that ${reads ? 'read' : 'never read'}`, good, async () =>
        shown(await lab.load(service, { connections: 32, seconds: 10, manner: 'answers', requests, served })),
      )
      for (const wire of wires) wire.reset()
      await good.probe.stop()
      await service.stop()
    }
  },
}
