// Many tenants with many rows, and every named statement with parameters that a small tenant, a large one, a stranger
// and a hostile caller would bring: what a statement reads depends on its limits alone.

import { day_ms, hour_ms } from '../../src/base/clock.ts'
import { limits } from '../../src/base/limit.ts'
import { type Params, type Statement, statements } from '../../src/db/db.ts'
import { expired_max } from '../../src/dlq/store.ts'
import { wake_rows_max } from '../../src/jobs/wake-store.ts'
import '../../src/features.ts'
import '../../src/maintenance/purge.ts'
import { effectSeeds } from './plan-effects.ts'

export interface Scale {
  tenants: number
  jobs: number
  keys: number
  entries: number
  idempotency_keys: number
  /** Rows of each other table. */
  others: number
}

export const full: Scale = {
  ...{ tenants: 10_000, jobs: 2_000_000, keys: 1_000_000, entries: 1_000_000, idempotency_keys: 300_000 },
  others: 200_000,
}

export function partOf(scale: Scale, part: number): Scale {
  return Object.fromEntries(
    Object.entries(scale).map(([name, rows]) => [name, Math.ceil(rows * part)]),
  ) as unknown as Scale
}

/** For the tests: the statistics say that it is all there. */
export const hundredth = partOf(full, 0.01)

/** Half of all rows are this tenant's. */
export const big = 'ten_big'
/** A tenant without any other row. */
const bare = 'ten_bare'
/** One of the many others. */
const small = 'ten_100007'
const first_id = 10_000_000
/** The most rows that a statement chooses at once; it may read a chosen row again, and its neighbours. */
const rows_max = 20
/** The most rows that a statement may read, unless `reads` says otherwise. */
export const reads_max = 16 + 6 * rows_max

const merged_max = limits.get('audit.merged_actions')!.value

