// The service of a checkout in a process of its own, with scratch data, and clients of it.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/ports.ts'
import { type Child, kill, startChild } from './children.ts'
import type { LoadRequest } from './load-process.ts'

const ready_ms_max = 20_000
const stop_ms_max = 10_000
const poll_ms = 20
/** A service that holds more is killed before it takes the machine along. */
const rss_mb_fatal = 3_000
const watch_ms = 20

export interface Service {
  url: string
  port: number
  pid: number
  /** Everything it wrote to stderr so far. */
  said(): string
  /** Everything it wrote to stdout so far. */
  printed(): string
  /** Its memory, in megabytes: now, and the most since `resetPeak`. */
  rss(): { now_mb: number; peak_mb: number }
  resetPeak(): void
  /** Null while it runs; `killed` when it held more memory than this machine is for. */
  ended(): string | null
  /** SIGTERM; SIGKILL when that takes too long. */
  stop(): Promise<void>
}

export interface ServiceOptions {
  /** The checkout. */
  root: string
  /** Folder of its data; the process starts there, so that no .env of the checkout is read. */
  folder: string
  database_url: string
  env?: Record<string, string>
  /** A prefix of the command: `['unshare', '-n', …]`. */
  wrap?: string[]
  port?: number
}

/** Throws with what it said when it ends instead of becoming ready. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const port = options.port ?? freePort()
  const { child, said, printed } = spawnService({ ...options, port })
  const url = `http://127.0.0.1:${port}`
  const service = watched(child, url, port, { said, printed })
  const began = performance.now()
  while (performance.now() - began < ready_ms_max) {
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}: ${said().trim()}`)
    if ((await statusOf(`${url}/readyz`)) === 200) return service
    await Bun.sleep(poll_ms)
  }
  await service.stop()
  throw new Error(`the service was not ready after ${ready_ms_max} ms: ${said().trim()}`)
}

/** Only starts the process. */
export function spawnService({ root, folder, database_url, env, wrap = [], port }: ServiceOptions) {
  const child = startChild([...wrap, process.execPath, join(root, 'src/main.ts')], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? '',
      PORT: String(port ?? 0),
      DATABASE_URL: database_url,
      DATA_DIR: folder,
      LOG_LEVEL: 'error',
      ...env,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return { child, said: heard(child), printed: gather(child.stdout as ReadableStream<Uint8Array>) }
}

export async function statusOf(url: string, timeout_ms = 2_000): Promise<number | null> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(timeout_ms) }).catch(() => null)
  await answer?.body?.cancel().catch(() => {})
  return answer?.status ?? null
}

const said_characters_max = 100_000

function heard(child: Child): () => string {
  return gather(child.stderr as ReadableStream<Uint8Array>)
}

/** Reads to the end, and keeps the end. */
function gather(stream: ReadableStream<Uint8Array>): () => string {
  let text = ''
  void (async () => {
    const decoder = new TextDecoder()
    for await (const bytes of stream) {
      text = (text + decoder.decode(bytes, { stream: true })).slice(-said_characters_max)
    }
  })().catch(() => {})
  return () => text
}

function watched(
  child: Child,
  url: string,
  port: number,
  output: Pick<Service, 'said' | 'printed'>,
): Service {
  let killed = false
  let last_mb = Number.NaN
  let peak_mb = 0
  const look = () => {
    if (child.exitCode !== null) return
    const { now, peak } = memoryOf(child.pid)
    last_mb = Number.isNaN(now) ? last_mb : now
    peak_mb = Math.max(peak_mb, Number.isNaN(peak) ? 0 : peak)
    if (now < rss_mb_fatal) return
    killed = true
    child.kill('SIGKILL')
  }
  const watch = setInterval(look, watch_ms)
  void child.exited.then(() => clearInterval(watch))
  return {
    url,
    port,
    pid: child.pid,
    ...output,
    rss() {
      look()
      return { now_mb: last_mb, peak_mb }
    },
    resetPeak() {
      if (child.exitCode !== null) return
      writeFileSync(`/proc/${child.pid}/clear_refs`, '5') // proc(5): the peak is what it holds now
      peak_mb = 0
      look()
    },
    ended() {
      if (killed) return `killed at ${peak_mb.toFixed(0)} MB`
      if (child.signalCode !== null) return `ended by ${child.signalCode}`
      return child.exitCode === null ? null : `ended with ${child.exitCode}`
    },
    async stop() {
      child.kill('SIGTERM')
      await Promise.race([child.exited, Bun.sleep(stop_ms_max)])
      await kill(child)
    },
  }
}

function memoryOf(pid: number): { now: number; peak: number } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const mb = (name: string) =>
      (Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1]) * 1_024) / 1e6
    return { now: mb('VmRSS'), peak: mb('VmHWM') }
  } catch {
    return { now: Number.NaN, peak: Number.NaN }
  }
}

/** A tenant with one agent, asked with what fits. */
export class Tenant {
  private constructor(
    readonly url: string,
    readonly tenant_id: string,
    readonly admin_key: string,
    readonly agent_key: string,
  ) {}

  static async signUp(url: string, plan: string, name: string): Promise<Tenant> {
    const id = `${name}-${crypto.randomUUID().slice(0, 8)}`
    const sign_up = { name: id, owner_email: 'a@example.com', plan }
    const tenant = await asked<{ tenant_id: string; admin_key: string }>(
      'POST',
      `${url}/v1/tenants`,
      {},
      sign_up,
    )
    const admin = { 'x-admin-key': tenant.admin_key }
    const agent = await asked<{ api_key: string }>('POST', `${url}/v1/agents`, admin, { name: 'agent-1' })
    return new Tenant(url, tenant.tenant_id, tenant.admin_key, agent.api_key)
  }

  get headers(): Record<string, string> {
    return { 'x-api-key': this.agent_key, 'x-agent-id': 'agent-1' }
  }

  get admin_headers(): Record<string, string> {
    return { 'x-admin-key': this.admin_key }
  }

  /** The parsed body of a 2xx. Throws for anything else. */
  ask<T>(method: string, path: string, body?: object): Promise<T> {
    return asked<T>(method, this.url + path, this.headers, body)
  }

  /** The status, whatever it is. 0: no answer. */
  async status(method: string, path: string, body?: object, headers = this.headers): Promise<number> {
    const answer = await send(method, this.url + path, headers, body).catch(() => null)
    await answer?.text().catch(() => '')
    return answer?.status ?? 0
  }

  /** A request of this tenant's agent, for a load or a probe. */
  request(method: string, path: string, body?: string): LoadRequest {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    return { method, path, headers: { ...this.headers, ...type }, ...(body === undefined ? {} : { body }) }
  }
}

async function asked<T>(
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: object,
): Promise<T> {
  const answer = await send(method, url, headers, body)
  const text = await answer.text()
  if (!answer.ok)
    throw new Error(`${method} ${new URL(url).pathname} answered ${answer.status}: ${text.slice(0, 200)}`)
  return (text === '' ? null : JSON.parse(text)) as T
}

const patience_ms = 60_000

function send(
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: object,
): Promise<Response> {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  return fetch(url, {
    method,
    headers: { ...headers, ...type },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(patience_ms),
  })
}
