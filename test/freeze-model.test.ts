// Any order of freezes, resumes, pauses and deletions against a model: what runs out stands moved by exactly the frozen
// time, in the clock of the test, and who is stopped changes nothing.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { iso, second_ms } from '../src/base/clock.ts'
import { test_ms_max } from './support/patience.ts'
import { cron_secret, forEachService, type TestService, type TestTenant } from './support/service.ts'

const runs = 120
const commands_max = 30

interface Lock {
  id: string
  lock_token: string
  until: number
}

interface Asking {
  id: string
  expires_at: number
  status: 'pending' | 'rejected'
}

/** The expected state of the tenant, from the calls that the test has made. */
class Model {
  frozen_at: number | null = null
  deleted = false
  paused = false
  mode = 'full'
  readonly locks: Lock[] = []
  readonly askings: Asking[] = []

  constructor(
    readonly service: TestService,
    readonly tenant: TestTenant,
  ) {}

  get now(): number {
    return this.service.clock.now()
  }

  /** The time by which locks are judged. */
  get lock_time(): number {
    return this.frozen_at ?? this.now
  }

  /** The code that a change of the agent gets; null when it is made. */
  get stop(): string | null {
    if (this.deleted) return 'TENANT_PENDING_DELETION'
    if (this.frozen_at !== null) return 'TENANT_FROZEN'
    if (this.paused) return 'AGENT_PAUSED'
    return this.mode === 'read' ? 'AGENT_READ_ONLY' : null
  }

  agent(method: string, path: string, body?: unknown) {
    return this.service.ask(method, path, { key: this.tenant.api_key, body })
  }

  admin(method: string, path: string, body?: unknown) {
    return this.service.ask(method, path, { key: this.tenant.admin_key, body })
  }

  verb(name: string) {
    return this.admin('POST', `/v1/tenants/${this.tenant.tenant_id}/${name}`)
  }

  async claim(lock_seconds: number): Promise<void> {
    const made = await this.agent('POST', '/v1/dlq', { payload: {}, error: 'failed' })
    expect(made.status === 201 ? null : made.body.error.code).toBe(this.stop)
    if (made.status !== 201) return
    const { id } = made.body
    const { lock_token } = (await this.agent('POST', `/v1/dlq/${id}/claim`, { lock_seconds })).body
    this.locks.push({ id, lock_token, until: this.now + lock_seconds * second_ms })
  }

  async extend(n: number, lock_seconds: number): Promise<void> {
    const lock = this.locks[n % Math.max(1, this.locks.length)]
    if (!lock || this.deleted) return
    const { id, lock_token, until } = lock
    const extended = await this.agent('POST', `/v1/dlq/${id}/extend`, { lock_token, lock_seconds })
    expect([id, extended.status]).toEqual([id, until > this.lock_time ? 200 : 409])
    if (extended.status === 200) lock.until = this.lock_time + lock_seconds * second_ms
  }

  async ask(timeout_seconds: number): Promise<void> {
    const body = { title: 'May I?', callback_url: null, timeout_seconds }
    const made = await this.agent('POST', '/v1/checkpoints', body)
    expect(made.status === 201 ? null : made.body.error.code).toBe(this.stop)
    if (made.status !== 201) return
    const expires_at = this.now + timeout_seconds * second_ms
    this.askings.push({ id: made.body.id, expires_at, status: 'pending' })
  }

  async freeze(): Promise<void> {
    expect((await this.verb('freeze')).status).toBe(this.deleted ? 403 : 200)
    if (!this.deleted) this.frozen_at ??= this.now
  }

  async resume(): Promise<void> {
    expect((await this.verb('resume')).status).toBe(this.deleted ? 403 : 200)
    if (this.deleted || this.frozen_at === null) return
    const frozen_ms = this.now - this.frozen_at
    for (const lock of this.locks) if (lock.until > this.frozen_at) lock.until += frozen_ms
    for (const one of this.askings)
      if (one.status === 'pending' && one.expires_at > this.frozen_at) one.expires_at += frozen_ms
    this.frozen_at = null
  }