/** One text for both engines, like those of the service. */
export function seeds(scale: Scale, now: number): string[] {
  const own = `'ten_' || cast(100000 + (i / 2) % ${scale.tenants} as text)`
  const tenant = `case when i % 2 = 0 then '${big}' else ${own} end`
  const id = (prefix: string) => `'${prefix}_' || cast(${first_id} + i as text)`
  const fill = (table: string, count: number, values: Record<string, string | number | null>) => `
    insert into ${table} (${Object.keys(values).join(', ')})
    with recursive numbers (i) as (select 0 union all select i + 1 from numbers where i < ${count - 1})
    select ${Object.values(values)
      .map((value) => (value === null ? 'null' : value))
      .join(', ')} from numbers`
  const past = `${now - 1_000_000} + i % 900000`
  const future = `${now + hour_ms} + i`
  const { others } = scale
  return [
    ...tenantSeeds(scale, now, fill),
    fill('tenant_lookups', others, { value: id('h'), kind: `'key'`, tenant_id: tenant }),
    fill('agents', others, { tenant_id: tenant, agent_id: id('agt'), created_at: past }),
    fill('credentials', others, {
      ...{ tenant_id: tenant, kind: `'agent'`, subject: id('agt'), hash: id('h'), last_four: `'1234'` },
      ...{ expires_at: `case when i % 10 = 9 then ${past} end`, created_at: past },
    }),
    fill('credentials', others, {
      ...{ tenant_id: tenant, kind: `'approval'`, subject: id('apk'), hash: id('ha'), last_four: `'1234'` },
      created_at: past,
    }),
    fill('approval_keys', others, { tenant_id: tenant, approval_key_id: id('apk'), created_at: past }),
    fill('usage_hours', others, {
      ...{ tenant_id: tenant, hour: `(${now} / ${hour_ms}) - i / 2`, feature: `'kv'`, calls: 1, failures: 0 },
    }),
    fill('kv_entries', scale.keys, {
      ...{ tenant_id: tenant, namespace: `'ns' || cast(i % 7 as text)`, key: id('k'), version: 1 },
      ...{ created_version: 1, counted: `case when i % 10 = 1 then 0 else 1 end`, updated_at: past },
      expires_at: `case when i % 10 < 3 then ${past} when i % 10 = 4 then ${future} end`,
      value: `case when i % 10 = 1 then null else '1' end`,
    }),
    fill('kv_entries', others, {
      ...{
        tenant_id: tenant,
        namespace: `'__rl'`,
        key: `'__rl:' || cast(${first_id} + i as text)`,
        version: 1,
      },
      ...{ created_version: 1, counted: 1, updated_at: past, expires_at: future, value: `'1'` },
      ...{ rl_window_ms: 60_000, rl_limit: `'10'`, rl_hits: 1, rl_previous: 0, rl_taken: 0 },
    }),
    fill('audit_entries', scale.entries, {
      ...{ tenant_id: tenant, seq: 'i', id: id('log'), action: `'act.' || cast((i / 2) % 40 as text)` },
      ...{ workflow_id: `case when i % 3 = 0 then 'flow' end`, actor: `'one'`, agent_id: `'a'` },
      ...{ request_id: `'r'`, created_at: past },
    }),
    ...effectSeeds(others, { tenant, id, past, future, fill }),
    ...letterSeeds(others, { tenant, id, past, future, fill }),
    fill('schedules', others, {
      ...{ tenant_id: tenant, id: id('sch'), status: `case when i % 4 < 2 then 'pending' else 'fired' end` },
      ...{ callback_url: `'http://x/'`, fire_at: past, dlq_on_failure: 0, agent_id: `'a'`, attempts: 1 },
      ...{ name: `''`, created_at: past, updated_at: past, callback_payload: `'{}'` },
    }),
    fill('checkpoint_votes', others, {
      ...{ tenant_id: tenant, checkpoint_id: id('chk'), voter: id('apk'), decision: `'approved'`, counts: 1 },
      ...{ edited: 0, uses: 1, at: past },
    }),
    fill('checkpoint_comments', others, {
      ...{ tenant_id: tenant, checkpoint_id: id('chk'), id: id('cmt'), author: `'a'`, at: past, text: `'t'` },
    }),
    fill('checkpoints', others, {
      ...{
        tenant_id: tenant,
        id: id('chk'),
        status: `case when i % 4 < 2 then 'pending' else 'approved' end`,
      },
      ...{ title: `'t'`, callback_url: `'http://x/'`, timeout_action: `'dlq'`, expires_at: future },
      ...{
        agent_id: `'a'`,
        callback_status: `'none'`,
        callback_attempts: 0,
        created_at: past,
        updated_at: past,
      },
    }),
    fill('jobs', scale.jobs, {
      ...{ tenant_id: tenant, kind: `'schedule'`, source_id: id('sch'), event_id: id('evt') },
      ...{ destination: `'d' || cast((i / 2) % 50 as text)`, lease_until: 0, fence: 1, attempts: 0 },
      next_at: `case when i % 20 < 4 then ${past} else ${future} end`,
      ...{
        paused: `case when i % 20 > 17 then 1 else 0 end`,
        starts_at_once: `case when i % 10 = 0 then 1 else 0 end`,
      },
    }),
    fill('attempts', others, {
      ...{
        tenant_id: tenant,
        source: `'schedule'`,
        source_id: `'sch_${first_id}'`,
        seq: 'i',
        event_id: id('evt'),
      },
      ...{ attempt: 1, started_at: past, duration_ms: 1 },
    }),
    fill('inboxes', others, {
      ...{
        tenant_id: tenant,
        id: id('inb'),
        token_hash: id('tok'),
        token: `'t'`,
        label: `''`,
        last_seq: 'i',
      },
      ...{
        counted: `case when i % 10 < 8 then 1 else 0 end`,
        deleted: `case when i % 10 < 8 then 0 else 1 end`,
      },
      expires_at: `case when i % 10 < 2 then ${past} else ${future} end`,
      ...{ clear_at: `case when i % 10 < 9 then ${past} end`, delete_at: past, created_at: past },
    }),
    fill('inbox_messages', others, {
      ...{ tenant_id: `'${big}'`, inbox_id: `'inb_${first_id + 4}'`, seq: 'i', size: 10, id: id('msg') },
      ...{ method: `'POST'`, kind: `'text'`, encoding: `'text'`, source_ip: `''`, content_type: `''` },
      ...{ created_at: past, path: `''`, query: `''`, headers: `'{}'`, body: `'x'` },
    }),
    fill('seal_tiles', others, {
      tenant_id: `'${big}'`,
      level: 'i % 2',
      start: '(i / 2) * 64',
      hashes: `'x'`,
    }),
    fill('seal_checkpoints', others, {
      ...{ tenant_id: tenant, size: 'i', root: `'r'`, note: `'n'`, created_at: past },
    }),
    fill('idempotency_keys', scale.idempotency_keys, {
      ...{ tenant_id: tenant, key_hash: id('h'), fingerprint: `'f'`, status: 200, answer: `'a'` },
      expires_at: `case when i % 10 < 3 then ${past} else ${future} end`,
    }),
  ]
}

