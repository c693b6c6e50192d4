// Writes src/contract/examples.json: for each operation a request and its answers, as examples/first-steps.sh gets them from
// a service. Ids and times are replaced by others that change little from run to run, and secrets by an ellipsis. A test holds them
// against the schemas.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Example } from '../src/contract/responses.ts'
import { routes } from '../src/features.ts'
import { startServer } from '../test/support/server-process.ts'
import { formatted } from './clients/print.ts'

const root = join(import.meta.dir, '..')
const file = join(root, 'src/contract/examples.json')
const cron_secret = 'a-cron-secret-of-the-examples'

/** No example script has the token of an email. */
const by_hand: Readonly<Record<string, Example>> = {
  confirmMail: { request: { token: 'the-token-of-the-link' }, answers: { 200: { confirmed: true } } },
  unsubscribeMail: { request: { token: 'the-token-of-the-link' }, answers: { 200: { unsubscribed: true } } },
  openapi: { answers: { 200: { openapi: '3.1.0' } } },
}

/** In the script they are refused: nothing has fired, or was forwarded. */
const made: Readonly<Record<string, (exampleOf: (name: string) => Example) => Example>> = {
  retrySchedule(exampleOf) {
    const { path } = exampleOf('getSchedule')
    const schedule = exampleOf('createSchedule').answers[201] as object
    return { path: path!, answers: { 201: { ...schedule, retry_of: path!.id } } }
  },
  replayMessage(exampleOf) {
    const { path, answers } = exampleOf('listMessages')
    const [message] = (answers[200] as { data: { items: { id: string }[] } }).data.items
    return { path: { ...path, message_id: message!.id }, answers: { 200: { success: true, data: message } } }
  },
}