  async remove(): Promise<void> {
    await this.admin('DELETE', `/v1/tenants/${this.tenant.tenant_id}`, { confirm: 'DELETE ALL DATA' })
    this.deleted = true
  }

  async restore(): Promise<void> {
    expect((await this.verb('restore')).status).toBe(this.deleted ? 200 : 409)
    this.deleted = false
  }

  async pause(paused: boolean): Promise<void> {
    const verb = paused ? 'pause' : 'resume'
    expect((await this.admin('POST', `/v1/agents/agent-one/${verb}`)).status).toBe(this.deleted ? 403 : 200)
    if (!this.deleted) this.paused = paused
  }

  async setMode(mode: string): Promise<void> {
    const changed = await this.admin('PATCH', '/v1/agents/agent-one', { mode })
    expect(changed.status).toBe(this.deleted ? 403 : 200)
    if (!this.deleted) this.mode = mode
  }

  async tick(): Promise<void> {
    await this.service.ask('POST', '/v1/tick', { key: cron_secret })
    if (this.deleted || this.frozen_at !== null) return
    for (const one of this.askings) if (one.expires_at <= this.now) one.status = 'rejected'
  }

  async check(): Promise<void> {
    if (this.deleted) return
    for (const { id, until } of this.locks) {
      const { status, locked_until } = (await this.agent('GET', `/v1/dlq/${id}`)).body
      const held = until > this.lock_time
      expect([id, status, locked_until]).toEqual([id, ...(held ? ['claimed', iso(until)] : ['failed', null])])
    }
    for (const { id, ...wanted } of this.askings) {
      const { status, expires_at } = (await this.agent('GET', `/v1/checkpoints/${id}`)).body
      expect([id, status, expires_at]).toEqual([id, wanted.status, iso(wanted.expires_at)])
    }
  }
}

interface Step extends fc.AsyncCommand<object, Model> {}

function step(name: string, work: (model: Model) => Promise<void> | void): Step {
  return {
    check: () => true,
    async run(_, model) {
      await work(model)
      await model.check()
    },
    toString: () => name,
  }
}

const seconds = fc.integer({ min: 60, max: 900 })
const steps: fc.Arbitrary<Step>[] = [
  seconds.map((s) => step(`claim ${s}`, (model) => model.claim(s))),
  seconds.map((s) => step(`ask ${s}`, (model) => model.ask(s))),
  fc.tuple(fc.nat(9), seconds).map(([n, s]) => step(`extend ${n} ${s}`, (model) => model.extend(n, s))),
  fc
    .integer({ min: 1, max: 600_000 })
    .map((ms) => step(`advance ${ms}`, (model) => model.service.clock.advance(ms))),
  fc.constant(step('freeze', (model) => model.freeze())),
  fc.constant(step('resume', (model) => model.resume())),
  fc.constant(step('delete', (model) => model.remove())),
  fc.constant(step('restore', (model) => model.restore())),
  fc.boolean().map((paused) => step(paused ? 'pause' : 'unpause', (model) => model.pause(paused))),
  fc.constantFrom('full', 'read', 'propose').map((mode) => step(mode, (model) => model.setMode(mode))),
  fc.constant(step('tick', (model) => model.tick())),
]

forEachService('a freeze', (service) => {
  test(
    `agrees with the model, ${runs} times up to ${commands_max} steps`,
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.commands(steps, { maxCommands: commands_max, size: 'max' }), async (commands) => {
          const tenant = await service.signUp('pro')
          await fc.asyncModelRun(() => ({ model: {}, real: new Model(service, tenant) }), commands)
        }),
        { numRuns: runs, endOnFailure: true },
      )
    },
    test_ms_max,
  )
})