type Fill = (table: string, count: number, values: Record<string, string | number | null>) => string

function tenantSeeds({ tenants, others }: Scale, now: number, fill: Fill): string[] {
  const tenant_id = `case when i = ${tenants} then '${big}' else 'ten_' || cast(100000 + i as text) end`
  return [
    fill('tenants', tenants + 1, {
      ...{ tenant_id, name: tenant_id, owner_email: `'o'`, plan: `'pro'` },
      ...{ status: `case when i % 10 = 9 then 'pending_deletion' else 'active' end`, signing_secret: `'s'` },
      ...{ purge_at: `case when i % 10 = 9 then ${now - day_ms} + i end`, created_at: now - 100 * day_ms },
      pause_pending: `case when i % 10 = 9 then 1 else 0 end`,
      kv_events: `case when i % 10 < 2 then 1 else 0 end`,
    }),
    fill('tenants', 1, {
      ...{
        tenant_id: `'${bare}'`,
        name: `'b'`,
        owner_email: `'o'`,
        plan: `'pro'`,
        created_at: 1,
      },
      ...{ status: `'pending_deletion'`, signing_secret: `'s'`, purge_at: now },
    }),
    ...['kv_keys', 'storage_bytes', 'dlq_items', 'agents', 'active_schedules', 'inboxes'].map((quota) =>
      fill('quota_usage', tenants + 1, { tenant_id, quota: `'${quota}'`, used: 1_000, version_floor: 1 }),
    ),
    fill('kv_namespaces', tenants, { tenant_id, namespace: `'ns0'`, created_at: 1 }),
    fill('audit_heads', tenants + 1, { tenant_id, seq: 100_000_000, last_at: now - day_ms }),
    fill('seal_heads', tenants + 1, {
      ...{ tenant_id, size: 100_000, edge: `''` },
      pending_at: `case when i % 10 = 0 then ${now - day_ms} + i end`,
      checkpoint_at: `case when i % 10 < 5 then ${now - day_ms} + i end`,
    }),
    ...['2020-01', '2020-02'].map((month) =>
      fill('api_calls', Math.max(tenants, others / 10), {
        tenant_id: `'ten_' || cast(100000 + i as text)`,
        month: `'${month}'`,
        calls: 1,
      }),
    ),
  ]
}

export interface Parts {
  tenant: string
  id(prefix: string): string
  past: string
  future: string
  fill: Fill
}

