// Helpers of the contract tests: tenants with every kind of key, requests that a route is ready for, and the rules
// for every answer.

import { expect } from 'bun:test'
import { Value } from 'typebox/value'
import { type ErrorCode, errors } from '../../src/base/errors.ts'
import { newId } from '../../src/base/ids.ts'
import { hashOf } from '../../src/base/keys.ts'
import type { CallerKind } from '../../src/contract/caller.ts'
import type { NamedRoute } from '../../src/contract/feature.ts'
import type { Group } from '../../src/contract/group.ts'
import { errorCodesOf } from '../../src/contract/responses.ts'
import { type Route, successStatus } from '../../src/contract/route.ts'
import { rowBytes } from '../../src/db/stored.ts'
import { routes } from '../../src/features.ts'
import * as addresses from '../../src/subscriptions/address-store.ts'
import * as tenants from '../../src/tenants/service.ts'
import { approved, freed, leased, permitted } from './contract-effects.ts'
import {
  exampleBody,
  exampleParam,
  exampleQuery,
  fieldsOf,
  type Json,
  type Schema,
  undeclared,
} from './contract-examples.ts'
import { happened } from './happened.ts'
import { type Answer, type Ask, cron_secret, served, type TestService } from './service.ts'

export const caller_kinds: readonly CallerKind[] = ['admin', 'agent', 'approval']

/** A tenant and a key of each kind. */
export interface Keyring {
  tenant_id: string
  agent_id: string
  keys: Record<CallerKind, string>
  approval_key_id: string
}

/** A new tenant on the plan without limits: these tests are not about quotas. */
export async function newKeyring(service: TestService): Promise<Keyring> {
  const name = `t-${crypto.randomUUID().slice(0, 13)}`
  const body = { name, owner_email: 'owner@example.com' }
  const made = await served(() => service.ask('POST', '/v1/tenants', { body }))
  expect(made.status).toBe(201)
  const { tenant_id, admin_key } = made.body
  await tenants.setPlan(service.app.db, tenant_id, 'enterprise')
  const { agent_id, api_key } = await service.addAgent(admin_key, 'agent-one')
  const approval = await served(() => service.ask('POST', '/v1/approval-keys', { key: admin_key }))
  expect(approval.status).toBe(201)
  const { approval_key_id, approval_key } = approval.body
  return {
    tenant_id,
    agent_id,
    keys: { admin: admin_key, agent: api_key, approval: approval_key },
    approval_key_id,
  }
}

/** The key in the header, or headers, of its kind. */
export function ownHeaders(keyring: Keyring, kind: CallerKind): Record<string, string> {
  if (kind === 'agent') return { 'x-agent-id': keyring.agent_id, 'x-api-key': keyring.keys.agent }
  return { [kind === 'admin' ? 'x-admin-key' : 'x-approval-key']: keyring.keys[kind] }
}

