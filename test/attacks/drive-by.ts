import { newInbox } from './lib/heavy.ts'
import type { Attack } from './lib/lab.ts'
import { requestBytes, Wire } from './lib/wire.ts'

const page = 'https://page.example'

export const driveBy: Attack = {
  name: 'drive-by',
  about: 'calls a service on loopback from a web page, or by a name that a page made point to it',
  engines: ['sqlite'],
  seconds_max: 30,
  async run(lab) {
    const service = await lab.service()
    const attacker = await lab.tenant(service)
    const { token } = await newInbox(attacker)
    let n = 0
    const signUp = (headers: Record<string, string>) => {
      const body = JSON.stringify({ name: `drive-by-${n++}`, owner_email: 'a@example.com' })
      return answer('POST', '/v1/tenants', { 'content-type': 'text/plain', ...headers }, body)
    }
    const answer = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
      const wire = await Wire.connect(service.port, { keep_bodies: true })
      const { status, body: text } = await wire.ask(requestBytes(method, path, headers, body))
      wire.reset()
      return { status, text: text.slice(0, 120) }
    }
    const own_host = `127.0.0.1:${service.port}`
    const foreign = await signUp({ host: own_host, origin: page })
    lab.check('a sign-up from a page is refused', foreign.status === 403, `${foreign.status} ${foreign.text}`)
    const opaque = await signUp({ host: own_host, origin: 'null' })
    lab.check(
      'a sign-up from an opaque origin is refused',
      opaque.status === 403,
      `${opaque.status} ${opaque.text}`,
    )
    const own = await signUp({ host: own_host, origin: `http://${own_host}` })
    lab.check('a sign-up from its own pages is taken', own.status === 201, `${own.status} ${own.text}`)
    for (const host of ['page.example', `page.example:${service.port}`, '127.0.0.1.page.example']) {
      const rebound = await signUp({ host })
      lab.check(
        `Host ${host.replace(/:\d+$/, ':port')} is not answered`,
        rebound.status >= 400,
        `${rebound.status} ${rebound.text}`,
      )
      const read = await answer('GET', '/v1/kv/ns/none', { host, ...attacker.headers })
      lab.check('nor are its reads', read.status >= 400 && read.status !== 404, `${read.status} ${read.text}`)
    }
    for (const host of ['localhost', `localhost:${service.port}`, own_host]) {
      const known = await answer('GET', '/livez', { host })
      lab.check(`Host ${host.replace(/:\d+$/, ':port')} is answered`, known.status === 200, `${known.status}`)
    }
    const hooked = await answer('POST', `/hook/${token}`, { host: 'page.example', origin: page }, '{}')
    lab.check('an inbox takes any sender', hooked.status === 200, `${hooked.status} ${hooked.text}`)
  },
}
