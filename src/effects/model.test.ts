// Sequences of calls against a model of an effect that is written down on its own, and histories of many at once, which their
// events must explain. EFFECT_SEQUENCES and EFFECT_HISTORIES say how many.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { randomFrom } from '../../test/support/random.ts'
import {
  type Answer,
  forEachRacedService,
  type TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { iso, second_ms } from '../base/clock.ts'
import { hashOf } from '../base/keys.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'
import { type EffectStatus, moves } from './effect.ts'

const sequences = Number(process.env.EFFECT_SEQUENCES ?? 25)
const histories = Number(process.env.EFFECT_HISTORIES ?? 6)

const bytes = '{"amount": 30}'
const other_bytes = '{"amount": 31}'
const garbage = 'lse_01m7yjrz37hxnv52px0106nehe'

/** An effect as it must be. */
interface Model {
  status: EffectStatus | 'none'
  fence: number
  on_unknown: 'hold' | 'ask' | 'retry'
  approval: 'none' | 'pending' | 'approved' | 'refused'
  approval_until: number
  question: boolean
  /** Until when its permit holds; null for no end. */
  permit_until: number | null
  /** Until when an approval of another effect has a use for it. */
  given_until: number
  token: string | null
  /** Of the last lease; null once it was settled. */
  until: number | null
  tokens: string[]
  resolved: boolean
  /** Since when its tenant is frozen; null while it is not. */
  frozen_at: number | null
}

interface Real {
  service: TestService
  tenant: TestTenant
  key: string
  id: string
  checkpoint_id: string
  /** Approvals of other effects with the same bytes. */
  others: Record<Other, string>
  seen: Set<string>
}

const others = ['given', 'used_up', 'rejected'] as const
type Other = (typeof others)[number]

function newModel(on_unknown: Model['on_unknown'], given_until: number): Model {
  return {
    given_until,
    ...{ status: 'none', fence: 0, on_unknown, approval: 'none', approval_until: 0, question: false },
    ...{ permit_until: null, token: null, until: null, tokens: [], resolved: false, frozen_at: null },
  }
}

type Outcome = readonly [status: number, code?: string]
const not_held: Outcome = [409, 'EFFECT_NOT_HELD']
const done: Outcome = [200]
const stopped: Outcome = [403, 'TENANT_FROZEN']

function call({ service, tenant, id }: Real, verb: string, body: object, admin = false): Promise<Answer> {
  const key = admin ? tenant.admin_key : tenant.api_key
  return service.ask('POST', `/v1/effects/${id}/${verb}`, { key, body })
}

/** A call: its effect on the model, and on the service. The answers and the effects afterwards must agree. */
abstract class Step implements fc.AsyncCommand<Model, Real> {
  check(model: Readonly<Model>): boolean {
    return model.status !== 'none'
  }

  /** Changes the model; returns the answer that it expects. */
  abstract expected(model: Model, now: number): Outcome
  abstract ask(real: Real, model: Model): Promise<Answer>
  /** Takes values from the answer into the model. */
  learn(_model: Model, _real: Real, _answer: Answer): void {}

  async run(model: Model, real: Real): Promise<void> {
    const before = model.status
    const answer = await this.ask(real, model)
    const [status, code] = this.expected(model, real.service.clock.now())
    expect([answer.status, answer.body?.error?.code, before]).toEqual([status, code, before])
    this.learn(model, real, answer)
    await agrees(model, real, before)
  }
}

// A lease is held only in a freeze, and only one that had not run out before: no sweep looks at it again.
const WRONGLY_HELD = unnamedAcrossTenants(
  'test.wrongly_held',
  `select e.id, e.status from effects e join tenants t on t.tenant_id = e.tenant_id
    where e.tenant_id = :tenant_id and e.held = 1
      and (e.status <> 'running' or t.frozen_at is null or e.lease_until <= t.frozen_at)`,
)

async function agrees(model: Model, real: Real, before: Model['status']): Promise<void> {
  const { service, tenant, id, seen } = real
  if (model.status === 'none') return
  const { body } = await service.ask('GET', `/v1/effects/${id}`, { key: tenant.api_key })
  expect({ status: body.status, fence: body.fence, open: body.question_id !== null }).toEqual({
    ...{ status: model.status, fence: model.fence, open: model.question },
  })
  if (body.status === 'running') expect(body.lease_until).toBe(iso(model.until!))
  expect(await service.app.db.all(WRONGLY_HELD, { tenant_id: tenant.tenant_id })).toEqual([])
  if (body.question_id) real.checkpoint_id = body.question_id
  if (before === 'none' || before === model.status) return
  const named = Object.entries(moves).filter(
    ([, { from, to }]) => (from as readonly string[]).includes(before) && to === model.status,
  )
  expect([before, model.status, named.length > 0]).toEqual([before, model.status, true])
  seen.add(`${before} --> ${model.status}`)
}

function leased(model: Model, now: number, seconds: number): void {
  model.status = 'running'
  model.fence += 1
  model.until = now + seconds * second_ms
}

/** A permit that is over ends its effect when somebody wants to start it; while its last lease may be reported, nobody knows. */
function overNow(model: Model, now: number): Outcome | null {
  const { status, permit_until } = model
  if (status !== 'approved' || permit_until === null || permit_until > now) return null
  if (model.until !== null) {
    model.status = 'unknown'
    return [409, 'EFFECT_UNKNOWN']
  }
  Object.assign(model, { status: 'rejected', token: null })
  return [403, 'EFFECT_REJECTED']
}

const startable = (model: Model) => (model.approval === 'none' ? 'ready' : 'approved')

class Claim extends Step {
  constructor(
    readonly payload: string,
    readonly approval: 'none' | 'asks' | Other,
    readonly seconds: number,
  ) {
    super()
  }
  override check() {
    return true
  }
  expected(model: Model, now: number): Outcome {
    const { status } = model
    if (model.frozen_at !== null) return stopped
    if (status !== 'none' && this.payload !== bytes) return [422, 'EFFECT_KEY_REUSED']
    const over = overNow(model, now)
    if (over) return over
    if (status === 'none' || status === 'ready') {
      if (this.approval === 'asks') {
        Object.assign(model, { status: 'awaiting_approval', approval: 'pending', token: null, until: null })
        model.approval_until = now + 600 * second_ms
        return [202]
      }
      const has_use = this.approval === 'given' && model.given_until > now
      if (this.approval !== 'none' && !has_use) return [403, 'EFFECT_REJECTED']
      if (has_use) Object.assign(model, { approval: 'approved', permit_until: model.given_until })
      leased(model, now, this.seconds)
      return [201]
    }
    if (status === 'awaiting_approval') return [202]
    if (status === 'running') return [409, 'EFFECT_IN_FLIGHT']
    if (status === 'unknown') return [409, 'EFFECT_UNKNOWN']
    return status === 'rejected' ? [403, 'EFFECT_REJECTED'] : done
  }
  ask(real: Real, { status, on_unknown }: Model) {
    const payload = status === 'none' ? bytes : this.payload
    const approval =
      this.approval === 'asks'
        ? { title: 'May I?', timeout_seconds: 600 }
        : this.approval !== 'none' && { checkpoint_id: real.others[this.approval] }
    return claimOf(real, payload, {
      ...{ key: real.key, lease_seconds: this.seconds, on_unknown },
      ...(approval && { approval }),
    })
  }
  override learn(model: Model, real: Real, { status, body }: Answer) {
    if (status > 202) return
    real.id = body.id
    if (status === 202) real.checkpoint_id = body.checkpoint.id
    if (status === 201) takes(model, body.lease_token)
  }
  override toString = () => `claim(${this.payload}, ${this.approval}, ${this.seconds})`
}

/** The payload is sent byte for byte. */
function claimOf({ service, tenant }: Pick<Real, 'service' | 'tenant'>, payload: string, more: object) {
  const body = `{"type":"model","payload":${payload},${JSON.stringify(more).slice(1)}`
  const headers = { 'content-type': 'application/json' }
  return service.ask('POST', '/v1/effects', { key: tenant.api_key, body, headers })
}

function takes(model: Model, token: string): void {
  model.token = token
  model.tokens.push(token)
}

class Start extends Step {
  constructor(readonly hash: 'any' | 'right' | 'wrong') {
    super()
  }
  expected(model: Model, now: number): Outcome {
    const { status } = model
    if (model.frozen_at !== null) return stopped
    if (this.hash === 'wrong') return [422, 'EFFECT_KEY_REUSED']
    const over = overNow(model, now)
    if (over) return over
    if (status === 'ready' || status === 'approved') {
      leased(model, now, 20)
      return done
    }
    if (status === 'running') return [409, 'EFFECT_IN_FLIGHT']
    if (status === 'unknown') return [409, 'EFFECT_UNKNOWN']
    return status === 'rejected' ? [403, 'EFFECT_REJECTED'] : [409, 'INVALID_STATE']
  }
  ask(real: Real) {
    const payload_hash = hashOf(this.hash === 'right' ? bytes : other_bytes)
    return call(real, 'start', { lease_seconds: 20, ...(this.hash !== 'any' && { payload_hash }) })
  }
  override learn(model: Model, _: Real, { status, body }: Answer) {
    if (status === 200) takes(model, body.lease_token)
  }
  override toString = () => `start(${this.hash})`
}

type Token = 'last' | 'older' | 'none'

function tokenOf({ tokens }: Model, which: Token): string {
  if (which === 'none') return garbage
  return (which === 'last' ? tokens.at(-1) : tokens.at(-2)) ?? garbage
}

class Extend extends Step {
  constructor(readonly token: Token) {
    super()
  }
  expected(model: Model, now: number): Outcome {
    const at = model.frozen_at ?? now // the time of a lease stands still in a freeze
    const holds =
      model.status === 'running' && tokenOf(model, this.token) === model.token && model.until! > at
    if (!holds) return not_held
    model.until = at + 40 * second_ms
    return done
  }
  ask(real: Real, model: Model) {
    return call(real, 'extend', { lease_token: tokenOf(model, this.token), lease_seconds: 40 })
  }
  override toString = () => `extend(${this.token})`
}

class Report extends Step {
  constructor(
    readonly how: 'succeed' | 'fail' | 'retry',
    readonly token: Token,
  ) {
    super()
  }
  expected(model: Model): Outcome {
    if (tokenOf(model, this.token) !== model.token) return not_held
    const to = this.how === 'succeed' ? 'succeeded' : this.how === 'fail' ? 'failed' : startable(model)
    if (model.until === null) return model.status === to ? done : not_held
    Object.assign(model, { status: to, until: null, question: false })
    return done
  }
  ask(real: Real, model: Model) {
    const lease_token = tokenOf(model, this.token)
    if (this.how === 'succeed') return call(real, 'succeed', { lease_token, result: 1 })
    return call(real, 'fail', { lease_token, error: 'no', retry: this.how === 'retry' })
  }
  override toString = () => `${this.how}(${this.token})`
}

class Resolve extends Step {
  constructor(
    readonly outcome: 'succeeded' | 'failed' | 'retry',
    readonly fence: 'any' | 'last' | 'older',
  ) {
    super()
  }
  expected(model: Model): Outcome {
    if (this.fence === 'older') return [409, 'INVALID_STATE']
    const to = this.outcome === 'retry' ? startable(model) : this.outcome
    const is_repeat =
      this.outcome === 'retry' ? ['ready', 'approved'].includes(model.status) : model.status === to
    if (model.resolved && model.token === null && is_repeat) return done
    const from = this.outcome === 'retry' ? ['unknown'] : ['unknown', 'ready', 'approved']
    if (!from.includes(model.status)) return [409, 'INVALID_STATE']
    Object.assign(model, { status: to, token: null, until: null, question: false, resolved: true })
    return done
  }
  ask(real: Real, model: Model) {
    const fence = this.fence === 'last' ? model.fence : model.fence === 0 ? 99 : model.fence - 1
    return call(real, 'resolve', { outcome: this.outcome, ...(this.fence !== 'any' && { fence }) }, true)
  }
  override toString = () => `resolve(${this.outcome}, ${this.fence})`
}

type Verb = 'approve' | 'approve for a time' | 'reject' | 'cancel'

class Decide extends Step {
  constructor(
    readonly verb: Verb,
    readonly outcome: Resolve['outcome'],
  ) {
    super()
  }
  override check({ status, question }: Model) {
    return status === 'awaiting_approval' || question
  }
  get approves() {
    return this.verb.startsWith('approve')
  }
  expected(model: Model, now: number): Outcome {
    if (this.verb === 'cancel' && model.frozen_at !== null) return stopped
    const answer: Outcome = this.verb === 'cancel' ? [204] : done
    if (!model.question) {
      model.status = this.approves ? 'approved' : 'rejected'
      model.approval = this.approves ? 'approved' : 'refused'
      model.permit_until = this.verb === 'approve for a time' ? now + 50 * second_ms : null
      return answer
    }
    model.question = false
    if (!this.approves) return answer
    const to = this.outcome === 'retry' ? startable(model) : this.outcome
    Object.assign(model, { status: to, token: null, until: null, resolved: true })
    return answer
  }
  ask({ service, tenant, checkpoint_id }: Real, { question }: Model) {
    const path = `/v1/checkpoints/${checkpoint_id}`
    if (this.verb === 'cancel') return service.ask('DELETE', path, { key: tenant.api_key })
    if (!this.approves) return service.ask('POST', `${path}/reject`, { key: tenant.admin_key })
    const expires_at = new Date(service.clock.now() + 50 * second_ms).toISOString()
    const body = question
      ? { answer: { outcome: this.outcome } }
      : this.verb === 'approve'
        ? {}
        : { expires_at }
    return service.ask('POST', `${path}/approve`, { key: tenant.admin_key, body })
  }
  override toString = () => `${this.verb}(${this.outcome})`
}

/** Of its approval, or of that of another effect under which it was started. */
class Revoke extends Step {
  override check({ approval }: Model) {
    return approval !== 'none'
  }
  expected(model: Model, now: number): Outcome {
    if (model.approval !== 'approved') return [409, 'INVALID_STATE']
    if (model.permit_until !== null && model.permit_until <= now) return done
    if (model.permit_until === model.given_until) model.given_until = now
    model.permit_until = now
    overNow(model, now)
    return done
  }
  async ask({ service, tenant, id }: Real) {
    const { body } = await service.ask('GET', `/v1/effects/${id}`, { key: tenant.api_key })
    return service.ask('POST', `/v1/checkpoints/${body.checkpoint_id}/revoke`, { key: tenant.admin_key })
  }
  override toString = () => 'revoke'
}

/** Time passes; with a tick, what has run out is seen. */
class Pass extends Step {
  constructor(
    readonly seconds: number,
    readonly ticks: boolean,
  ) {
    super()
  }
  expected(model: Model, now: number): Outcome {
    if (!this.ticks) return done
    const { status, frozen_at } = model
    if (status === 'running' && model.until! <= (frozen_at ?? now)) {
      model.status = model.on_unknown === 'retry' ? startable(model) : 'unknown'
      model.question = model.on_unknown === 'ask'
    } else if (status === 'awaiting_approval' && frozen_at === null && model.approval_until <= now)
      Object.assign(model, { status: 'rejected', approval: 'refused' })
    return done
  }
  ask({ service }: Real) {
    service.clock.advance(this.seconds * second_ms)
    if (this.ticks) return service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
    return service.ask('GET', '/livez')
  }
  override toString = () => `pass(${this.seconds}, ${this.ticks})`
}

class Freeze extends Step {
  override check() {
    return true
  }
  expected(model: Model, now: number): Outcome {
    model.frozen_at ??= now
    return done
  }
  ask({ service, tenant }: Real) {
    const path = `/v1/tenants/${tenant.tenant_id}/freeze`
    return service.ask('POST', path, { key: tenant.admin_key, body: {} })
  }
  override toString = () => 'freeze'
}

/** Deadlines that had not passed at the freeze move by exactly the frozen time. */
class Resume extends Step {
  override check() {
    return true
  }
  expected(model: Model, now: number): Outcome {
    const { frozen_at } = model
    if (frozen_at === null) return done
    const frozen_ms = now - frozen_at
    if (model.status === 'running' && model.until! > frozen_at) model.until! += frozen_ms
    if (model.status === 'awaiting_approval' && model.approval_until > frozen_at)
      model.approval_until += frozen_ms
    model.frozen_at = null
    return done
  }
  ask({ service, tenant }: Real, { frozen_at }: Model) {
    const body = frozen_at === null ? {} : { frozen_at: iso(frozen_at) }
    return service.ask('POST', `/v1/tenants/${tenant.tenant_id}/resume`, { key: tenant.admin_key, body })
  }
  override toString = () => 'resume'
}

const token = fc.constantFrom<Token>('last', 'last', 'last', 'older', 'none')
const steps = [
  fc
    .tuple(
      fc.constantFrom(bytes, bytes, other_bytes),
      fc.constantFrom('none', 'none', 'none', 'asks', 'asks', 'asks', ...others),
      fc.constantFrom(10, 30),
    )
    .map((each) => new Claim(...each)),
  fc.constantFrom<Start['hash']>('any', 'right', 'wrong').map((hash) => new Start(hash)),
  fc.constantFrom<Start['hash']>('any', 'right').map((hash) => new Start(hash)),
  token.map((each) => new Extend(each)),
  fc
    .tuple(fc.constantFrom<Report['how']>('succeed', 'fail', 'retry', 'retry'), token)
    .map((each) => new Report(...each)),
  fc
    .tuple(
      fc.constantFrom<Resolve['outcome']>('succeeded', 'failed', 'retry', 'retry'),
      fc.constantFrom<Resolve['fence']>('any', 'last', 'last', 'older'),
    )
    .map((each) => new Resolve(...each)),
  fc
    .tuple(
      fc.constantFrom<Verb>('approve', 'approve for a time', 'approve for a time', 'reject', 'cancel'),
      fc.constantFrom<Resolve['outcome']>('succeeded', 'failed', 'retry', 'retry'),
    )
    .map((each) => new Decide(...each)),
  fc.tuple(fc.constantFrom(5, 15, 45, 700), fc.boolean()).map((each) => new Pass(...each)),
  fc.constant(new Pass(45, true)),
  fc.constant(new Start('any')),
  fc.constant(new Revoke()),
  fc.constant(new Freeze()),
  fc.constant(new Resume()),
  fc.constant(new Resume()),
]

/** A tenant without quotas. */
async function tenantOf(service: TestService): Promise<TestTenant> {
  const tenant = await service.signUp()
  await tenants.setPlan(service.app.db, tenant.tenant_id, 'enterprise')
  return tenant
}

async function approvalsOfOthers(
  service: TestService,
  tenant: TestTenant,
  given_until: number,
): Promise<Real['others']> {
  const of = async (key: Other, verb: 'approve' | 'reject', body: object): Promise<string> => {
    const { checkpoint_id } = (
      await claimOf({ service, tenant }, bytes, { key, approval: { title: 'May I?' } })
    ).body
    const path = `/v1/checkpoints/${checkpoint_id}/${verb}`
    expect((await service.ask('POST', path, { key: tenant.admin_key, body })).status).toBe(200)
    return checkpoint_id
  }
  return {
    given: await of('given', 'approve', { uses: 2, expires_at: iso(given_until) }),
    used_up: await of('used_up', 'approve', {}),
    rejected: await of('rejected', 'reject', {}),
  }
}

forEachRacedService('Effects and their model', (service) => {
  test(`agree after each call of ${sequences} sequences`, async () => {
    const seen = new Set<string>()
    let made = 0
    const all = fc.commands(steps, { maxCommands: 40, size: 'max' })
    const property = fc.asyncProperty(
      fc.constantFrom('hold', 'ask', 'retry'),
      all,
      async (on_unknown, commands) => {
        made += 1
        const tenant = await tenantOf(service)
        const key = `${made}-${crypto.randomUUID()}`
        const given_until = service.clock.now() + 100 * second_ms
        const others = await approvalsOfOthers(service, tenant, given_until)
        const real = { service, tenant, key, id: '', checkpoint_id: '', others, seen }
        return fc.asyncModelRun(
          () => ({ model: newModel(on_unknown as Model['on_unknown'], given_until), real }),
          commands,
        )
      },
    )
    const seed = Number(process.env.EFFECT_SEED ?? 16)
    await fc.assert(property, { numRuns: sequences, seed, endOnFailure: sequences > 100 })
    const moved = Object.values(moves).flatMap(({ from, to }) =>
      from.filter((status) => status !== to).map((status) => `${status} --> ${to}`),
    )
    const missed = [...new Set(moved)].filter((move) => !seen.has(move))
    if (sequences >= 1_000) expect(missed).toEqual([])
  }, 600_000)
})

/** The statuses before and after each event of an effect. */
const transitions: Record<string, { from: readonly string[]; to: readonly string[] }> = {
  'effect.claimed': { from: ['none'], to: ['running'] },
  'effect.proposed': { from: ['none', 'ready'], to: ['awaiting_approval'] },
  'effect.approved': { from: ['awaiting_approval'], to: ['approved'] },
  'effect.rejected': { from: ['awaiting_approval', 'approved'], to: ['rejected'] },
  'effect.started': { from: ['ready', 'approved'], to: ['running'] },
  'effect.extended': { from: ['running'], to: ['running'] },
  'effect.succeeded': { from: ['running', 'unknown', 'ready', 'approved'], to: ['succeeded'] },
  'effect.failed': { from: ['running', 'unknown', 'ready', 'approved'], to: ['failed'] },
  'effect.unknown': { from: ['running', 'approved'], to: ['unknown'] },
}

interface Happened {
  type: string
  subject: { id: string }
  data: { fence: number; ran_out?: boolean; outcome?: string }
}

/** The status that the events of one effect lead to. Throws when one of them could not have happened. */
function replayed(events: readonly Happened[], has_approval: boolean): string {
  let status = 'none'
  let fence = 0
  const free = has_approval ? 'approved' : 'ready'
  for (const { type, data } of events) {
    const transition =
      type === 'effect.retried'
        ? { from: ['running', 'unknown', free], to: [free] }
        : type === 'effect.resolved'
          ? { from: ['unknown', 'ready', 'approved'], to: [data.outcome === 'retry' ? free : data.outcome!] }
          : transitions[type]!
    expect([type, status, transition.from.includes(status)]).toEqual([type, status, true])
    status = transition.to[0]!
    if (type === 'effect.claimed' || type === 'effect.started') fence += 1
    expect([type, data.fence]).toEqual([type, fence])
  }
  return status
}

forEachRacedService('Effects that many work on at once', (service) => {
  describe('are explained by their events:', () => {
    test.each(Array.from({ length: histories }, (_, i) => i))(
      'history %i',
      async (seed) => {
        const tenant = await tenantOf(service)
        const below = randomFrom(seed + 1)
        const keys = ['a', 'b', 'c', 'd']
        const approved = ['c', 'd']
        const tokens: { id: string; lease_token: string }[] = []
        const known = new Map<string, { id: string; checkpoint_id: string | null }>()
        let granted = 0
        const learn = ({ status, body }: Answer) => {
          if (status > 202 || !body?.id) return
          known.set(body.key, body)
          if (!body.lease_token) return
          granted += 1
          tokens.push(body)
        }
        const step = async (): Promise<void> => {
          const key = keys[below(keys.length)]!
          const effect = known.get(key)
          const held = tokens[below(tokens.length + 1)] ?? tokens.at(-1)
          const post = (id: string, verb: string, body: object, by = tenant.api_key) =>
            service.ask('POST', `/v1/effects/${id}/${verb}`, { key: by, body })
          const kind = below(13)
          if (kind < 3 || !effect) {
            // The approval of the one is for the other as well.
            const checkpoint_id = known.get('c')?.checkpoint_id
            if (key === 'd' && !checkpoint_id) return
            const approval =
              key === 'c' ? { approval: { title: 'May I?' } } : key === 'd' && { approval: { checkpoint_id } }
            const body = {
              type: 't',
              key,
              payload: 1,
              lease_seconds: 10,
              ...approval,
              on_unknown: key === 'b' ? 'retry' : 'ask',
            }
            learn(await service.ask('POST', '/v1/effects', { key: tenant.api_key, body }))
          } else if (kind < 5) learn(await post(effect.id, 'start', {}))
          else if (kind === 5 && effect.checkpoint_id)
            await service.ask('POST', `/v1/checkpoints/${effect.checkpoint_id}/approve`, {
              ...{ key: tenant.admin_key, body: { uses: 3 } },
            })
          else if (kind === 6 && held)
            await post(held.id, 'extend', { lease_token: held.lease_token, lease_seconds: 10 })
          else if (kind < 9 && held)
            await post(held.id, 'fail', { lease_token: held.lease_token, error: 'no', retry: true })
          else if (kind === 9 && held && below(4) === 0)
            await post(held.id, 'succeed', { lease_token: held.lease_token })
          else if (kind === 12 && effect.checkpoint_id) {
            if (below(6) === 0)
              await service.ask('POST', `/v1/checkpoints/${effect.checkpoint_id}/revoke`, {
                key: tenant.admin_key,
              })
          } else if (kind === 10) await post(effect.id, 'resolve', { outcome: 'retry' }, tenant.admin_key)
          else {
            service.clock.advance(6 * second_ms)
            await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
          }
        }
        for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 8 }, step))
        const events: Happened[] = []
        for (let after = 0; ; ) {
          const path = `/v1/events?limit=200&after=${after}`
          const { body } = await service.ask('GET', path, { key: tenant.admin_key })
          events.push(...body.items)
          if (body.items.length === 0) break
          after = body.next_after
        }
        let starts = 0
        for (const [key, { id }] of known) {
          const own = events.filter(({ subject, type }) => subject.id === id && type.startsWith('effect.'))
          starts += own.filter(({ type }) => type === 'effect.claimed' || type === 'effect.started').length
          const effect = await service.ask('GET', `/v1/effects/${id}`, { key: tenant.api_key })
          expect(replayed(own, approved.includes(key))).toBe(effect.body.status)
          const revoked = events.filter(
            ({ subject, type }) => type === 'checkpoint.revoked' && subject.id === effect.body.checkpoint_id,
          )
          expect(revoked.length).toBeLessThanOrEqual(1)
          if (revoked.length === 0) continue
          const after = events.slice(events.indexOf(revoked[0]!))
          for (const { subject, type } of after)
            if (subject.id === id) expect(['effect.claimed', 'effect.started']).not.toContain(type)
        }
        expect(starts).toBe(granted)
      },
      300_000,
    )
  })
})
