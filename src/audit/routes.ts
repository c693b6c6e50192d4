// /v1/audit

import { Type } from 'typebox'
import * as agents from '../agents/service.ts'
import { iso, parseTime } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { looked_max, pageOf, pageRequest } from '../contract/page.ts'
import { type Param, route } from '../contract/route.ts'
import {
  AnyJsonObject,
  action_characters_max,
  idParam,
  Json,
  label_characters_max,
  metadata_bytes_max,
  Nullable,
  Page,
  PageQuery,
  RawJson,
  Shape,
  Text,
  Time,
} from '../contract/schemas.ts'
import { callerFor, WorkflowId, workflowOf } from '../contract/workflow.ts'
import { filter_names } from './filter-store.ts'
import { list, type Range } from './list-store.ts'
import * as audit from './service.ts'
import type { EntryRow } from './store.ts'
import { valuesOf } from './values-store.ts'

const tag = 'Audit log'

const Entry = Shape('AuditEntry', 'An entry of the audit log, which never changes.', {
  id: Type.String(),
  seq: Type.Integer({ description: 'Starts at 1, rises by 1, without gaps, per tenant.' }),
  action: Type.String(),
  workflow_id: Nullable(Type.String()),
  actor: Type.String(),
  metadata: Json('The exact text that was sent, or null.'),
  agent_id: Nullable(
    Type.String({ description: 'The agent whose key appended it; null for the admin key.' }),
  ),
  request_id: Type.String(),
  created_at: Time('Server time; never earlier than that of the previous entry.'),
})

export const appendEntry = route({
  group: v1,
  method: 'POST',
  path: '/v1/audit',
  tag,
  summary: 'Append an entry',
  description: 'Entries are numbered without gaps and never change. `metadata` is kept as the exact text.',
  sdk: { name: 'audit.append' },
  cli: {
    usage: 'audit append <action> [metadata]',
    about: 'Append an entry, with metadata as a JSON object',
    group: 'The audit log: append and read',
    examples: [`waystation audit append import.finished '{"rows": 42}' --workflow night-17`],
    options: { actor: ['--actor <name>', 'who did it; default the agent'] },
  },
  auth: ['agent', 'admin'],
  body: Type.Object({
    action: Text(action_characters_max, 'The action that was done.', { minLength: 1 }),
    workflow_id: Type.Optional(WorkflowId),
    actor: Type.Optional(Text(label_characters_max, "The actor; default the agent's id, or admin.")),
    metadata: Type.Optional(
      AnyJsonObject(metadata_bytes_max, 'At most 64 KiB; comes back as the same text.'),
    ),
  }),
  replies: { 201: { body: Entry } },
  emits: ['audit.appended'],
  errors: ['QUOTA_EXCEEDED'],
  row: 'audit head',
  batch: true,
  async create(tx, { caller, dependencies }, { body }) {
    const entry = await audit.append(tx, callerFor(caller, body.workflow_id), dependencies.plans, {
      action: body.action,
      workflow_id: workflowOf(body.workflow_id, caller),
      actor: body.actor ?? null,
      metadata: body.metadata?.text ?? null,
    })
    return entryOf(entry)
  },
})