async function recorded(): Promise<Record<string, Example>> {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-examples-'))
  const service = await startServer({ DATA_DIR: folder, CRON_SECRET: cron_secret, CLOCK: 'test' })
  const recorder = new Recorder(service.url)
  try {
    const run = Bun.spawn(['bash', join(root, 'examples/first-steps.sh'), recorder.url], {
      env: { PATH: process.env.PATH ?? '', CRON_SECRET: cron_secret },
      stdout: 'ignore',
    })
    if ((await run.exited) !== 0) throw new Error('examples/first-steps.sh failed')
    return recorder.examples()
  } finally {
    await recorder.stop()
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Exchange {
  method: string
  target: string
  sent: string
  status: number
  text: string
}

/** Hands requests on to a service and keeps those that succeed. */
class Recorder {
  readonly #exchanges: Exchange[] = []
  readonly #service: string
  readonly #server: Bun.Server<undefined>

  constructor(service: string) {
    this.#service = service
    this.#server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => this.#handOn(request) })
  }

  get url(): string {
    return this.#server.url.origin
  }

  stop(): Promise<void> {
    return this.#server.stop(true)
  }

  async #handOn(request: Request): Promise<Response> {
    const target = request.url.slice(this.url.length)
    const bytes = await request.arrayBuffer()
    const headers = new Headers(request.headers)
    headers.delete('host')
    const answer = await fetch(this.#service + target, {
      method: request.method,
      headers,
      ...(bytes.byteLength > 0 ? { body: bytes } : {}),
    })
    const text = await answer.text()
    const sent = new TextDecoder().decode(bytes)
    this.#exchanges.push({ method: request.method, target, sent, status: answer.status, text })
    const shown = new Headers(answer.headers)
    for (const name of ['content-length', 'content-encoding']) shown.delete(name)
    return new Response(answer.status === 204 || answer.status === 304 ? null : text, {
      status: answer.status,
      headers: shown,
    })
  }

  examples(): Record<string, Example> {
    const words = new Words(this.#service, this.url)
    return Object.fromEntries(
      routes.map(({ name }) => [
        name,
        words.of(by_hand[name] ?? made[name]?.((other) => this.#exampleOf(other)) ?? this.#exampleOf(name)),
      ]),
    )
  }

  #exampleOf(name: string): Example {
    const { route } = routes.find((named) => named.name === name)!
    const own = this.#exchanges.filter(
      ({ method, target }) => method === route.method && isOf(route.path, pathOf(target)),
    )
    return exampleOf(route, own)
  }
}

function pathOf(target: string): string {
  return target.split('?')[0]!
}

/** Another route may have the text of a parameter: `/v1/dlq/causes`. */
function isOf(path: string, called: string): boolean {
  const fits = (pattern: string) =>
    new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+').replace(/\*$/, '.+')}$`).test(called)
  if (!fits(path)) return false
  const exact = routes.some(
    ({ route }) => route.path !== path && !route.path.includes(':') && route.path === called,
  )
  return !exact
}

function exampleOf(route: (typeof routes)[number]['route'], exchanges: Exchange[]): Example {
  const answers: Record<string, unknown> = {}
  const declared = exchanges.filter(
    ({ status, text }) => route.replies[status] && (text.startsWith('{') || text === ''),
  )
  for (const { status, text } of declared)
    if (text !== '' && !(status in answers)) answers[status] = JSON.parse(text)
  const first = declared.find(({ status }) => status < 300)
  if (!first) throw new Error(`${route.method} ${route.path} is never called with success`)
  const names = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const values = pathOf(first.target).split('/')
  const places = route.path.split('/')
  const path = Object.fromEntries(
    names.map((name) => [name, decodeURIComponent(values[places.indexOf(`:${name}`)]!)]),
  )
  const query = Object.fromEntries(new URLSearchParams(first.target.split('?')[1] ?? ''))
  const with_body = declared.find(({ sent }) => sent.startsWith('{'))
  return {
    ...(names.length > 0 ? { path } : {}),
    ...(Object.keys(query).length > 0 ? { query } : {}),
    ...(route.body ? { request: with_body ? JSON.parse(with_body.sent) : {} } : {}),
    answers,
  }
}

/** Items of a list that an example shows. */
const shown_items = 2

/** Texts that differ little from run to run. */
class Words {
  readonly #ids = new Map<string, string>()
  readonly #addresses: RegExp
  readonly #hosts: RegExp
  readonly #started = Date.now()

  constructor(...addresses: string[]) {
    const oneOf = (texts: string[]) =>
      new RegExp(texts.map((text) => text.replaceAll('.', '\\.')).join('|'), 'g')
    this.#addresses = oneOf(addresses)
    this.#hosts = oneOf(addresses.map((address) => new URL(address).host))
  }

  of<T>(value: T): T {
    if (Array.isArray(value)) return value.slice(0, shown_items).map((item) => this.of(item)) as T
    if (typeof value === 'string') return this.#text(value) as T
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, this.#member(name, item)]),
    ) as T
  }

  #member(name: string, value: unknown): unknown {
    if (name === 'duration_ms' || name === 'durationMs') return value === null ? null : 3
    if (typeof value === 'string' && hashes.includes(name)) return hash_example
    if (Array.isArray(value) && hashes.includes(name)) return value.slice(0, 1).map(() => hash_example)
    if (name === 'version' && typeof value === 'string') return 'x.y.z'
    if (typeof value === 'string' && tokens.includes(name)) return 'Zq3vX0w8kYc1Lm5n'
    if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) return 17
    return this.of(value)
  }

  #text(text: string): string {
    if (/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(text)) return this.#time(text)
    return text
      .replace(this.#addresses, 'https://waystation.example.com')
      .replace(this.#hosts, 'waystation.example.com')
      .replace(/^127\.0\.0\.1$/, '203.0.113.7') // RFC 5737, the caller's
      .replace(/\b(svc_(?:adm|agt|apr)|whsec)_[0-9A-Za-z+/=]{16,}/g, '$1_…')
      .replace(/\/hook\/[0-9A-Za-z_-]{16,}/g, '/hook/…')
      .replace('http://127.0.0.1:1/nobody-listens', 'https://example.com/callbacks')
      .replace('http://127.0.0.1:1/…tens', 'https://example.com/…acks')
      .replace(/(?<=\*{4})\w{4}$/, 'x7Qa')
      .replace(/first-steps-\d+-\d+/g, 'acme')
      .replace(/\b([a-z]{3})_([0-9a-hjkmnp-tv-z]{26})\b/g, (id, prefix: string) => this.#id(id, prefix))
      .replace(/\+[0-9a-f]{8}\+/g, '+5f3c2a1b+')
      .replace(/[0-9A-Za-z+/]{43,}={0,2}/g, hash_example)
  }

  #id(id: string, prefix: string): string {
    const known =
      this.#ids.get(id) ?? `${prefix}_01m7yjrz37hxnv52px0106${(this.#ids.size + 4096).toString(16).slice(-4)}`
    this.#ids.set(id, known)
    return known
  }

  /** A quarter of an hour is the least that differs. */
  #time(text: string): string {
    const quarter_ms = 900_000
    const since_ms = Math.round((Date.parse(text) - this.#started) / quarter_ms) * quarter_ms
    return new Date(Date.UTC(2026, 0, 15, 9) + since_ms).toISOString()
  }
}

const hash_example = 'Nc0Q8Uo0bXh3a2sRk1eJm6p0l4Zt5y7uWv9xYzA1B2c='
const hashes = ['root', 'from_root', 'leaf_hash', 'proof', 'edge']
const tokens = ['token', 'lock_token', 'lease_token', 'next_cursor']

if (import.meta.main) await Bun.write(file, formatted(JSON.stringify(await recorded(), null, 2), file))
