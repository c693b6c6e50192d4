// The fields of every object of the contract. More fields may be there: the contract grows; none may be missing.

import { equal, Failure } from './assert.ts'
import { key_prefixes, keyForm, maskedForm, timestamp } from './contract.ts'

/** Returns what is wrong with a value, each as a sentence that begins with its place. */
type Form = (value: unknown, place: string) => string[]

export type Shape = Record<string, Form>

/** The object has all fields of the shape, each in its form. */
export function hasShape(value: unknown, shape: Shape, what: string): void {
  const faults = object(shape)(value, '')
  if (faults.length > 0) throw new Failure(`${what}: ${faults.slice(0, 5).join('; ')}`)
}

/** Both have the same values in all fields of the shape; in others they may differ. */
export function agree(actual: object, expected: object, shape: Shape, what: string): void {
  for (const name of Object.keys(shape))
    equal(Reflect.get(actual, name), Reflect.get(expected, name), `${name} of ${what}`)
}

const text: Form = of('text', (value) => typeof value === 'string')
const count: Form = of(
  'a whole number of 0 or more',
  (value) => Number.isInteger(value) && Number(value) >= 0,
)
const number: Form = of('a number', (value) => typeof value === 'number')
const flag: Form = of('true or false', (value) => typeof value === 'boolean')
const time: Form = like(timestamp)
const anything: Form = () => []
const map: Form = of(
  'an object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
)

function of(name: string, test: (value: unknown) => boolean): Form {
  return (value, place) =>
    test(value) ? [] : [`${place} must be ${name}, got ${JSON.stringify(value) ?? 'nothing'}`]
}

function like(pattern: RegExp): Form {
  return of(`text like ${pattern}`, (value) => typeof value === 'string' && pattern.test(value))
}

function id(prefix: string): Form {
  return like(new RegExp(`^${prefix}_[0-9A-Za-z]{10,}$`))
}

function orNull(form: Form): Form {
  return (value, place) => (value === null ? [] : form(value, place))
}

function oneOf(...values: string[]): Form {
  return of(`one of ${values.join(', ')}`, (value) => values.includes(String(value)))
}

function object(shape: Shape): Form {
  return (value, place) => {
    if (typeof value !== 'object' || value === null) return map(value, place || 'the body')
    return Object.entries(shape).flatMap(([name, form]) => {
      if (!(name in value)) return [`${place}${name} is missing`]
      return form(Reflect.get(value, name), `${place}${name}`)
    })
  }
}

function members(shape: Shape): Form {
  const form = object(shape)
  return (value, place) => form(value, `${place}.`)
}

function listOf(shape: Shape): Form {
  const form = object(shape)
  return (value, place) => {
    if (!Array.isArray(value)) return [`${place} must be an array`]
    return value.flatMap((item, i) => form(item, `${place}[${i}].`))
  }
}

const used = members({ used: count, limit: orNull(count) })

export const quota: Shape = {
  agents: used,
  kv_keys: used,
  dlq_items: used,
  active_schedules: used,
  inboxes: used,
  api_calls_per_month: used,
}

const tenant_head: Shape = {
  tenant_id: id('ten'),
  name: text,
  plan: text,
  quota: members(quota),
  created_at: time,
}

export const tenant: Shape = {
  ...tenant_head,
  owner_email: text,
  status: oneOf('active', 'pending_deletion'),
  purge_at: orNull(time),
}
export const newTenant: Shape = {
  ...tenant_head,
  status: oneOf('active'),
  admin_key: like(keyForm('admin')),
  signing_secret: like(/^whsec_[A-Za-z0-9+/]+={0,2}$/),
}
export const deletedTenant: Shape = {
  tenant_id: id('ten'),
  status: oneOf('pending_deletion'),
  purge_at: time,
}

const agent_head: Shape = {
  agent_id: text,
  name: text,
  description: orNull(text),
  callback_base_url: orNull(text),
  created_at: time,
}
export const agent: Shape = { ...agent_head, api_key: like(maskedForm('agent')) }
export const newAgent: Shape = { ...agent_head, api_key: like(keyForm('agent')) }

const approval_key_head: Shape = { approval_key_id: id('apk') }
export const approvalKey: Shape = { ...approval_key_head, approval_key: like(maskedForm('approval')) }
export const newApprovalKey: Shape = { ...approval_key_head, approval_key: like(keyForm('approval')) }

