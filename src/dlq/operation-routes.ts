// /v1/dlq/redrive, /v1/dlq/discard and /v1/dlq/operations

import { type Static, Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { CliCommand } from '../contract/clients.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageOfIds, pageRequest, pageUpTo } from '../contract/page.ts'
import { type Context, Reply, route } from '../contract/route.ts'
import {
  idParam,
  label_characters_max,
  Nullable,
  Page,
  PageQuery,
  Part,
  partNamed,
  Shape,
  sharing,
  Text,
  Time,
} from '../contract/schemas.ts'
import { deadlineTime } from '../contract/stopped.ts'
import { instantsOf } from './filter.ts'
import { type DlqStatus, sources, statuses } from './item.ts'
import {
  type OperationItem,
  type OperationRow,
  operation_items_max,
  operation_statuses,
  per_second_max,
  per_second_min,
  type Settings,
  settingsOf,
  taken,
  type Verb,
  verbs,
} from './operation.ts'
import * as operations from './operation-service.ts'
import { tag } from './shapes.ts'

const id = idParam('The operation, dop_….')
const id_characters_max = limit(
  'dlq.filter_id',
  64,
  'characters',
  'An id in the filter of an operation on dead letters. Past it 400.',
)

/** A member that there is not is an issue: a misspelt filter would take everything. */
function filterOf(verb: Verb) {
  const allowed: readonly [DlqStatus, ...DlqStatus[]] = taken[verb]
  return Type.Object(
    {
      status: Type.Optional(Type.Enum([...allowed])),
      source: Type.Optional(Type.Enum([...sources])),
      source_id: Type.Optional(Text(id_characters_max, 'The schedule or checkpoint that it came from.')),
      cause: Type.Optional(Text(label_characters_max, 'The exact cause.')),
      workflow_id: Type.Optional(Text(label_characters_max, 'The exact workflow.')),
      from: Type.Optional(Time('Captured from this instant on.')),
      to: Type.Optional(Time('Captured before this instant.')),
      ids: Type.Optional(
        Type.Array(Type.String({ maxLength: id_characters_max }), {
          maxItems: operation_items_max,
          description: 'Only these, in whatever status they are unless `status` is given.',
        }),
      ),
    },
    {
      ...partNamed(`DeadLetter${verb === 'redrive' ? 'Redrive' : 'Discard'}Filter`, {
        of: 'DeadLetterFilter',
        about: 'Which dead letters; {} means every failed one.',
        shared: 'Which dead letters; {} means every failed one.',
      }),
      additionalProperties: false,
      examples: [{ cause: 'card declined' }],
    },
  )
}

const OperationFilter = Part('DeadLetterOperationFilter', 'The dead letters that an operation is for.', {
  status: Nullable(Type.Enum([...statuses])),
  source: Nullable(Type.Enum([...sources])),
  source_id: Nullable(Type.String()),
  cause: Nullable(Type.String()),
  workflow_id: Nullable(Type.String()),
  from: Nullable(Time('Captured from this instant on.')),
  to: Nullable(Time('Captured before this instant.')),
  ids_count: Nullable(Type.Integer({ description: 'How many ids were named; null when none were.' })),
})

const Operation = Shape(
  'DeadLetterOperation',
  'A redrive or discard of many dead letters, with how far it is.',
  {
    id: Type.String(),
    verb: Type.Enum(verbs),
    status: Type.Enum([...operation_statuses]),
    filter: OperationFilter,
    matched: Type.Integer({ description: 'Dead letters that matched when it began.' }),
    done: Type.Integer(),
    failed: Type.Integer({ description: 'Those that could not be sent again.' }),
    skipped: Type.Integer({
      description: 'Those that were claimed, or no longer matched, when their turn came.',
    }),
    max: Type.Integer(),
    per_second: Nullable(Type.Number({ description: 'Null: as fast as is fair.' })),
    more: Type.Boolean({
      description: 'True when further dead letters may match: `max` was reached, or the search ended early.',
    }),
    looked_until: Nullable(
      Time(
        'Set when the search ended early, at items captured then: pass it as `from` to let the next operation continue there. Null when there were no further items, or `max` was reached.',
      ),
    ),
    waiting_for: Nullable(
      Type.String({ description: 'The quota that it waits for; it continues once there is room.' }),
    ),
    created_at: Time('When it began.'),
    updated_at: Time('When it last changed.'),
    finished_at: Nullable(Time('When it succeeded or was cancelled.')),
  },
)

const OperationItemShape = Shape(
  'DeadLetterOperationItem',
  'One dead letter of an operation, with its outcome.',
  {
    id: Type.String({ description: 'The dead letter.' }),
    outcome: Type.Enum(['waiting', 'done', 'skipped', 'failed']),
    code: Nullable(Type.String({ description: 'The error code of one that was skipped or has failed.' })),
    redriven_as: Nullable(
      Type.String({ description: 'The schedule, or the checkpoint, that is sent again.' }),
    ),
  },
)

function operationOf(row: OperationRow) {
  const { filter, ids_count, max, per_second } = settingsOf(row)
  return {
    id: row.id,
    verb: row.verb,
    status: row.status,
    filter: {
      status: filter.status ?? null,
      source: filter.source ?? null,
      source_id: filter.source_id ?? null,
      cause: filter.cause ?? null,
      workflow_id: filter.workflow_id ?? null,
      from: isoOrNull(filter.from ?? null),
      to: isoOrNull(filter.to ?? null),
      ids_count,
    },
    matched: row.matched,
    done: row.done,
    failed: row.failed,
    skipped: row.skipped,
    max,
    per_second,
    more: row.more === 1,
    looked_until: isoOrNull(row.looked_until),
    waiting_for: row.waiting_for,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
    finished_at: isoOrNull(row.finished_at),
  }
}

const Matched = Shape('MatchedDeadLetters', 'The answer of a dry run: what an operation would take.', {
  matched: Type.Integer({ description: 'Dead letters that an operation would take, `max` at most.' }),
  looked_until: Type.Optional(
    Time(
      'Present when the search ended early, at items captured then: pass it as `from` to count those that follow.',
    ),
  ),
})

export const redriveItems = starting('redrive', {
  summary: 'Send many items again',
  description:
    'Redrives the failed items that match, or with `status` the archived ones, oldest first. Returns at once; the operation runs in the background, and waits while a quota is full. With `dry_run` it only counts.',
  name: 'dlq.redriveMany',
  cli: {
    usage: 'dlq redrive-many',
    about: 'Send the dead letters that match again, oldest first',
    examples: [
      'waystation dlq redrive-many --cause "status 503" --dry-run',
      'waystation dlq redrive-many --source schedule --per-second 5 --wait',
      'waystation dlq redrive-many --all',
    ],
  },
})

export const discardItems = starting('discard', {
  summary: 'Archive many failed items',
  description:
    'Archives the failed items that match, oldest first. Returns at once; the operation runs in the background. With `dry_run` it only counts.',
  name: 'dlq.discardMany',
  cli: {
    usage: 'dlq discard-many',
    about: 'Archive the failed dead letters that match, oldest first',
    examples: [
      'waystation dlq discard-many --cause "card declined" --dry-run',
      'waystation dlq discard-many --cause "card declined" --per-second 20 --wait',
      'waystation dlq discard-many --all',
    ],
  },
})

interface Texts {
  summary: string
  description: string
  /** The method of the SDK. */
  name: string
  cli: CliCommand
}

function starting(verb: Verb, { name, cli, ...about }: Texts) {
  return route({
    group: v1,
    method: 'POST',
    path: `/v1/dlq/${verb}`,
    tag,
    ...about,
    sdk: { name },
    cli: {
      ...cli,
      options: { filter: false, per_second: ['--per-second <n>', 'how many a second', 'number'] },
    },
    auth: ['agent', 'admin'],
    body: bodyOf(verb),
    status: 202,
    replies: { 202: { body: Operation }, 200: { body: Matched, description: 'With `dry_run`.' } },
    emits: ['dlq_operation.created', 'dlq_operation.succeeded'],
    errors: ['QUOTA_EXCEEDED', 'TOO_MANY_OPERATIONS'],
    async prepare(context, { body }) {
      const settings = settingsFrom(body)
      return { settings, matched: await matchFor(context, settings, body.filter.ids ?? null) }
    },
    async create(tx, { caller, dependencies }, { body }, { settings, matched }) {
      if (body.dry_run === true) return new Reply(200, countOf(matched))
      return operationOf(await operations.start(tx, caller, dependencies, verb, settings, matched))
    },
  })
}

function bodyOf(verb: Verb) {
  return Type.Object(
    {
      filter: filterOf(verb),
      max: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: operation_items_max,
          description: 'How many at most; default 5,000.',
        }),
      ),
      per_second: Type.Optional(
        Type.Number({
          minimum: per_second_min,
          maximum: per_second_max,
          description: 'How many a second; default as fast as is fair.',
        }),
      ),
      dry_run: Type.Optional(Type.Boolean({ description: 'Only count those that match.' })),
    },
    sharing('DeadLetterOperationRequest', 'The dead letters that are taken, how many, and how fast.'),
  )
}

