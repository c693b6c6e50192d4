// The service as it is started in production, on a new database, and a client for the calls around the measurement.

import { join } from 'node:path'
import type { HotRequest } from './hot-path.ts'
import { type Child, cores, end, start, temporaryFolder } from './processes.ts'

const ready_ms_max = 20_000
const poll_ms = 2

export interface Service {
  url: string
  pid: number
  /** From the start of the process to the first 200 of /readyz. Milliseconds. */
  ready_ms: number
  stop(): Promise<void>
}

/**
 * Of this checkout, or of the one in `root`. `data` is a folder to keep; without it there is a new database, or that of
 * `database_url`. `env` is added to its environment.
 */
export async function startService(
  root: string,
  data?: string,
  database_url?: string,
  env: Record<string, string> = {},
): Promise<Service> {
  const temporary = data === undefined ? temporaryFolder() : null
  const folder = data ?? temporary!.folder
  const port = freePort()
  const began = performance.now()
  const child = start([process.execPath, join(root, 'src/main.ts')], {
    core: cores.server,
    cwd: folder, // so that no .env of the checkout is read
    env: {
      PATH: process.env.PATH ?? '',
      PORT: String(port),
      DATABASE_URL: database_url ?? `sqlite:${join(folder, 'waystation.db')}`,
      DATA_DIR: folder,
      LOG_LEVEL: 'warn',
      ...env,
    },
  })
  const errors = new Response(child.stderr).text()
  const url = `http://127.0.0.1:${port}`
  const ready_ms = await ready(child, url, errors, began)
  return {
    url,
    pid: child.pid,
    ready_ms,
    async stop() {
      await end(child)
      const told = (await errors).trim()
      if (told !== '') console.error(`the service said:\n${told}`)
      temporary?.remove()
    },
  }
}

async function ready(child: Child, url: string, errors: Promise<string>, began: number): Promise<number> {
  while (performance.now() - began < ready_ms_max) {
    if (child.exitCode !== null) throw new Error(`the service did not start: ${(await errors).trim()}`)
    const answer = await fetch(`${url}/readyz`).catch(() => null)
    if (answer?.status === 200) return performance.now() - began
    await Bun.sleep(poll_ms)
  }
  throw new Error(`the service was not ready after ${ready_ms_max} ms`)
}

export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

/** One agent of a new tenant. */
export class Client {
  private constructor(
    readonly url: string,
    readonly agent_id: string,
    readonly api_key: string,
    readonly tenant_id: string,
    private readonly admin_key: string,
  ) {}

  static async signUp(url: string, plan = 'pro'): Promise<Client> {
    const name = `bench-${crypto.randomUUID().slice(0, 8)}`
    const tenant = await post<{ tenant_id: string; admin_key: string }>(
      `${url}/v1/tenants`,
      {},
      {
        name,
        owner_email: 'bench@example.com',
        plan,
      },
    )
    const { tenant_id, admin_key } = tenant
    const admin = { 'x-admin-key': admin_key }
    const agent = await post<{ agent_id: string; api_key: string }>(`${url}/v1/agents`, admin, {
      name: 'bench-agent',
    })
    return new Client(url, agent.agent_id, agent.api_key, tenant_id, admin_key)
  }

  /** The same agent, where the service has another address. */
  at(url: string): Client {
    return new Client(url, this.agent_id, this.api_key, this.tenant_id, this.admin_key)
  }

  /** The request as the load makes it. Throws unless it succeeds; the answer is the parsed body. */
  async send<T>({ method, path, body }: HotRequest): Promise<T> {
    const headers = { 'x-agent-id': this.agent_id, 'x-api-key': this.api_key }
    return answered<T>(
      await fetch(this.url + path, {
        method,
        headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      }),
    )
  }

  read<T>(path: string): Promise<T> {
    return this.send({ method: 'GET', path })
  }

  async readTenant<T>(): Promise<T> {
    const headers = { 'x-admin-key': this.admin_key }
    return answered<T>(await fetch(`${this.url}/v1/tenants/${this.tenant_id}`, { headers }))
  }
}

async function post<T>(url: string, headers: Record<string, string>, body: object): Promise<T> {
  return answered<T>(await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }))
}

async function answered<T>(response: Response): Promise<T> {
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${text}`)
  return JSON.parse(text) as T
}