export const listEntries = route({
  group: v1,
  method: 'GET',
  path: '/v1/audit',
  tag,
  summary: 'List entries, newest first',
  description:
    'All given filters must match. A page may be short, or even empty, before the end: continue while there is a `next_cursor`.',
  sdk: { name: 'audit.list' },
  cli: {
    usage: 'audit list',
    examples: [
      'waystation audit list --limit 10',
      'waystation audit list --actor worker-1 --from 2026-01-01T00:00:00Z --all --json | head -1',
    ],
    options: {
      workflow_id: ['--workflow <id>', 'only of this workflow'],
      action: ['--action <action>', 'only this action'],
      action_prefix: ['--action-prefix <text>', 'only actions with this prefix'],
      actor: ['--actor <name>', 'only by this actor'],
      agent_id: ['--agent <id>', 'only what this agent appended'],
      from: ['--from <time>', 'not before this time, RFC 3339'],
      to: ['--to <time>', 'only before this time, RFC 3339'],
    },
    columns: ['seq', 'created_at', 'actor', 'action', 'workflow_id', 'metadata', 'id'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({
    ...PageQuery,
    workflow_id: Type.Optional(Type.String()),
    action: Type.Optional(Type.String()),
    action_prefix: Type.Optional(Type.String({ description: 'Actions that begin with this text.' })),
    actor: Type.Optional(Type.String()),
    agent_id: Type.Optional(Type.String({ description: 'Entries that this agent appended.' })),
    from: Type.Optional(Time('Entries from this instant on.')),
    to: Type.Optional(Time('Entries before this instant.')),
  }),
  replies: { 200: { body: Page(Entry) } },
  errors: [],
  async handle(context, { query }) {
    const { limit: _, cursor, from, to, ...filters } = query
    const request = pageRequest(context, query)
    const range: Range = { filters }
    if (from !== undefined) range.from = parseTime(from)!
    if (to !== undefined) range.to = parseTime(to)!
    if (request.after) range.before_seq = Number(request.after[0])
    const { tenant_id } = context.caller
    const { rows, reached } = await list(context.db, tenant_id, range, { ...request, looked_max })
    return pageOf(context, request, {
      rows,
      itemOf: entryOf,
      positionOf: (row) => [row.seq],
      reached: reached === null ? null : [reached],
    })
  },
})

const field_names = [...filter_names, 'agent_id'] as const

const field: Param = {
  schema: Type.Enum([...field_names], { description: 'The filter to suggest texts for.' }),
  read: (decoded) => field_names.find((name) => name === decoded) ?? null,
  message: `must be one of ${field_names.join(', ')}`,
}

export const suggestEntries = route({
  group: v1,
  method: 'GET',
  path: '/v1/audit/suggestions/:field',
  tag,
  summary: 'List the texts that a field has in the log, in bytewise order',
  description:
    'Values to filter the list by, each once, however many entries have it. For agent_id: the existing agents.',
  sdk: { name: 'audit.suggestions' },
  cli: {
    usage: 'audit suggestions <field>',
    about: 'List the values that a filter of the log can have',
    examples: ['waystation audit suggestions action --prefix order.'],
    options: { prefix: ['--prefix <text>', 'only those that begin with this'] },
    columns: ['value'],
  },
  auth: ['agent', 'admin'],
  params: { field },
  query: Type.Object({
    ...PageQuery,
    prefix: Type.Optional(Type.String({ description: 'Only texts that begin with this one.' })),
  }),
  replies: {
    200: {
      body: Page(Shape('AuditSuggestion', 'A text that a field has in the log.', { value: Type.String() })),
    },
  },
  errors: [],
  async handle(context, { params, query: { prefix = '', ...query } }) {
    const request = pageRequest(context, query)
    const { tenant_id } = context.caller
    const place = { prefix, after: request.after ? String(request.after[0]) : null }
    const name = params.field as (typeof field_names)[number]
    const values =
      name === 'agent_id'
        ? await agents.idsFrom(context.db, tenant_id, place, request.rows_max)
        : await valuesOf(context.db, tenant_id, name, place, request.rows_max)
    const rows = values.map((value) => ({ value }))
    return pageOf(context, request, { rows, itemOf: (row) => row, positionOf: ({ value }) => [value] })
  },
})

export const getEntry = route({
  group: v1,
  method: 'GET',
  path: '/v1/audit/:id',
  tag,
  summary: 'Read an entry',
  description: 'As it was appended: entries never change.',
  sdk: { name: 'audit.get' },
  cli: { usage: 'audit get <id>', examples: ['waystation audit get log_01m7yjrz37hxnv52px0106nehd'] },
  auth: ['agent', 'admin'],
  params: { id: idParam('The entry, log_….') },
  replies: { 200: { body: Entry } },
  errors: ['AUDIT_ENTRY_NOT_FOUND'],
  async handle({ db, caller }, { params }) {
    return entryOf(await audit.read(db, caller.tenant_id, params.id))
  },
})

function entryOf(row: EntryRow) {
  return {
    id: row.id,
    seq: row.seq,
    action: row.action,
    workflow_id: row.workflow_id,
    actor: row.actor,
    metadata: row.metadata === null ? null : new RawJson(row.metadata),
    agent_id: row.agent_id,
    request_id: row.request_id,
    created_at: iso(row.created_at),
  }
}