/** The oldest quarter of them is locked for long: a claim of the oldest has to get past it. */
function letterSeeds(others: number, { tenant, id, past, future, fill }: Parts): string[] {
  const locked = others / 4
  const status = `case when i < ${locked} then 'claimed' when i % 10 < 5 then 'failed' when i % 10 < 6 then 'claimed'
    when i % 10 < 8 then 'resolved' else 'archived' end`
  return [
    fill('dlq_items', others, {
      ...{ tenant_id: tenant, id: id('dlq'), status, source: `'agent'`, lock_seconds: 300, claims: 0 },
      locked_until: `case when i < ${locked} then ${future} when i % 10 = 5 then ${past} end`,
      ...{ created_at: past, updated_at: past, cause: `'c'`, error: `'e'`, payload: `'{}'` },
      source_id: `case when i % 3 = 0 then 'sch_${first_id}' end`,
    }),
    fill('dlq_operations', others / 10, {
      ...{ tenant_id: tenant, id: id('dop'), verb: `'discard'`, status: `'succeeded'`, matched: 1, done: 1 },
      ...{
        failed: 0,
        skipped: 0,
        more: 0,
        created_at: past,
        updated_at: past,
        finished_at: past,
        settings: `'{}'`,
      },
    }),
    fill('dlq_operation_parts', others / 10, {
      ...{ tenant_id: tenant, operation_id: id('dop'), part: 0, items: `'[]'` },
    }),
  ]
}

/** The first part of the ids of a noun. */
const id_prefixes: Record<string, string> = {
  ...{ dlq: 'dlq', schedules: 'sch', checkpoints: 'chk', inbox: 'inb', audit: 'log', agents: 'agt' },
  ...{ approval_keys: 'apk', effects: 'eff' },
}

export interface Scenario {
  name: string
  params(statement: Statement<unknown>): Params
}

/** Values by the name of a parameter; the others get a value of their type. */
export function scenarios(now: number): Scenario[] {
  const of = (tenant_id: string, place: number, others: Params) => (statement: Statement<unknown>) => ({
    ...common(now),
    ...{
      tenant_id,
      id: idOf(statement, place),
      agent_id: `agt_${first_id + place}`,
      inbox_id: `inb_${first_id + 4}`,
    },
    ...{ source_id: `sch_${first_id + place}`, key: `k_${first_id + place}`, namespace: `ns${place % 7}` },
    ...{
      key_hash: `h_${first_id + place}`,
      hash: `h_${first_id + place}`,
      subject: `agt_${first_id + place}`,
    },
    ...{ token_hash: `tok_${first_id + place}`, approval_key_id: `apk_${first_id + place}`, seq: place },
    ...others,
    ...own(statement, now),
  })
  const from_the_start = { from_id: '', before_id: '~', after_seq: 0, before_seq: 100_000_000 }
  const from_the_end = { from_id: '~', before_id: '', after_seq: 100_000_000, before_seq: 0 }
  return [
    { name: 'a small tenant', params: of(small, 15, from_the_start) },
    { name: 'a large tenant', params: of(big, 14, from_the_start) },
    {
      name: 'a large tenant, in the middle',
      params: of(big, 514, { ...from_the_start, after_seq: 500, from_id: 'dlq_10000500' }),
    },
    { name: 'a large tenant, past the end', params: of(big, 1_999_999, from_the_end) },
    { name: 'a large tenant, empty texts', params: of(big, 14, { ...from_the_start, ...empty_texts }) },
    { name: 'a tenant that is not there', params: of('ten_none', 15, from_the_start) },
  ]
}

const empty_texts: Params = {
  ...{ key: '', namespace: '', action_prefix: '', from_key: '', from_destination: '', action: '', actor: '' },
  ...{ workflow_id: '', cause: '', source_id: '', destination: '', after_tenant_id: '' },
}

function idOf({ name }: Statement<unknown>, place: number): string {
  if (/operation|part/.test(name)) return `dop_${first_id + place}`
  return `${id_prefixes[name.split('.')[0]!] ?? 'x'}_${first_id + place}`
}

