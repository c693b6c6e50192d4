// The whole service on a free loopback port, asked in process or over HTTP as a client would.

import { afterAll, beforeAll } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { undeclared_message } from '../../src/app/background.ts'
import { type App, openApp } from '../../src/app.ts'
import { Overload } from '../../src/base/overload.ts'
import { readConfig } from '../../src/config.ts'
import { connections_default } from '../../src/db/connection-settings.ts'
import type { Sync } from '../../src/db/sqlite-flush.ts'
import { TestClock } from './clock.ts'
import { forEachDatabase } from './databases.ts'
import { InProcess, type Sent } from './in-process.ts'
import { expectSoundJournal } from './journal.ts'
import { listenUrlOf } from './postgres.ts'

export const cron_secret = 'a-cron-secret-of-the-tests'

/** Each is a process of PostgreSQL, which learns every statement by itself: most tests ask for little at once. */
export const few_connections = { DATABASE_CONNECTIONS: '2' }
const usual_connections = { DATABASE_CONNECTIONS: String(connections_default) }

export interface Answer {
  status: number
  headers: Headers
  text: string
  /** The parsed body; undefined when there is none. Tests reach into it freely. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an answer's shape
  body: any
}

/**
 * The answer once there is room: on a busy machine a request that waits too long for the database is refused, and does nothing.
 * `repeatable`: also one that may have been done, and whose repeat happens once.
 */
export async function served(ask: () => Promise<Answer>, { repeatable = false } = {}): Promise<Answer> {
  const again = ['UNAVAILABLE', ...(repeatable ? ['OUTCOME_UNKNOWN'] : [])]
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503 || !again.includes(answer.body.error.code)) return answer
  }
}

/** It may have been done: on a busy machine a commit may have no answer in time. */
export function isUnknown({ status, body }: Answer): boolean {
  return status === 503 && body.error.code === 'OUTCOME_UNKNOWN'
}

const at_once_max = 40

/** Asks so often, and at once as often as no request waits too long for the database. */
export async function askMany(count: number, ask: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = []
  while (answers.length < count) {
    const length = Math.min(at_once_max, count - answers.length)
    answers.push(...(await Promise.all(Array.from({ length }, ask))))
  }
  return answers
}

export interface Ask {
  /** A key of any kind, sent as Bearer. */
  key?: string
  headers?: Record<string, string>
  /** An object is sent as JSON; text and bytes as they are, without a content type unless given. */
  body?: unknown
}

export interface TestTenant {
  tenant_id: string
  name: string
  admin_key: string
  signing_secret: string
  agent_id: string
  /** Of `agent_id`. */
  api_key: string
}

export class TestService {
  engine: 'sqlite' | 'postgres' = 'sqlite'
  clock = new TestClock()
  logged: { level: string; fields: Record<string, unknown>; message: string }[] = []
  /** The disk of a SQLite database, instead of the real one. */
  space: { free: number; total: number } | null = null
  /** The flush of the log of a SQLite database, instead of the real one. */
  sync: Sync | undefined
  /** The disk failed under a write. */
  onFatal = (error: unknown): void => {
    throw error
  }
  /** False: nothing runs beside a request, and due work in ticks alone. Set before the start. */
  background = true
  /** False: waiting requests look only when they are notified. Set before the start. */
  looks_again = true
  /** True: `ask` opens connections, for tests of what these do. */
  over_http = false
  /** Knows of no delay of the event loop but those that a test reports. */
  overload = new Overload()
  url = ''
  app!: App
  database_url = ''
  #folder = ''
  #stopped: App | undefined
  #in_process!: InProcess
  /** Calls of `overHttp` under way. */
  #connecting = 0

  constructor(private readonly environment: Record<string, string> = {}) {}

