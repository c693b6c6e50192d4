// Every operation of the contract: who may call it, an example of its body, and what it answers. Rules that hold for all
// operations are checked from this table.

import type { Sent } from './client.ts'
import type { Kind } from './contract.ts'
import * as objects from './objects.ts'
import * as shapes from './shapes.ts'
import { type Tenant, unique } from './tenant.ts'

export interface Operation {
  /** `POST /v1/dlq/{id}/claim` */
  name: string
  method: string
  path: string
  /** Kinds of keys that it takes; `anyone` needs none, `cron` the cron secret. */
  callers: readonly Kind[] | 'anyone' | 'cron'
  /** The status of its success. */
  status: number
  /** The shape of a successful answer; null for an empty body. */
  shape: shapes.Shape | null
  /** An example of its body; null when it takes none. */
  body: ((place: objects.Place) => Record<string, unknown>) | null
  /** Fields that the body must have. */
  required: string[]
  /** It takes an Idempotency-Key. */
  creates: boolean
  /** Makes an object on which one call succeeds, and returns its path parameters; null when there is none. */
  object: objects.Maker | null
  /** The code for an id that names nothing. */
  unknown: string | null
  /** Its query, for a success. */
  query: string
  /** It changes the tenant itself. */
  changes_tenant: boolean
  /** The list has `limit` and `cursor`. */
  pages: boolean
}

type Rest = Partial<Omit<Operation, 'name' | 'method' | 'path' | 'status' | 'callers'>>

function operation(name: string, callers: Operation['callers'], status: number, rest: Rest = {}): Operation {
  const [method, path] = name.split(' ') as [string, string]
  const empty = { shape: null, body: null, required: [], creates: false, object: null, unknown: null }
  return {
    name,
    method,
    path,
    callers,
    status,
    ...empty,
    query: '',
    changes_tenant: false,
    pages: false,
    ...rest,
  }
}

/** POST that creates: it answers 201 and takes an Idempotency-Key. */
function creation(name: string, callers: Operation['callers'], rest: Rest): Operation {
  return operation(name, callers, 201, { creates: true, ...rest })
}

const list = { pages: true }
/** Every field may be left out, and so may the body. */
const optional = { body: () => ({}) }
const of_tenant = { object: objects.self, unknown: 'FORBIDDEN' }
const verb_on_tenant = { ...of_tenant, ...optional, changes_tenant: true }
const of_agent = { object: objects.agent, unknown: 'AGENT_NOT_FOUND' }
const of_item = { object: objects.item, unknown: 'DLQ_NOT_FOUND' }
const of_claimed = { ...of_item, ...optional, object: objects.claimed, shape: shapes.item }
const of_schedule = { object: objects.schedule, unknown: 'SCHEDULE_NOT_FOUND' }
const of_checkpoint = {
  object: objects.checkpoint,
  unknown: 'CHECKPOINT_NOT_FOUND',
  shape: shapes.checkpoint,
}
const of_inbox = { object: objects.inbox, unknown: 'INBOX_NOT_FOUND' }
const edge = ['agent', 'admin'] as const
const readers = ['agent', 'admin'] as const

const tenants: Operation[] = [
  creation('POST /v1/tenants', 'anyone', {
    shape: shapes.newTenant,
    body: () => ({ name: `conformance-${unique()}${unique()}`, owner_email: 'conformance@example.com' }),
    required: ['name', 'owner_email'],
  }),
  operation('GET /v1/tenants/{tenant_id}', ['admin'], 200, { ...of_tenant, shape: shapes.tenant }),
  operation('DELETE /v1/tenants/{tenant_id}', ['admin'], 202, {
    ...verb_on_tenant,
    shape: shapes.deletedTenant,
    body: () => ({ confirm: 'DELETE ALL DATA' }),
    required: ['confirm'],
  }),
  operation('POST /v1/tenants/{tenant_id}/restore', ['admin'], 200, {
    ...verb_on_tenant,
    object: objects.deletedSelf,
    shape: shapes.tenant,
  }),
  operation('POST /v1/tenants/{tenant_id}/rotate-key', ['admin'], 200, verb_on_tenant),
  operation('POST /v1/tenants/{tenant_id}/rotate-signing-secret', ['admin'], 200, verb_on_tenant),
]