export const written: Shape = { namespace: text, key: text, version: count, expires_at: orNull(time) }
export const value: Shape = { ...written, value: anything, updated_at: time }
export const listedKey: Shape = { key: text, version: count, expires_at: orNull(time), updated_at: time }

export const entry: Shape = {
  id: id('log'),
  seq: count,
  action: text,
  workflow_id: orNull(text),
  actor: text,
  metadata: anything,
  agent_id: orNull(text),
  request_id: text,
  created_at: time,
}

export const listedItem: Shape = {
  id: id('dlq'),
  status: oneOf('failed', 'claimed', 'resolved', 'archived'),
  error: text,
  workflow_id: orNull(text),
  source: oneOf('agent', 'schedule', 'checkpoint'),
  source_id: orNull(text),
  agent_id: orNull(text),
  lock_seconds: count,
  locked_by: orNull(text),
  locked_until: orNull(time),
  claims: count,
  created_at: time,
  updated_at: time,
  resolved_at: orNull(time),
}
export const item: Shape = { ...listedItem, payload: anything }
export const claimedItem: Shape = { ...item, lock_token: text, locked_by: text, locked_until: time }

export const schedule: Shape = {
  id: id('sch'),
  status: oneOf('pending', 'fired', 'cancelled', 'failed'),
  callback_url: text,
  callback_payload: anything,
  fire_at: time,
  dlq_on_failure: flag,
  agent_id: orNull(text),
  attempts: count,
  next_attempt_at: orNull(time),
  last_error: orNull(text),
  last_status_code: orNull(count),
  fired_at: orNull(time),
  created_at: time,
  updated_at: time,
}

export const checkpoint: Shape = {
  id: id('chk'),
  status: oneOf('pending', 'approved', 'rejected', 'expired', 'cancelled'),
  title: text,
  prompt: orNull(text),
  callback_url: orNull(text),
  callback_payload: anything,
  timeout_action: oneOf('auto_reject', 'dlq'),
  expires_at: time,
  agent_id: orNull(text),
  reason: orNull(text),
  resolved_by: orNull(text),
  resolved_at: orNull(time),
  callback: members({ status: text, attempts: count, last_error: orNull(text) }),
  created_at: time,
  updated_at: time,
}

export const tick: Shape = {
  schedules: members({ due: count, fired: count, retrying: count, failed: count }),
  checkpoints: members({ rejected: count, expired: count, callbacks: count }),
  dlq: members({ locks_released: count }),
  expired: members({ kv_keys: count, inboxes: count, idempotency_keys: count }),
  tenants_purged: count,
  duration_ms: number,
}

const inbox_head: Shape = { id: id('inb'), token: text, url: text, label: text, expiresAt: time }
export const newInbox: Shape = inbox_head
export const listedInbox: Shape = { ...inbox_head, messageCount: count }
export const inbox: Shape = { ...listedInbox, forwardUrl: orNull(text), createdAt: time }
export const message: Shape = {
  id: id('msg'),
  method: text,
  path: text,
  headers: map,
  body: anything,
  bodyBase64: text,
  query: map,
  sourceIp: text,
  contentType: text,
  createdAt: time,
}
export const inboxDetail: Shape = { inbox: members(inbox), messages: listOf(message) }
export const inboxPage: Shape = { items: listOf(listedInbox), total: count }
export const messagePage: Shape = { items: listOf(message), nextAfter: orNull(text) }

export const rateCheck: Shape = {
  allowed: flag,
  count: number,
  remaining: number,
  resetAt: time,
  limit: number,
}
export const rateStatus: Shape = {
  key: text,
  count: number,
  remaining: number,
  resetAt: time,
  windowExpired: flag,
  limit: number,
}
export const rateReset: Shape = { key: text, reset: flag }
export const deletedInbox: Shape = { deleted: flag }
export const received: Shape = { received: flag }

/** The envelope of every list under /v1. */
export function page(shape: Shape): Shape {
  return { items: listOf(shape), next_cursor: orNull(text) }
}

/** True when this text holds a key or a signing secret in clear. */
export function hasSecret(body: string): boolean {
  const prefixes = Object.values(key_prefixes).join('|')
  return new RegExp(`(${prefixes})[0-9A-Za-z_-]{16,}|"whsec_[A-Za-z0-9+/]{20,}`).test(body)
}