export function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` }
}

/** The callers that a route accepts, with their headers; `anybody` for a public one. */
export function callersOf(route: Route, keyring: Keyring): [who: string, headers: Record<string, string>][] {
  if (route.cron) return [['cron', bearer(cron_secret)]]
  if (route.auth.length === 0) return [['anybody', {}]]
  return route.auth.map((kind) => [kind, ownHeaders(keyring, kind)])
}

export function isAuthenticated({ route }: NamedRoute): boolean {
  return route.auth.length > 0
}

/** Everything that a call of this route needs to succeed once. */
export interface Ready {
  keyring: Keyring
  path: string
  params: Record<string, string>
  body: Json | undefined
}

/** A call that will succeed, on an object of its own. A route that changes its tenant gets a tenant of its own. */
export async function ready(service: TestService, named: NamedRoute, keyring: Keyring): Promise<Ready> {
  return readyIn(service, named, await ownerFor(service, named.route, keyring))
}

/** The same in this very tenant. */
export async function readyIn(service: TestService, named: NamedRoute, keyring: Keyring): Promise<Ready> {
  const by_hand = steps_by_hand[named.name]
  if (by_hand) {
    return by_hand(service, named.route, await newTarget(service, named.route, keyring))
  }
  const first = await firstStep(service, named)
  const made = await newTarget(service, named.route, keyring)
  if (first) await requireSuccess(service, first, made)
  return made
}

/** The same for a call that will be refused: the object is as new, its state may not allow the route. */
export async function readyToRefuse(
  service: TestService,
  named: NamedRoute,
  keyring: Keyring,
): Promise<Ready> {
  return newTarget(service, named.route, await ownerFor(service, named.route, keyring))
}

/** Headers, body and path of a call that is made ready, as one `ask`. */
export async function call(
  service: TestService,
  { route }: NamedRoute,
  { path, body }: Pick<Ready, 'path' | 'body'>,
  { headers = {}, ...other }: Ask = {},
): Promise<Answer> {
  const answer = await service.ask(route.method, path, {
    headers,
    ...(body === undefined ? {} : { body }),
    ...other,
  })
  expectContract(route, answer)
  return answer
}

/** Asserts the rules for every answer of a route, whatever was asked. */
export function expectContract(route: Route, answer: Answer): void {
  const request_id = answer.headers.get('x-request-id')
  expect(request_id).toMatch(/^[A-Za-z0-9_.-]{8,64}$/)
  if (answer.status >= 400 && !(route.replies[answer.status] && answer.body.data)) {
    expectEnvelope(answer, route)
    expect(errorCodesOf(route)).toContain(answer.body.error.code)
    return
  }
  const reply = route.replies[answer.status]
  if (reply === undefined) throw new Error(`${route.method} ${route.path} declares no ${answer.status}`)
  for (const name of Object.keys(reply.headers ?? {}))
    expect([name, answer.headers.has(name)]).toEqual([name, true])
  const schema = reply.body
  if (schema === null) {
    expect(answer.text).toBe('')
    expect(answer.headers.get('content-type')).toBeNull()
    return
  }
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  const data = dataOf(route, answer)
  if (route.group.wraps_data) expect(answer.body).toEqual({ success: answer.status < 400, data })
  expect([...Value.Errors(schema, data)]).toEqual([])
  expect(undeclared(schema as Schema, data, '')).toEqual([])
}

/** The data of an answer: under /api it lies in an envelope. */
// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an answer's shape
function dataOf({ group }: Route, { body }: Answer): any {
  return group.wraps_data ? body.data : body
}

type OfGroup = { group: Group | null }

/** The error envelope of the API contract, byte for byte, with the status of the code. */
export function expectEnvelope(answer: Answer, route: OfGroup): void {
  const { code, details } = answer.body.error as { code: ErrorCode; details?: unknown }
  expect(Object.keys(errors)).toContain(code)
  expect(answer.text).toBe(envelopeText(route, code, answer.headers.get('x-request-id')!, details))
  const also = code === 'VERSION_MISMATCH' ? [412] : []
  expect([errors[code].status as number, ...also]).toContain(answer.status)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('cache-control')).toBe('no-store')
}

function envelopeText({ group }: OfGroup, code: ErrorCode, request_id: string, details?: unknown): string {
  const { message } = errors[code]
  const error = details ? { code, message, details, request_id } : { code, message, request_id }
  return JSON.stringify(group?.marks_errors ? { success: false, error } : { error })
}

/** Status and body with the request id taken out, to compare answers byte for byte. */
export function bytesButId(answer: Answer): string {
  const body = answer.text.replaceAll(answer.headers.get('x-request-id')!, '<request id>')
  return `${answer.status} ${body}`
}

/** The answer that `bytesButId` shows for an error without details. */
export function errorBytes(code: ErrorCode, route: OfGroup = unknown_route): string {
  return `${errors[code].status} ${envelopeText(route, code, '<request id>')}`
}

/** The same for a valid key of the wrong kind: the answer says which it is, and which are accepted. */
export function wrongKindBytes(key_kind: CallerKind, route: OfGroup & Pick<Route, 'auth'>): string {
  const details = { key_kind, accepted_key_kinds: route.auth }
  return `403 ${envelopeText(route, 'FORBIDDEN', '<request id>', details)}`
}

/** Answers as /v1 does. */
const unknown_route: OfGroup = { group: null }

/** The view that a tenant has of itself: the answer of every list and of its own record. */
export async function seenBy(service: TestService, keyring: Keyring, also: string[] = []): Promise<string[]> {
  // Numbers what has happened: each answer below is of all of it, in whatever order they are made.
  await service.ask('GET', '/v1/events', { key: keyring.keys.admin })
  const paths = routes.flatMap(({ route }) => {
    const names = Object.keys(route.params ?? {})
    const own = names.every((name) => name === 'tenant_id')
    const counts_looks = route.path.endsWith('/usage')
    return route.method === 'GET' && route.auth.length > 0 && own && !counts_looks ? [route.path] : []
  })
  const shown = [...new Set(paths)].map((path) => path.replace(':tenant_id', keyring.tenant_id))
  return Promise.all(
    [...shown, ...also].map(async (path) => {
      const as_admin = await service.ask('GET', path, { key: keyring.keys.admin })
      const answer =
        as_admin.status === 403 ? await service.ask('GET', path, { key: keyring.keys.agent }) : as_admin
      return `GET ${path} ${bytesButId(answer).replace(calls_used, '$1')}`
    }),
  )
}

/** Looking is a call, too. */
const calls_used = /("api_calls_per_month":{"used":)\d+/

/** For test.each: `POST /v1/agents` and its route. */
export function titled(list: readonly NamedRoute[]): [string, NamedRoute][] {
  return list.map((named) => [`${named.route.method} ${named.route.path}`, named])
}

/** Parameters that are ids, whose form is never checked. */
export function idParams(route: Route): string[] {
  return Object.entries(route.params ?? {}).flatMap(([name, { message }]) => (message === '' ? [name] : []))
}

/** Parameters of an object that never was. */
export function neverExisted(route: Route): Record<string, string> {
  return Object.fromEntries(
    Object.entries(route.params ?? {}).map(([name, param]) => [
      name,
      param.message === '' ? newId('ten', Date.UTC(2025, 0, 1)) : exampleParam(route, name, param),
    ]),
  )
}

/** A path with its parameters filled in. */
export function pathWith(route: Route, params: Record<string, string>): string {
  return route.path
    .replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name]!))
    .replace(/\*$/, 'any/sub%20path')
}

async function ownerFor(service: TestService, route: Route, keyring: Keyring): Promise<Keyring> {
  const changes_tenant = 'tenant_id' in (route.params ?? {}) && route.method !== 'GET'
  return changes_tenant || isSetting(route) ? newKeyring(service) : keyring
}

/** A PUT of the admin key makes nothing: it changes what other calls of the tenant do. */
function isSetting({ method, auth }: Route): boolean {
  return method === 'PUT' && auth.includes('admin')
}

async function newTarget(service: TestService, route: Route, own: Keyring): Promise<Ready> {
  const params: Record<string, string> = {}
  for (const [name, param] of Object.entries(route.params ?? {})) {
    if (name === 'tenant_id') params[name] = own.tenant_id
    else if (param.message !== '') params[name] = exampleParam(route, name, param)
    else if (name === 'message_id') params[name] = await messageOf(service, own, params.id!)
    else params[name] = await newObject(service, route, name, own)
  }
  const path = `${pathWith(route, params)}${exampleQuery(route)}`
  const made = { keyring: own, params, path, body: exampleBody(route) }
  const names = Object.keys(params).join()
  const put = routes.find(
    ({ route: { method, params } }) => method === 'PUT' && Object.keys(params ?? {}).join() === names,
  )
  if (put && put.route !== route && !isSetting(put.route))
    await requireSuccess(service, put, { ...made, body: exampleBody(put.route) })
  return made
}

/**
 * The id of an object that the collection's POST has just made: `/v1/agents` for `/v1/agents/:agent_id/…`; else, as
 * for `/hook/:token`, what another POST answers under this name. `/v1/approvals/:checkpoint_id` takes the id of what
 * `/v1/checkpoints` makes, and `/v1/dlq/operations/:id` that of what a POST answers in the same shape.
 */
async function newObject(
  service: TestService,
  route: Route,
  name: string,
  keyring: Keyring,
): Promise<string> {
  const collection = route.path.split(`/:${name}`)[0]!
  const makers = routes.filter(({ route }) => route.create ?? (route.method === 'POST' && route.replies[201]))
  const noun = makers.find((other) => other.route.path === `/v1/${name.replace(/_id$/, 's')}`)
  const shape = shapeOf(
    routes.find(({ route: { method, path } }) => method === 'GET' && path === `${collection}/:${name}`),
  )
  const maker =
    makers.find((other) => other.route.path === collection) ??
    noun ??
    makers.find((other) => shape !== undefined && shapeOf(other) === shape) ??
    makers.find((other) =>
      fieldsOf(other.route.replies[successStatus(other.route)]!.body).some(([n]) => n === name),
    )
  if (!maker) throw new Error(`${route.path}: nothing makes a :${name}, there is no POST ${collection}`)
  const made = await requireSuccess(service, maker, await newTarget(service, maker.route, keyring))
  const field = maker === noun && maker.route.path !== collection ? 'id' : name
  const id: unknown = dataOf(maker.route, made)[field]
  if (typeof id !== 'string')
    throw new Error(`POST ${collection} answers no ${name}, which ${route.path} needs`)
  return id
}

/** The name of what a route answers. */
function shapeOf(named: NamedRoute | undefined): unknown {
  const body = named && named.route.replies[successStatus(named.route)]!.body
  return body ? (body as { 'x-name'?: string })['x-name'] : undefined
}

/** The id of a message that this inbox gets. */
async function messageOf(service: TestService, { keys }: Keyring, id: string): Promise<string> {
  const { body } = await service.ask('GET', `/api/webhook/${id}`, { key: keys.agent })
  return newMessage(service, keys.agent, body.data.inbox)
}

async function requireSuccess(service: TestService, named: NamedRoute, made: Ready): Promise<Answer> {
  const path = `${pathWith(named.route, made.params)}${exampleQuery(named.route)}`
  const body = exampleBody(named.route)
  const [who] = callersOf(named.route, made.keyring)
  const answer = await call(service, named, { path, body }, { headers: who![1] })
  if (answer.status < 300) return answer
  throw new Error(`${named.route.method} ${path} with its example answers ${answer.status} ${answer.text}`)
}

/** For routes whose state no verb leads to, because the service itself brings it about. */
const steps_by_hand: Readonly<
  Record<string, (service: TestService, route: Route, made: Ready) => Promise<Ready>>
> = {
  ...{ retrySchedule: fired, replayMessage: forwarded, confirmMail: linked, unsubscribeMail: linked },
  getWorkflow: begun,
  resumeTenant: after('freeze'),
  resumeAgent: after('pause'),
  ...{ getEffectPolicy: ruled, deleteEffectPolicy: ruled },
  ...{
    startEffect: freed,
    resolveEffect: permitted,
    revokeApproval: approved,
    extendEffect: leased,
    succeedEffect: leased,
    failEffect: leased,
  },
  updateAgent: async (_, __, made) => ({ ...made, body: { mode: 'read' } }),
}

/** Stopped before it is resumed: to resume what runs changes nothing. */
function after(verb: 'freeze' | 'pause') {
  return async (service: TestService, _: Route, made: Ready): Promise<Ready> => {
    const path = made.path.replace(/resume$/, verb)
    expect((await service.ask('POST', path, { key: made.keyring.keys.admin })).status).toBe(200)
    return made
  }
}

/** The schedule calls an inbox. */
async function fired(service: TestService, _: Route, made: Ready): Promise<Ready> {
  const { keyring, params } = made
  const key = keyring.keys.agent
  const inbox = await service.ask('POST', '/api/webhook', { key })
  const body = { callback_url: inbox.body.data.url, fire_at: new Date(service.clock.now()).toISOString() }
  expect((await service.ask('PATCH', `/v1/schedules/${params.id}`, { key, body })).status).toBe(200)
  expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
  const called = await service.ask('GET', `/v1/schedules/${params.id}`, { key })
  expect(called.body.status).toBe('fired')
  return made
}

/** A policy for a type of effects. */
async function ruled(service: TestService, _: Route, made: Ready): Promise<Ready> {
  const path = `/v1/effect-policies/${made.params.type}`
  const set = await service.ask('PUT', path, { key: made.keyring.keys.admin, body: { approval: 'optional' } })
  expect(set.status).toBe(200)
  return made
}

/** A workflow begins with its first event. */
async function begun(service: TestService, _: Route, made: Ready): Promise<Ready> {
  await happened(service, made.keyring.tenant_id, made.params.workflow_id!)
  return made
}

/** A message whose forward has failed: nobody listens there. */
async function forwarded(service: TestService, route: Route, { keyring, ...made }: Ready): Promise<Ready> {
  const key = keyring.keys.agent
  const body = { forwardUrl: 'http://127.0.0.1:9/' }
  const inbox = (await service.ask('POST', '/api/webhook', { key, body })).body.data
  const message_id = await newMessage(service, key, inbox)
  expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
  const params = { id: inbox.id, message_id }
  return { ...made, keyring, params, path: pathWith(route, params) }
}

/** An address that was asked, without an email. */
async function linked(service: TestService, _: Route, made: Ready): Promise<Ready> {
  const { tenant_id } = made.keyring
  const token = `${tenant_id}.${crypto.randomUUID()}`
  const address = {
    ...{ address_hash: crypto.randomUUID(), token_hash: hashOf(token), token: '', asked_by: '' },
    expires_at: Number.MAX_SAFE_INTEGER,
  }
  await service.app.db.write(async (tx) => {
    await addresses.insert(tx, tenant_id, address)
    tx.stores(tenant_id, rowBytes(''))
  })
  return { ...made, body: { token } }
}

/** The id of a message that an inbox gets. */
async function newMessage(
  service: TestService,
  key: string,
  inbox: { id: string; url: string },
): Promise<string> {
  const sent = await service.ask('POST', new URL(inbox.url).pathname, { body: { n: 1 } })
  expect(sent.status).toBe(200)
  const messages = await service.ask('GET', `/api/webhook/${inbox.id}/messages`, { key })
  return messages.body.data.items.at(-1).id
}

const first_steps = new Map<string, NamedRoute | null>()

/**
 * The call that a new object needs before this route can succeed; null for most. Found by trying: where a new
 * object's state does not allow the route, one of the other verbs on the object leads to a state that does.
 */
async function firstStep(service: TestService, named: NamedRoute): Promise<NamedRoute | null> {
  const known = first_steps.get(named.name)
  if (known !== undefined) return known
  const found = (await succeedsAfter(service, named, null)) ? null : await searched(service, named)
  first_steps.set(named.name, found)
  return found
}

async function searched(service: TestService, named: NamedRoute): Promise<NamedRoute> {
  const object = named.route.path.replace(/(.*:\w+).*/, '$1')
  for (const verb of routes) {
    if (verb === named || verb.route.method === 'GET' || !verb.route.path.startsWith(object)) continue
    if (await succeedsAfter(service, named, verb)) return verb
  }
  throw new Error(
    `no example of ${named.route.method} ${named.route.path} succeeds, whatever verb goes before it`,
  )
}

async function succeedsAfter(
  service: TestService,
  named: NamedRoute,
  verb: NamedRoute | null,
): Promise<boolean> {
  const made = await newTarget(service, named.route, await newKeyring(service))
  if (verb) await requireSuccess(service, verb, made)
  const [who] = callersOf(named.route, made.keyring)
  const answer = await call(service, named, made, { headers: who![1] })
  if (answer.status < 300) return true
  if (answer.body.error.code === 'INVALID_STATE') return false
  throw new Error(
    `${named.route.method} ${made.path} with its example answers ${answer.status} ${answer.text}`,
  )
}