const agents: Operation[] = [
  creation('POST /v1/agents', ['admin'], {
    shape: shapes.newAgent,
    body: () => ({ name: `agent-${unique()}` }),
    required: ['name'],
  }),
  operation('GET /v1/agents', ['admin'], 200, { ...list, shape: shapes.page(shapes.agent) }),
  operation('GET /v1/agents/{agent_id}', ['admin', 'agent'], 200, { ...of_agent, shape: shapes.agent }),
  operation('DELETE /v1/agents/{agent_id}', ['admin'], 204, of_agent),
  operation('POST /v1/agents/{agent_id}/rotate-key', ['admin'], 200, {
    ...of_agent,
    ...optional,
    shape: shapes.newAgent,
  }),
]

const approval_keys: Operation[] = [
  creation('POST /v1/approval-keys', ['admin'], { ...optional, shape: shapes.newApprovalKey }),
  operation('GET /v1/approval-keys', ['admin'], 200, { ...list, shape: shapes.page(shapes.approvalKey) }),
  operation('DELETE /v1/approval-keys/{approval_key_id}', ['admin'], 204, {
    object: objects.approvalKey,
    unknown: 'APPROVAL_KEY_NOT_FOUND',
  }),
]

const kv: Operation[] = [
  operation('GET /v1/kv/{namespace}/{key}', ['agent'], 200, { object: objects.value, shape: shapes.value }),
  operation('PUT /v1/kv/{namespace}/{key}', ['agent'], 200, {
    object: objects.value,
    shape: shapes.written,
    body: () => ({ value: { n: 1 } }),
    required: ['value'],
  }),
  operation('DELETE /v1/kv/{namespace}/{key}', ['agent'], 204, { object: objects.value }),
  operation('GET /v1/kv/{namespace}', ['agent'], 200, {
    ...list,
    object: objects.namespace,
    shape: shapes.page(shapes.listedKey),
  }),
]

const audit: Operation[] = [
  creation('POST /v1/audit', readers, {
    shape: shapes.entry,
    body: () => ({ action: 'conformance.checked' }),
    required: ['action'],
  }),
  operation('GET /v1/audit', readers, 200, { ...list, shape: shapes.page(shapes.entry) }),
  operation('GET /v1/audit/{id}', readers, 200, {
    object: objects.entry,
    unknown: 'AUDIT_ENTRY_NOT_FOUND',
    shape: shapes.entry,
  }),
]

const dlq: Operation[] = [
  creation('POST /v1/dlq', ['agent'], {
    shape: shapes.item,
    body: () => ({ payload: { n: 1 }, error: 'it failed' }),
    required: ['payload', 'error'],
  }),
  operation('GET /v1/dlq', readers, 200, { ...list, shape: shapes.page(shapes.listedItem) }),
  operation('GET /v1/dlq/{id}', readers, 200, { ...of_item, shape: shapes.item }),
  operation('DELETE /v1/dlq/{id}', ['agent'], 204, of_item),
  operation('POST /v1/dlq/{id}/claim', ['agent'], 200, {
    ...of_item,
    ...optional,
    shape: shapes.claimedItem,
  }),
  operation('POST /v1/dlq/{id}/release', ['agent'], 200, of_claimed),
  operation('POST /v1/dlq/{id}/fail', ['agent'], 200, of_claimed),
  operation('POST /v1/dlq/{id}/resolve', ['agent'], 200, of_claimed),
]

const schedules: Operation[] = [
  creation('POST /v1/schedules', ['agent'], {
    shape: shapes.schedule,
    body: objects.scheduleBody,
    required: ['callback_url', 'callback_payload', 'fire_at'],
  }),
  operation('GET /v1/schedules', readers, 200, { ...list, shape: shapes.page(shapes.schedule) }),
  operation('GET /v1/schedules/{id}', readers, 200, { ...of_schedule, shape: shapes.schedule }),
  operation('PATCH /v1/schedules/{id}', ['agent'], 200, {
    ...of_schedule,
    shape: shapes.schedule,
    body: () => ({ callback_payload: { n: 2 } }),
  }),
  operation('DELETE /v1/schedules/{id}', ['agent'], 204, of_schedule),
]