function countOf({ ids, looked_until }: operations.Matched) {
  return { matched: ids.length, ...(looked_until !== null && { looked_until: iso(looked_until) }) }
}

type StartBody = Static<ReturnType<typeof bodyOf>>

/** The status is `failed` unless it is given, or items are named. */
function settingsFrom({ filter: { from, to, ids, ...filter }, max, per_second }: StartBody): Settings {
  return {
    filter: { ...(ids === undefined && { status: 'failed' }), ...filter, ...instantsOf({ from, to }) },
    ids_count: ids?.length ?? null,
    max: max ?? operation_items_max,
    per_second: per_second ?? null,
  }
}

/** One look of a tenant's at a time takes the time of others no more than its share. */
function matchFor(
  { db, caller, dependencies, now }: Context<AdminCaller | AgentCaller>,
  { filter, max }: Settings,
  ids: string[] | null,
) {
  return dependencies.shared.semaphore.run(`dlq ${caller.tenant_id}`, () =>
    operations.match(db, caller.tenant_id, { filter, ids, max }, deadlineTime(caller, now)),
  )
}

export const listOperations = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq/operations',
  tag,
  summary: 'List operations on many dead letters, newest first',
  description: 'Those that are running, and those that ended within the last 7 days.',
  sdk: { name: 'dlq.operations' },
  cli: {
    usage: 'operation list',
    group: 'Operations on many dead letters',
    examples: ['waystation operation list'],
    columns: ['id', 'verb', 'status', 'matched', 'done', 'failed', 'skipped', 'created_at', 'finished_at'],
  },
  auth: ['agent', 'admin'],
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(Operation) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const rows = await operations.list(context.db, context.caller.tenant_id, pageOfIds(request))
    return pageOf(context, request, { rows, itemOf: operationOf, positionOf: (row) => [row.id] })
  },
})

