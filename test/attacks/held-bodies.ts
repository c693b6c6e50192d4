import { newInbox } from './lib/heavy.ts'
import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'

const body = 'a'.repeat(1_048_576)
const headers = { 'content-type': 'text/plain' }
const uploads = 1_000
const posts = 800

export const heldBodies: Attack = {
  name: 'held-bodies',
  about: 'sends bodies of 1 MiB and holds back their last byte, or sends many of them at once',
  engines: ['sqlite', 'postgres'],
  seconds_max: 90,
  async run(lab) {
    for (const [what, path] of [
      ['an address that is not an inbox', '/hook/whi_nobody'],
      ['a well-formed token of nobody', `/hook/${'a'.repeat(32)}`],
      ['an inbox', null],
    ] as const) {
      if (lab.engine === 'postgres' && path !== null) continue // the same code before any database
      const service = await lab.service()
      const good = await lab.good(service)
      const attacker = await lab.tenant(service, 'free', 'attacker')
      const request = {
        method: 'POST',
        path: path ?? `/hook/${(await newInbox(attacker)).token}`,
        headers,
        body,
      }
      await lab.during(`${uploads} uploads to ${what} stop one byte before the end`, good, async () =>
        shown(
          await lab.load(service, {
            connections: uploads,
            seconds: 8,
            manner: 'withholds',
            requests: [request],
          }),
        ),
      )
      await good.probe.stop()
      await service.stop()
    }
    const service = await lab.service()
    const good = await lab.good(service)
    const inbox = await newInbox(await lab.tenant(service, 'free', 'attacker'))
    const request = { method: 'POST', path: `/hook/${inbox.token}`, headers, body }
    await lab.during(`${posts} posts of 1 MiB at once to one inbox`, good, async () => {
      const load = { connections: posts, rounds_max: posts, seconds: 12, requests: [request] }
      return shown(await lab.load(service, { ...load, manner: 'answers' }))
    })
  },
}