  async start(database_url: string): Promise<this> {
    this.database_url = database_url
    this.#folder ||= mkdtempSync(join(tmpdir(), 'waystation-data-'))
    const record = (level: string) => (fields: object, message: string) => {
      this.logged.push({ level, fields: fields as Record<string, unknown>, message })
      if (message === undeclared_message) throw new Error(`${message}: ${JSON.stringify(fields)}`)
    }
    const listen_url = listenUrlOf(database_url)
    const config = readConfig({
      DATABASE_URL: database_url,
      // Behind a pooler the role comes from the server: a start that has lost it must not pass for one behind the wall.
      ...(listen_url ? { DATABASE_LISTEN_URL: listen_url, ROW_LEVEL_SECURITY: 'required' } : {}),
      DATA_DIR: this.#folder,
      PORT: '0',
      TICK: 'external',
      CRON_SECRET: cron_secret,
      LOG_LEVEL: 'debug',
      DISK_RESERVE: '0',
      ...this.environment,
    })
    this.app = await openApp(config, {
      clock: this.clock,
      log: { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') },
      onFatal: (error) => this.onFatal(error),
      sync: this.sync,
      ...(this.space ? { space: () => this.space! } : {}),
      background: this.background,
      looks_again: this.looks_again,
      overload: this.overload,
    })
    this.url = this.app.listen()
    this.#in_process = new InProcess(this.app.handlers)
    return this
  }

  /** Each event that the tests have left on SQLite keeps to its declaration. */
  async stop(): Promise<void> {
    const { app, sync } = this
    const reads =
      app !== undefined && app !== this.#stopped && this.database_url.startsWith('sqlite:') && !sync
    this.#stopped = app
    try {
      if (reads && isOpen(app)) await expectSoundJournal(app.db)
    } finally {
      await app?.stop()
      if (this.#folder) rmSync(this.#folder, { recursive: true, force: true })
    }
  }

  async ask(method: string, path: string, { key, headers = {}, body }: Ask = {}): Promise<Answer> {
    const is_json = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)
    const sent: Sent = {
      method,
      headers: {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(is_json ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      body: is_json ? JSON.stringify(body) : (body as Sent['body']),
    }
    const url = `${this.url}${path}`
    const connects = this.over_http || this.#connecting > 0
    const response = await (connects ? fetch(url, sent) : this.#in_process.fetch(url, sent))
    const text = await response.text()
    const json = response.headers.get('content-type') === 'application/json' && text !== ''
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: json ? JSON.parse(text) : undefined,
    }
  }

  /** Opens connections for all that `work` asks. */
  async overHttp<T>(work: () => Promise<T>): Promise<T> {
    this.#connecting += 1
    try {
      return await work()
    } finally {
      this.#connecting -= 1
    }
  }

  /** A new tenant with one agent. */
  async signUp(plan: 'free' | 'pro' = 'free'): Promise<TestTenant> {
    const name = `t-${crypto.randomUUID().slice(0, 13)}`
    const body = { name, owner_email: 'owner@example.com', plan }
    const tenant = await served(() => this.ask('POST', '/v1/tenants', { body }))
    if (tenant.status !== 201) throw new Error(`sign-up failed: ${tenant.text}`)
    const { tenant_id, admin_key, signing_secret } = tenant.body
    return { tenant_id, name, admin_key, signing_secret, ...(await this.addAgent(admin_key, 'agent-one')) }
  }

  async addAgent(admin_key: string, name: string): Promise<{ agent_id: string; api_key: string }> {
    const agent = await served(() => this.ask('POST', '/v1/agents', { key: admin_key, body: { name } }))
    if (agent.status !== 201) throw new Error(`no agent: ${agent.text}`)
    return { agent_id: agent.body.agent_id, api_key: agent.body.api_key }
  }
}

/** In this `describe` what is asked opens connections. */
export function connectInThisBlock(service: TestService): void {
  beforeAll(() => {
    service.over_http = true
  })
  afterAll(() => {
    service.over_http = false
  })
}

/** False when a test has stopped the app itself. */
function isOpen({ db }: App): boolean {
  try {
    db.durability()
    return true
  } catch {
    return false
  }
}

/**
 * Runs a block of tests against a service on each engine. `environment` holds settings, as in docs/configuration.md; tests that
 * race have `forEachRacedService`.
 * `background` false: nothing runs beside the requests of the tests, as tests that count statements need it.
 */
export function forEachService(
  name: string,
  block: (service: TestService) => void,
  environment: Record<string, string> = {},
  { background = true } = {},
): void {
  forEachDatabase(name, (databases) => {
    const service = new TestService({ ...few_connections, ...environment })
    service.background = background
    service.engine = databases.engine
    beforeAll(async () => {
      await service.start(await databases.newUrlWithTables())
    })
    afterAll(() => service.stop())
    block(service)
  })
}

/** The same for tests of all routes: those of a test clock are served as well. */
export function forEachWholeService(
  name: string,
  block: (service: TestService) => void,
  environment: Record<string, string> = {},
  options: { background?: boolean } = {},
): void {
  forEachService(name, block, { CLOCK: 'test', ...environment }, options)
}

/** The same for tests that ask for much at once, on as many connections as a service has. */
export function forEachRacedService(
  name: string,
  block: (service: TestService) => void,
  environment: Record<string, string> = {},
  options: { background?: boolean } = {},
): void {
  forEachService(name, block, { ...usual_connections, ...environment }, options)
}
