// An event: what it says, and who or what caused it. No imports from db or http.

import { type Static, type TObject, type TProperties, Type } from 'typebox'
import { iso, type Millis } from '../base/clock.ts'
import type { Caller } from './caller.ts'
import { Nullable, Part, RawJson, Shape, Time } from './schemas.ts'

/** The cause of a change. */
export interface Cause {
  /** `admin`, an agent's id, `approval_key:<id>`; `service` for what the clock causes, `operator` for the operator's commands. */
  actor: string
  agent_id: string | null
  request_id: string | null
  /** The workflow of the request; a thing that belongs to a workflow of its own keeps that. */
  workflow_id: string | null
}

export const service_cause: Cause = { actor: 'service', agent_id: null, request_id: null, workflow_id: null }
export const operator_cause: Cause = { ...service_cause, actor: 'operator' }

export function causeOf(caller: Caller): Cause {
  const { request_id, workflow_id } = caller
  if (caller.kind === 'agent') {
    const { agent_id } = caller
    return { actor: agent_id, agent_id, request_id, workflow_id }
  }
  const actor = caller.kind === 'admin' ? 'admin' : `approval_key:${caller.approval_key_id}`
  return { actor, agent_id: null, request_id, workflow_id }
}

/** A caller without a key: at the sign-up, or the sender of a message. */
export function anonymousCause(request_id: string): Cause {
  return { actor: 'anonymous', agent_id: null, request_id, workflow_id: null }
}

/** By how much an event changes a count of its workflow. */
type Change = -1 | 0 | 1

export interface Declared<P extends TProperties = TProperties> {
  /** One sentence for the list of events. */
  about: string
  /** The kind of its subject: `schedule`. */
  subject: string
  /** Members of `data`: strings, integers, booleans and nulls. */
  data: P
  /** 1: its workflow waits for one thing more, until an event with -1. Default 0. */
  waiting?: Change
  /** 1: something failed that somebody has to deal with, until an event with -1. Default 0. */
  failing?: Change
}

export interface EventType<P extends TProperties = TProperties> extends Required<Declared<P>> {
  name: string
  /** The names in `data`, sorted, and each as the JSON of `data` has it. */
  members: readonly string[]
  openings: readonly string[]
}

export type EventData<T> = T extends EventType<infer P> ? Static<TObject<P>> : never

/** The kinds of subjects that events are declared of. */
export const subject_kinds = new Set<string>()

/** The types of a feature's events, by name: `schedule.created`. */
export function declareEvents<const D extends Record<string, Declared>>(
  declared: D,
): { [Name in keyof D]: EventType<D[Name]['data']> } {
  const types = Object.entries(declared).map(([name, type]) => {
    const members = Object.keys(type.data).toSorted()
    const openings = members.map((member, i) => `${i === 0 ? '{' : ','}${JSON.stringify(member)}:`)
    subject_kinds.add(type.subject)
    return [name, { waiting: 0, failing: 0, ...type, name, members, openings }]
  })
  return Object.fromEntries(types) as never
}

export interface EventRow {
  seq: number
  workflow_seq: number | null
  id: string
  type: string
  subject_kind: string
  subject_id: string
  workflow_id: string | null
  /** The only agent that may see it; null: all may. */
  private_to: string | null
  agent_id: string | null
  actor: string
  request_id: string | null
  at: Millis
  /** Canonical JSON. */
  data: string
}

export const JournalEvent = Shape('JournalEvent', 'A change that happened, as the journal keeps it.', {
  id: Type.String({ description: 'evt_…' }),
  seq: Type.Integer({ description: 'Its number: starts at 1, rises by 1, without gaps, per tenant.' }),
  type: Type.String({ description: 'Such as schedule.fired.' }),
  subject: Part('EventSubject', 'The thing that an event is about.', {
    kind: Type.String(),
    id: Type.String(),
  }),
  workflow_id: Nullable(Type.String()),
  workflow_seq: Nullable(
    Type.Integer({ description: 'Its number in the workflow; null outside a workflow.' }),
  ),
  agent_id: Nullable(Type.String({ description: 'The agent whose call caused it.' })),
  actor: Type.String({
    description: 'admin, the id of an agent, approval_key:…, anonymous, operator, or service for the clock.',
  }),
  request_id: Nullable(Type.String()),
  at: Time('When it happened.'),
  data: Type.Unsafe<object>({ type: 'object', description: 'Members depend on the type; never a payload.' }),
})

/** An event as the API shows it. */
export function eventOf(row: EventRow) {
  return {
    id: row.id,
    seq: row.seq,
    type: row.type,
    subject: { kind: row.subject_kind, id: row.subject_id },
    workflow_id: row.workflow_id,
    workflow_seq: row.workflow_seq,
    agent_id: row.agent_id,
    actor: row.actor,
    request_id: row.request_id,
    at: iso(row.at),
    data: new RawJson(row.data),
  }
}

/** The same as canonical JSON (RFC 8785): members sorted, no white space. What is sealed. */
export function canonicalText(row: EventRow): string {
  const text = JSON.stringify
  const subject = `{"id":${text(row.subject_id)},"kind":${text(row.subject_kind)}}`
  return `{"actor":${text(row.actor)},"agent_id":${text(row.agent_id)},"at":"${iso(row.at)}","data":${row.data},"id":${text(row.id)},"request_id":${text(row.request_id)},"seq":${row.seq},"subject":${subject},"type":${text(row.type)},"workflow_id":${text(row.workflow_id)},"workflow_seq":${row.workflow_seq}}`
}

/** The canonical JSON of an event's data. Throws for a member that is missing or was not declared. */
export function dataText(type: EventType, data: Readonly<Record<string, unknown>>): string {
  const { members, openings, name } = type
  if (Object.keys(data).length !== members.length) throw new Error(`${name} has other data than ${members}`)
  if (members.length === 0) return '{}'
  let text = ''
  for (let i = 0; i < members.length; i++) {
    const value = data[members[i]!]
    if (value === undefined) throw new Error(`${name} has no ${members[i]}`)
    text += openings[i]! + (Number.isSafeInteger(value) ? value : JSON.stringify(value))
  }
  return `${text}}`
}

const events_mark = '/events'

/** The last key that was made: the events of a batch are mostly of one tenant. */
let last = { tenant_id: '', key: events_mark }

/** The notifier's key for requests that wait for any event of the tenant. */
export function eventsKey(tenant_id: string): string {
  if (tenant_id !== last.tenant_id) last = { tenant_id, key: `${tenant_id}${events_mark}` }
  return last.key
}

/** The tenant of a key of `eventsKey`; null for another key. */
export function tenantOfEvents(key: string): string | null {
  if (key === last.key) return last.tenant_id
  return key.endsWith(events_mark) ? key.slice(0, -events_mark.length) : null
}