const checkpoints: Operation[] = [
  creation('POST /v1/checkpoints', ['agent'], {
    shape: shapes.checkpoint,
    body: objects.checkpointBody,
    required: ['title', 'callback_url'],
  }),
  operation('GET /v1/checkpoints', readers, 200, { ...list, shape: shapes.page(shapes.checkpoint) }),
  operation('GET /v1/checkpoints/{id}', readers, 200, of_checkpoint),
  operation('DELETE /v1/checkpoints/{id}', ['agent'], 204, { ...of_checkpoint, shape: null }),
  operation('POST /v1/checkpoints/{id}/approve', ['admin', 'approval'], 200, {
    ...of_checkpoint,
    ...optional,
  }),
  operation('POST /v1/checkpoints/{id}/reject', ['admin', 'approval'], 200, {
    ...of_checkpoint,
    ...optional,
  }),
]

const inboxes: Operation[] = [
  creation('POST /api/webhook', edge, { ...optional, shape: shapes.newInbox }),
  operation('GET /api/webhook', edge, 200, { shape: shapes.inboxPage }),
  operation('GET /api/webhook/{inbox_id}', edge, 200, { ...of_inbox, shape: shapes.inboxDetail }),
  operation('DELETE /api/webhook/{inbox_id}', edge, 200, { ...of_inbox, shape: shapes.deletedInbox }),
  operation('GET /api/webhook/{inbox_id}/messages', edge, 200, { ...of_inbox, shape: shapes.messagePage }),
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) =>
    operation(`${method} /hook/{token}`, 'anyone', 200, {
      object: objects.token,
      unknown: 'INBOX_NOT_FOUND',
      shape: shapes.received,
    }),
  ),
]

const rate_limits: Operation[] = [
  operation('POST /api/rate-limit/check', edge, 200, {
    shape: shapes.rateCheck,
    body: () => ({ key: `rl-${unique()}`, limit: 10, windowSeconds: 60 }),
    required: ['key', 'limit'],
  }),
  operation('GET /api/rate-limit/check', edge, 200, {
    shape: shapes.rateCheck,
    query: '?key=conformance-query&limit=1000000&window=60',
  }),
  operation('POST /api/rate-limit/reset', edge, 200, {
    shape: shapes.rateReset,
    body: () => ({ key: `rl-${unique()}` }),
    required: ['key'],
  }),
  operation('GET /api/rate-limit/{key}', edge, 200, { object: objects.counter, shape: shapes.rateStatus }),
]

export const operations: readonly Operation[] = [
  ...tenants,
  ...agents,
  ...approval_keys,
  ...kv,
  ...audit,
  ...dlq,
  ...schedules,
  ...checkpoints,
  ...inboxes,
  ...rate_limits,
  operation('POST /v1/tick', 'cron', 200, { shape: shapes.tick }),
]

const patterns = operations.map(({ name, method, path }) => ({
  name,
  method,
  pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
}))

/** The operation that a request calls, or null. */
export function operationOf({ method, path }: Sent): string | null {
  const [plain = ''] = path.split('?')
  const called = patterns.filter((one) => one.method === method && one.pattern.test(plain))
  // `GET /api/rate-limit/check` is not the status of a counter named check.
  return (called.find(({ name }) => name.endsWith(plain)) ?? called[0])?.name ?? null
}

/** A call that will succeed: its path, and its body as JSON text. */
export async function ready(
  { path, query, object, body }: Operation,
  tenant: Tenant,
): Promise<{ path: string; body: Record<string, unknown> | undefined; params: objects.Params }> {
  const params = (await object?.(tenant)) ?? {}
  return { path: `${filled(path, params)}${query}`, body: body?.(tenant), params }
}

/** The path with its parameters. */
export function filled(path: string, params: objects.Params): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? 'unknown'))
}
