// A service, and a receiver of its callbacks, each on a core of its own.

import { join } from 'node:path'
import { type Child, cores, end, start, temporaryFolder } from './processes.ts'
import type { Figures } from './receiver.ts'

const clients = 64
const second_ms = 1_000

export type Agent = Record<string, string>

export interface Setup {
  service: { pid: number }
  /** The headers of the agent whose schedules these are. */
  agent: Agent
  receiver: Receiver
  /** Creates schedules of one tenant over HTTP. */
  schedule(count: number, of: (i: number) => { url: string; at: number }): Promise<void>
  stop(): Promise<void>
}

/** The service of a checkout. `data` is a folder to keep; without it there is a new database. `known` is an agent of it. */
export async function startSetup(root: string, data?: string, known?: Agent): Promise<Setup> {
  const temporary = data === undefined ? temporaryFolder() : null
  const folder = data ?? temporary!.folder
  const receiver = await startReceiver()
  const service = start([process.execPath, join(root, 'src/main.ts')], {
    core: cores.server,
    cwd: folder, // so that no .env of the checkout is read
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DATABASE_URL: `sqlite:${join(folder, 'waystation.db')}`,
      DATA_DIR: folder,
      LOG_LEVEL: 'warn',
    },
  })
  const url = await printed(service, /address +(\S+)/)
  const agent = known ?? (await signUp(url))
  return {
    service,
    agent,
    receiver,
    async schedule(count, of) {
      let next = 0
      const client = async () => {
        for (let i = next++; i < count; i = next++) {
          const { url: callback_url, at } = of(i)
          await post(`${url}/v1/schedules`, agent, {
            ...{ callback_url, callback_payload: { at }, fire_at: new Date(at).toISOString() },
          })
        }
      }
      await Promise.all(Array.from({ length: clients }, client))
    },
    async stop() {
      await end(service)
      await end(receiver.child)
      const told = (await new Response(service.stderr).text()).trim()
      if (told !== '') console.error(`the service said:\n${told}`)
      temporary?.remove()
    },
  }
}

export interface Receiver {
  child: Child
  /** The n-th destination, which answers. */
  url(n: number): string
  /** The n-th destination that takes connections and is silent. */
  silentUrl(n: number): string
  /** The figures once so many came, and a moment later, in case some come twice. */
  received(count: number, seconds_max: number): Promise<Figures>
  /** Begins to count again. */
  forget(): Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const child = start([process.execPath, join(import.meta.dir, 'receiver.ts')], { core: cores.load })
  const [answering, silent] = (await printed(child, /(\d+ \d+)/)).split(' ')
  const read = async () => (await (await fetch(`http://127.0.0.1:${answering}/`)).json()) as Figures
  return {
    child,
    url: (n) => `http://127.0.1.${n}:${answering}/hook`,
    silentUrl: (n) => `http://127.1.0.${1 + n}:${silent}/hook`,
    async forget() {
      await fetch(`http://127.0.0.1:${answering}/`, { method: 'DELETE' })
    },
    async received(count, seconds_max) {
      const give_up_at = Date.now() + seconds_max * second_ms
      while ((await read()).received < count && Date.now() < give_up_at) await Bun.sleep(250)
      await Bun.sleep(500)
      return read()
    },
  }
}

/** Reads the first lines of a child until they match. The output must be read further afterwards. */
async function printed(child: Child, pattern: RegExp): Promise<string> {
  const reader = child.stdout.getReader()
  let text = ''
  while (!pattern.test(text)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`it ended: ${text}${await new Response(child.stderr).text()}`)
    text += new TextDecoder().decode(value)
  }
  return pattern.exec(text)![1]!
}

async function signUp(url: string): Promise<Agent> {
  const tenant = await post<{ admin_key: string }>(
    `${url}/v1/tenants`,
    {},
    {
      ...{ name: `bench-${crypto.randomUUID().slice(0, 8)}`, owner_email: 'bench@example.com', plan: 'pro' },
    },
  )
  const agent = await post<{ agent_id: string; api_key: string }>(
    `${url}/v1/agents`,
    { 'x-admin-key': tenant.admin_key },
    { name: 'bench-agent' },
  )
  return { 'x-agent-id': agent.agent_id, 'x-api-key': agent.api_key }
}

async function post<T>(url: string, headers: Record<string, string>, body: object): Promise<T> {
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`)
  return JSON.parse(text) as T
}