export const getOperation = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq/operations/:id',
  tag,
  summary: 'Read the progress of an operation',
  description: 'Poll it until its status is no longer `running`.',
  sdk: { name: 'dlq.operation' },
  cli: { usage: 'operation get <id>', about: 'Show the progress of an operation on many dead letters' },
  auth: ['agent', 'admin'],
  params: { id },
  replies: { 200: { body: Operation } },
  errors: ['OPERATION_NOT_FOUND'],
  async handle({ db, caller }, { params }) {
    return operationOf(await operations.read(db, caller.tenant_id, params.id))
  },
})

export const cancelOperation = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/operations/:id/cancel',
  tag,
  summary: 'Cancel an operation; items already handled stay as they are',
  description: 'Cancelling an operation that has ended changes nothing.',
  sdk: { name: 'dlq.cancelOperation', retry: { safe: true, why: 'one that has ended answers the same' } },
  cli: { usage: 'operation cancel <id>', about: 'Cancel an operation on many dead letters' },
  auth: ['agent', 'admin'],
  params: { id },
  replies: { 200: { body: Operation } },
  emits: ['dlq_operation.cancelled'],
  errors: ['OPERATION_NOT_FOUND'],
  async handle({ db, caller }, { params }) {
    return operationOf(await operations.cancel(db, caller, params.id))
  },
})

export const listOperationItems = route({
  group: v1,
  method: 'GET',
  path: '/v1/dlq/operations/:id/items',
  tag,
  summary: 'List the items of an operation with their outcomes, in the order they are handled',
  description: 'An item waits, is done, was skipped, or has failed with an error code.',
  sdk: { name: 'dlq.operationItems' },
  cli: { usage: 'operation items <id>', columns: ['id', 'outcome', 'code', 'redriven_as'] },
  auth: ['agent', 'admin'],
  params: { id },
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(OperationItemShape) } },
  errors: ['OPERATION_NOT_FOUND'],
  async handle(context, { params, query }) {
    const request = pageRequest(context, query)
    const from = request.after ? Number(request.after[0]) : 0
    const { tenant_id } = context.caller
    const found = await operations.items(context.db, tenant_id, params.id, from, request.rows_max - 1)
    const items: OperationItem[] = found.items
    return pageUpTo(context, items, found.next === null ? null : [found.next])
  },
})
