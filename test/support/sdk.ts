// Clients of the SDK for tests: no real waits, and a proxy that loses answers.

import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Waystation as Client, WaystationOptions } from '../../sdk/src/client.ts'
import { Waystation } from '../../sdk/src/index.ts'
import type { Platform } from '../../sdk/src/platform.ts'
import { platform } from '../../sdk/src/platform.ts'
import { cron_secret, type TestService, type TestTenant } from './service.ts'

/** Sleeps are over at once unless `onSleep` says otherwise; time-outs happen when a test lets them. */
export class TestPlatform implements Platform {
  slept: number[] = []
  timers = new Map<object, { ms: number; fire: () => void }>()
  random_value = 0.5
  onSleep: (ms: number) => Promise<void> | void = () => {}
  fetch = platform.fetch

  constructor(readonly now: () => number = () => Date.UTC(2026, 0, 1)) {}

  random = (): number => this.random_value
  uuid = platform.uuid
  sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted()
    this.slept.push(ms)
    await Promise.race([this.onSleep(ms), ...(signal ? [aborted(signal)] : [])])
    signal?.throwIfAborted()
  }
  timer = (ms: number, fire: () => void): (() => void) => {
    const timer = {}
    this.timers.set(timer, { ms, fire })
    return () => void this.timers.delete(timer)
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
}

export interface Clients {
  admin: Client
  agent: Client
  approval: Client
  nobody: Client
  cron: Client
  platform: TestPlatform
}

/** A client for each kind of key of a tenant, all asking at `url`. */
export async function clientsOf(
  service: TestService,
  tenant: TestTenant,
  url = service.url,
  options: Partial<WaystationOptions> = {},
): Promise<Clients> {
  const test_platform = new TestPlatform(() => service.clock.now())
  const of = (key?: string, agent_id?: string) =>
    new Waystation({ url, key, agent_id, platform: test_platform, ...options })
  const { approval_key } = (await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key })).body
  return {
    admin: of(tenant.admin_key),
    agent: of(tenant.api_key, tenant.agent_id),
    approval: of(approval_key),
    nobody: of(),
    cron: of(cron_secret),
    platform: test_platform,
  }
}

export interface LossyProxy {
  url: string
  /** The requests that came, latest last. */
  seen: { method: string; path: string; headers: Record<string, string> }[]
  /**
   * The fate of the next requests, in this order: `lose_answer` passes the request on and then ends the
   * connection, `lose_request` does only the latter, an answer is given instead of the service's.
   */
  next: (FakeAnswer | 'lose_answer' | 'lose_request')[]
  stop(): Promise<void>
}

export interface FakeAnswer {
  status: number
  headers?: Record<string, string>
  body?: string
}

export async function startProxy(target: string): Promise<LossyProxy> {
  const server = createServer(async (request, response) => {
    const body = await bytesOf(request)
    const headers = request.headers as Record<string, string>
    proxy.seen.push({ method: request.method!, path: request.url!, headers })
    const fate = proxy.next.shift()
    if (fate === 'lose_request') return void request.socket.destroy()
    if (typeof fate === 'object') return void response.writeHead(fate.status, fate.headers).end(fate.body)
    const { host: _, connection: __, 'content-length': ___, ...passed_on } = headers
    const answer = await fetch(`${target}${request.url}`, {
      method: request.method!,
      headers: passed_on,
      ...(body.length > 0 ? { body } : {}),
    })
    const text = await answer.text()
    if (fate === 'lose_answer') return void request.socket.destroy()
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: LossyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: [],
    next: [],
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
  return proxy
}

async function bytesOf(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk as Uint8Array)
  return new Uint8Array(Buffer.concat(chunks))
}

/** The reason with which a promise was rejected. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it succeeded')
}

/** Every item of a list. */
export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of list) items.push(item)
  return items
}