function common(now: number): Params {
  return {
    ...{
      now,
      rows_max,
      bytes_max: 4_194_304,
      looked_max: rows_max,
      scanned_max: rows_max,
      total_max: rows_max,
    },
    ...{
      walked_max: rows_max,
      last_place: rows_max,
      skipped: 0,
      values_max: merged_max,
      until: now + day_ms,
    },
    ...{
      expired_before: now - 1_000,
      ended_before: now - 1_000,
      before: now,
      month: '2020-03',
      expired_after: now,
    },
    ...{ goes_on: 0, frozen_ms: 1_000, frozen_at: now - 1_000, due_after: now - 1_000, by_ms: 1_000 },
    ...{ latest_at: now + day_ms, last_instant: now + day_ms, after_id: '', moved_to: 'dlq_items dlq_1' },
    ...{ reason: 'none', mode: 'read', last_moved_id: '', moved_now: now },
    ...{ dropped_up_to: rows_max, at: now, due_at: now, next_at: now, later_at: now, again_at: now },
    ...{
      action: 'act.1',
      actor: 'one',
      workflow_id: 'flow',
      action_prefix: 'act',
      prefix_characters: 3,
      first: 'act',
    },
    ...{ has_action: 1, has_actor: 1, has_workflow_id: 1, has_agent_id: 1, any_source: 1, any_cause: 1 },
    ...{
      any_workflow_id: 1,
      any_source_id: 1,
      source: 'schedule',
      cause: 'c',
      status: 'fired',
      kind: 'schedule',
    },
    ...{ from_key: '__rl:', end_key: '__rl;', from_destination: '', destination: 'd1', after_tenant_id: '' },
    ...{
      lease_until: now + 30_000,
      quota: 'kv_keys',
      created_at: now,
      locked_until: now + 1_000,
      plan: 'pro',
    },
    ...{ expires_at: now + 1_000, operation_id: 'dop_10000014', part: 0, verb: 'discard', from_hour: 0 },
    ...{
      purge_at: now + day_ms,
      hour: Math.floor(now / hour_ms),
      feature: 'kv',
      window_ms: 60_000,
      ceiling: 1_000_000,
    },
    ...{
      callback_status: 'pending',
      timeout_action: 'dlq',
      method: 'POST',
      encoding: 'text',
      forward_status: 'pending',
    },
    ...{ counted: 1, first_seq: 1, last_seq: rows_max, delete_at: now, clear_at: now, fence: 1, version: 1 },
    ...{
      to_hour: Math.floor(now / hour_ms) + 1,
      before_id: '~',
      limit: '10',
      value: 'none',
      name: 'none',
    },
  }
}

/** Values that one statement needs otherwise: rows that do not exist yet, and places that other statements have found. */
function own({ name, params }: Statement<unknown>, now: number): Params {
  const prefix = name.startsWith('jobs') ? 'sch' : 'dlq'
  const ids = params.filter((param) => /^(source_)?id_[a-z]+$/.test(param))
  return {
    ...Object.fromEntries(ids.map((param, i) => [param, `${prefix}_${first_id + 2 * i}`])),
    ...(name.startsWith('credentials.') ? { kind: 'agent' } : {}),
    ...(makes.test(name) ? unused : {}),
    ...(name in of_tenants ? { tenant_id: of_tenants[name]! } : {}),
    ...(name === 'jobs.wake_idle'
      ? { idle_at: now, first_id: `sch_${first_id}`, last_id: `sch_${first_id + 2 * wake_rows_max}` }
      : {}),
    // The timeouts of twenty checkpoints.
    ...(name === 'jobs.move_due' ? { after_id: 'sch_10000014', last_id: 'sch_10000034' } : {}),
    // The look before it has found how far it may go.
    ...(/_filtered$/.test(name) ? { after_seq: 1_000, before_seq: 1_000 + rows_max } : {}),
    ...(/^dlq\.(match_|list_.*_matching)/.test(name) ? looked_at : {}),
    // Of these a fifth is due: as many as the look has found.
    ...(name.startsWith('effects.') ? { due_until: now - 1_000_000 + 5 * rows_max } : {}),
    ...(name === 'usage.list' ? { from_hour: Math.floor(now / hour_ms) - rows_max } : {}),
    ...(/^jobs\.(pause|pause_waiting|resume|resume_going_on)$/.test(name)
      ? { next_at: now - 1_000_000 + 100 }
      : {}),
    ...(name.startsWith('effects.') ? of_effects : {}),
    ...(name === 'checkpoints.cast_vote' ? { decision: 'approved' } : {}),
    ...(name === 'inbox.add' ? { kind: 'text' } : {}),
    ...(name === 'subscriptions.insert' ? { status: 'active', format: 'standard' } : {}),
    ...(name.startsWith('lookups.') ? { kind: 'key' } : {}),
    ...(name === 'inbox.forwarded' ? { status: 'delivered' } : {}),
    ...(name === 'idempotency.keep' ? { status: 200 } : {}),
    ...(name === 'dlq.insert_operation' ? { status: 'succeeded' } : {}),
  }
}

const of_effects: Params = {
  ...{ status: 'succeeded', type: 't7', any_type: '*', on_unknown: 'hold', approval: 'required', after: '' },
  ...{ lease_ms: 1_000, more_bytes: 0, kept_ms: 1_000, kept_bytes: 2, policies_known: 0, payload_hash: '' },
}

/** Of dead letters the look before has found where the next twenty end, every other one another tenant's. */
const looked_at: Params = {
  from_id: `dlq_${first_id + 1_000}`,
  before_id: `dlq_${first_id + 1_000 + 2 * rows_max}`,
}

const makes = /\.(insert|insert_operation|insert_part|enqueue|log_attempt|add)$/
const unused: Params = {
  ...{ id: 'new', agent_id: 'new', source_id: 'new', approval_key_id: 'new', hash: 'new', token_hash: 'new' },
  ...{ seq: 900_000_000, source: 'schedule' },
}

/** A row refers to its tenant, and a tenant's first row is there once. */
const of_tenants: Record<string, string> = {
  ...{ 'tenants.insert': 'ten_new', 'tenants.delete': bare, 'quotas.create': bare, 'audit.begin': bare },
  'journal.lock': big,
  ...{
    'agents.insert': big,
    'approval_keys.insert': big,
    'quotas.add': big,
    'quotas.start': big,
    'recount.make': big,
    'credentials.insert': big,
    'lookups.claim': big,
  },
}

/** Statements that may read more, and why. */
export const reads: Record<string, { rows: number; reason: string }> = {
  'dlq.claim_oldest': {
    rows: expired_max + reads_max,
    reason: 'locks that have expired and are not released yet',
  },
  'audit.list_actions': { rows: rows_max * merged_max + 200, reason: 'the next entry of each merged action' },
}

/** Statements that read a whole table, and why. */
export const whole_tables: Record<string, string> = {
  'seal.keys': 'a row for each rotation of the key of the service, and 100 at most are read',
  'journal.next_unnumbered_tenant': 'the first entry of an index',
  'tenants.all': "the operator's list of tenants",
  'tenants.plans': 'once at each start: every plan that is in use must be in the table of plans',
}

/** Statements without a limit that find all rows of a tenant, and why. */
export const of_few_rows: Record<string, string> = { 'quotas.purge_calls': 'a row for each month' }

/** Statements that take longer than the rest when a page is full, and why. */
export const slow: Record<string, { ms: number; reason: string }> = {
  'audit.list_actions': {
    ms: 50,
    reason: 'a step of a recursion for each entry, and in it one look for each action',
  },
}

export function allStatements(): Statement<unknown>[] {
  return [...statements.values()]
}
