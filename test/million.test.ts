// A million rows, of which hundreds of thousands end together: what a step of a sweep or of a purge, or a page of a
// list, reads depends on its limits, not on how much is there, and not on what the planner believes of it.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { day_ms } from '../src/base/clock.ts'
import { limits } from '../src/base/limit.ts'
import { postgres_session } from '../src/db/connection-settings.ts'
import { bind, type Params, type Statement, statements } from '../src/db/db.ts'
import { postgresText } from '../src/db/dialect.ts'
import { sqlitePath } from '../src/db/open.ts'
import { lease_rows_max } from '../src/jobs/store.ts'
import { wake_rows_max } from '../src/jobs/wake-store.ts'
import '../src/features.ts'
import '../src/maintenance/purge.ts'
import { TestClock } from './support/clock.ts'
import { forEachDatabase } from './support/databases.ts'
import { big, seeds } from './support/million.ts'
import { rowsRead, sqlitePlanOf } from './support/plan-engines.ts'

const now = new TestClock().now()
const rows_max = 500
const merged_max = limits.get('audit.merged_actions')!.value
const looked_max = limits.get('pages.looked_at_rows')!.value

const given: Params = {
  ...{ tenant_id: big, inbox_id: 'inb_a_1000001', now, rows_max, bytes_max: 4_194_304 },
  ...{
    expired_before: now - day_ms,
    ended_before: now - 90 * day_ms,
    due_from: 0,
    before: now,
    from_month: '2024-01',
    month: '2025-01',
  },
  fence_step: 1,
  ...{ after_seq: 0, dropped_up_to: 40_000, looked_max, last_place: rows_max, until: now + day_ms },
  ...{ before_id: '~', from_id: '', status: 'fired', before_seq: 60_001, at: now },
  ...{
    action: 'even',
    actor: 'one',
    workflow_id: 'first',
    agent_id: 'a',
    namespace: 'gone',
    key: '',
    skipped: 0,
  },
  ...{
    has_action: 1,
    has_actor: 1,
    has_workflow_id: 1,
    has_agent_id: 1,
    action_prefix: 'eve',
    prefix_characters: 3,
  },
  ...{ first: 'eve', values_max: merged_max },
  ...{ source_id: 'sch_1', any_source: 1, source: '', any_cause: 0, cause: 'none', any_workflow_id: 1 },
  ...{ total_max: rows_max, walked_max: rows_max, from_key: '__rl:', end_key: '__rl;' },
  ...{ any_source_id: 1, ...idsOf('dlq.match_named', 'id_', 'dlq_failed_') },
  ...{ kind: 'schedule', goes_on: 0, lease_until: now + 30_000 },
  ...idsOf('jobs.wake_idle', 'source_id_', 'sch_'),
  ...{ idle_at: now, first_id: 'sch_1000001', last_id: `sch_${1_000_000 + wake_rows_max}` },
}

/** For the list of ids in this statement; lists of other statements begin with the same names. */
function idsOf(statement: string, list: string, id: string): Params {
  const names = statements.get(statement)!.params.filter((name) => name.startsWith(list))
  return Object.fromEntries(names.map((name, i) => [name, `${id}${1_000_001 + i}`]))
}

/** Lists ask for entries from where their leader has reached on. */
const reached = 60_001 - 2 * looked_max

/** Each row of the chunk is read once to choose it, and once to show or change it. */
const chosen = 2 * rows_max
/** Statements that look at more rows than they answer: how many. */
function readsMax(name: string): number {
  if (/reach_/.test(name)) return looked_max
  // Each row of the list once to choose it, and once to change it, and the tenant.
  if (name === 'jobs.lease') return 2 * lease_rows_max + 1
  if (/^schedules\.list/.test(name)) return chosen + rows_max // and when each is due next
  // The leader's entries, and each of the other filters asked of every one of them.
  if (/^audit\.list_\w+_filtered/.test(name)) return looked_max * (1 + others) + chosen
  if (name === 'audit.list_filtered') return looked_max + chosen
  // For each entry the next one of each action, its bytes, and itself; and where the log ends.
  if (name === 'audit.list_actions') return rows_max * merged_max + chosen + 1
  return chosen
}

/** Filters beside the leader that have an index. */
const others = 2

/** Every step of a sweep and of a purge, and how SQLite finds the rows that it takes. */
const walks: Record<string, string> = {
  'kv.tenants_due': 'INDEX kv_entries_expiring (expires_at>? AND expires_at<?)',
  'kv.tenants_expired': 'INDEX kv_entries_expiring (expires_at>? AND expires_at<?)',
  'kv.tombstone_expired_named':
    'INDEX kv_entries_tenant_expiring (tenant_id>? AND (tenant_id,expires_at)<(?,?))',
  'kv.purge_namespaces': 'PRIMARY KEY (tenant_id=?)',
  'kv.tenants_with_tombstones': 'INDEX kv_entries_tombstones (expires_at>? AND expires_at<?)',
  'kv.tombstone_expired': 'INDEX kv_entries_tenant_expiring (tenant_id>? AND (tenant_id,expires_at)<(?,?))',
  'kv.delete_tombstones': 'INDEX kv_entries_tenant_tombstones (tenant_id>? AND (tenant_id,expires_at)<(?,?))',
  'kv.purge': 'PRIMARY KEY (tenant_id=?)',
  'dlq.tenants_expired': 'INDEX dlq_items_locked (locked_until>? AND locked_until<?)',
  'dlq.tenants_ended': 'INDEX dlq_items_ended (updated_at>? AND updated_at<?)',
  'dlq.release_expired': 'INDEX dlq_items_tenant_locked (tenant_id>? AND (tenant_id,locked_until)<(?,?))',
  'dlq.sweep_ended': 'INDEX dlq_items_tenant_ended (tenant_id>? AND (tenant_id,updated_at)<(?,?))',
  'dlq.purge': 'INDEX sqlite_autoindex_dlq_items_1 (tenant_id=?)',
  'dlq.purge_operations': 'INDEX sqlite_autoindex_dlq_operations_1 (tenant_id=?)',
  'dlq.purge_parts': 'INDEX sqlite_autoindex_dlq_operation_parts_1 (tenant_id=?)',
  'inbox.tenants_expired': 'INDEX inboxes_expiring (expires_at>? AND expires_at<?)',
  'inbox.expire': 'INDEX inboxes_tenant_expiring (tenant_id>? AND (tenant_id,expires_at)<(?,?))',
  'inbox.clearable': 'INDEX inboxes_clearing (clear_at>? AND clear_at<?)',
  'inbox.clear': 'INDEX sqlite_autoindex_inbox_messages_1 (tenant_id=? AND inbox_id=? AND seq>?)',
  'inbox.drop_up_to': 'INDEX sqlite_autoindex_inbox_messages_1 (tenant_id=? AND inbox_id=? AND seq<?)',
  'inbox.deletable': 'INDEX inboxes_deleting (delete_at>? AND delete_at<?)',
  'inbox.purge': 'PRIMARY KEY (tenant_id=?)',
  'idempotency.sweep': 'INDEX idempotency_keys_expiring (expires_at<?)',
  'idempotency.purge': 'PRIMARY KEY (tenant_id=?)',
  'usage.tenants_old': 'INDEX usage_hours_hour (hour>? AND hour<?)',
  'usage.sweep': 'PRIMARY KEY (tenant_id>? AND (tenant_id,hour)<(?,?))',
  'usage.purge': 'PRIMARY KEY (tenant_id=?)',
  'quotas.tenants_old_calls': 'INDEX api_calls_month (month>? AND month<?)',
  'quotas.sweep_calls': 'PRIMARY KEY (tenant_id>? AND (tenant_id,month)<(?,?))',
  'credentials.sweep': 'INDEX credentials_expiring (expires_at>? AND expires_at<?)',
  'credentials.purge': 'PRIMARY KEY (tenant_id=?)',
  'agents.purge': 'PRIMARY KEY (tenant_id=?)',
  'approval_keys.purge': 'PRIMARY KEY (tenant_id=?)',
  'audit.purge': 'PRIMARY KEY (tenant_id=?)',
  'schedules.purge': 'INDEX sqlite_autoindex_schedules_1 (tenant_id=?)',
  'checkpoints.purge': 'INDEX sqlite_autoindex_checkpoints_1 (tenant_id=?)',
  'jobs.purge': 'PRIMARY KEY (tenant_id=?)',
  'lookups.purge': 'INDEX tenant_lookups_tenant (tenant_id=?)',
  'jobs.purge_attempts': 'PRIMARY KEY (tenant_id=?)',
  'jobs.active': 'INDEX jobs_tenants (tenant_id>? AND tenant_id<?)',
  'jobs.active_waiting': 'INDEX jobs_tenants (tenant_id>? AND tenant_id<?)',
  'jobs.paused': 'INDEX jobs_paused (tenant_id>? AND tenant_id<?)',
  'jobs.paused_going_on': 'INDEX jobs_paused_going_on (tenant_id>? AND tenant_id<?)',
  'tenants.purgeable': 'INDEX tenants_purging (purge_at>? AND purge_at<?)',
}

const leads = (index: string, column: string) =>
  `INDEX audit_entries_${index} ((tenant_id,${column},seq)>(?,?,?) AND (tenant_id,${column},seq)<(?,?,?))`
const of_status = (table: string) =>
  `INDEX ${table}_status ((tenant_id,status,id)>(?,?,?) AND (tenant_id,status,id)<(?,?,?))`

/** Lists of letters that match a filter begin where the look before them ended. */
const letters_from: Record<string, string> = {
  'dlq.list_any_matching': 'dlq_resolved_1039600',
  'dlq.list_failed_matching': 'dlq_failed_1009600',
  'dlq.list_claimed_matching': 'dlq_claimed_1039600',
  'dlq.list_resolved_matching': 'dlq_resolved_1039600',
  'dlq.match_any': 'dlq_resolved_1039600',
  'dlq.match_failed': 'dlq_failed_1009600',
  'dlq.match_claimed': 'dlq_claimed_1039600',
  'dlq.match_resolved': 'dlq_resolved_1039600',
}

const letters = {
  by_key: 'INDEX sqlite_autoindex_dlq_items_1 (tenant_id=? AND id>? AND id<?)',
  open: 'INDEX dlq_items_open (tenant_id=? AND id>? AND id<?)',
  by_status: of_status('dlq_items'),
  by_cause: 'INDEX dlq_items_cause ((tenant_id,cause,id)>(?,?,?) AND (tenant_id,cause,id)<(?,?,?))',
  by_source:
    'INDEX dlq_items_source_id ((tenant_id,source_id,id)>(?,?,?) AND (tenant_id,source_id,id)<(?,?,?))',
}

/** The same for pages, and what is asked for them. */
const pages: Record<string, string> = {
  'kv.scan': 'PRIMARY KEY ((tenant_id,namespace,key)>(?,?,?))',
  'kv.count_expired': 'INDEX kv_entries_tenant_expiring (tenant_id>? AND (tenant_id,expires_at)<(?,?))',
  'inbox.count_expired': 'INDEX inboxes_tenant_expiring (tenant_id>? AND (tenant_id,expires_at)<(?,?))',
  'inbox.latest_sizes': 'INDEX sqlite_autoindex_inbox_messages_1 (tenant_id=? AND inbox_id=? AND seq>?)',
  'inbox.between': 'INDEX sqlite_autoindex_inbox_messages_1 (tenant_id=? AND inbox_id=? AND seq>? AND seq<?)',
  'inbox.before': 'INDEX sqlite_autoindex_inbox_messages_1 (tenant_id=? AND inbox_id=? AND seq>? AND seq<?)',
  'inbox.page': 'INDEX sqlite_autoindex_inbox_messages_1 (tenant_id=? AND inbox_id=? AND seq>?)',
  'audit.list': 'PRIMARY KEY (tenant_id=? AND seq>? AND seq<?)',
  'audit.first_at': 'PRIMARY KEY (tenant_id=? AND seq>?)',
  'audit.reach_action': leads('action', 'action'),
  'audit.reach_actor': leads('actor', 'actor'),
  'audit.reach_workflow_id': leads('workflow', 'workflow_id'),
  'audit.reach_log': 'PRIMARY KEY (tenant_id=? AND seq>? AND seq<?)',
  'audit.list_action': leads('action', 'action'),
  'audit.list_actor': leads('actor', 'actor'),
  'audit.list_workflow_id': leads('workflow', 'workflow_id'),
  'audit.list_filtered': 'PRIMARY KEY (tenant_id=? AND seq>? AND seq<?)',
  'audit.list_action_filtered': leads('action', 'action'),
  'audit.list_actor_filtered': leads('actor', 'actor'),
  'audit.list_workflow_id_filtered': leads('workflow', 'workflow_id'),
  'audit.list_actions': leads('action', 'action'),
  'audit.values_action': 'INDEX audit_entries_action (tenant_id=? AND action>?)',
  'audit.values_actor': 'INDEX audit_entries_actor (tenant_id=? AND actor>?)',
  'audit.values_workflow_id': 'INDEX audit_entries_workflow (tenant_id=? AND workflow_id>?)',
  'agents.ids': 'PRIMARY KEY (tenant_id=? AND agent_id>?)',
  'dlq.reach_any': letters.by_key,
  'dlq.reach_failed': letters.open,
  'dlq.reach_claimed': letters.by_status,
  'dlq.reach_resolved': letters.by_status,
  'dlq.reach_archived': letters.by_status,
  'dlq.reach_cause': letters.by_cause,
  'dlq.reach_source_id': letters.by_source,
  'dlq.list_any': letters.by_key,
  'dlq.list_resolved': letters.by_status,
  'dlq.list_archived': letters.by_status,
  'dlq.list_any_matching': letters.by_key,
  'dlq.list_failed_matching': letters.open,
  'dlq.list_claimed_matching': letters.by_status,
  'dlq.list_resolved_matching': letters.by_status,
  'dlq.list_archived_matching': letters.by_status,
  'dlq.list_cause_matching': letters.by_cause,
  'dlq.list_source_id_matching': letters.by_source,
  'dlq.reach_any_ahead': letters.by_key,
  'dlq.reach_failed_ahead': letters.open,
  'dlq.reach_claimed_ahead': letters.by_status,
  'dlq.reach_resolved_ahead': letters.by_status,
  'dlq.reach_archived_ahead': letters.by_status,
  'dlq.reach_cause_ahead': letters.by_cause,
  'dlq.reach_source_id_ahead': letters.by_source,
  'dlq.match_any': letters.by_key,
  'dlq.match_failed': letters.open,
  'dlq.match_claimed': letters.by_status,
  'dlq.match_resolved': letters.by_status,
  'dlq.match_cause': letters.by_cause,
  'dlq.match_source_id': letters.by_source,
  'dlq.match_archived': letters.by_status,
  'dlq.match_named': 'INDEX sqlite_autoindex_dlq_items_1 (tenant_id=? AND id=?)',
  'dlq.ended_operations': 'INDEX dlq_operations_ended (finished_at>? AND finished_at<?)',
  'dlq.list_operations': 'INDEX sqlite_autoindex_dlq_operations_1 (tenant_id=? AND id<?)',
  'dlq.causes_failed': letters.open,
  'dlq.causes_claimed': letters.by_status,
  'dlq.causes_resolved': letters.by_status,
  'dlq.causes_archived': letters.by_status,
  'schedules.list': 'INDEX sqlite_autoindex_schedules_1 (tenant_id=? AND id<?)',
  'schedules.list_status': of_status('schedules'),
  'checkpoints.list': 'INDEX sqlite_autoindex_checkpoints_1 (tenant_id=? AND id<?)',
  'checkpoints.list_status': of_status('checkpoints'),
}
/** Statements on few rows whatever happens: one row per tenant and month or quota, or one row by its key. */
const of_few_rows = [
  'quotas.purge',
  'quotas.purge_calls',
  'audit.purge_head',
  'inbox.cleared',
  'inbox.delete_row',
]

/** Those on tables that have no rows here. test/plans.test.ts runs them, and every other statement, on tables that have. */
const on_other_tables = [
  ...['checkpoints.purge_comments', 'checkpoints.purge_votes'],
  ...['effects.purge', 'effects.purge_policies', 'effects.tenants_forgetting', 'effects.tenants_run_out'],
  ...['journal.purge', 'journal.purge_head', 'journal.purge_unnumbered', 'journal.purge_workflows'],
  ...['journal.tenants_due', 'kv.tenants_asking', 'kv.expire'],
  ...[
    'seal.purge_checkpoints',
    'seal.purge_head',
    'seal.purge_tiles',
    'seal.tenants_checkpoint',
    'seal.tenants_pending',
  ],
  ...[
    'subscriptions.active',
    'subscriptions.purge',
    'subscriptions.purge_addresses',
    'subscriptions.purge_attempts',
  ],
  'subscriptions.purge_mails',
]

/** Jobs of a list are found by their key, however many the tenant has. */
const listed: Record<string, string> = {
  'jobs.lease': 'PRIMARY KEY (tenant_id=? AND kind=? AND source_id=?)',
  'jobs.wake_idle': 'PRIMARY KEY (tenant_id=? AND kind=? AND source_id=?)',
}

const looked_for: Record<string, string> = { ...walks, ...pages, ...listed }
const steps = Object.keys(looked_for).map((name) => statements.get(name)!)

test('every statement that sweeps or purges is looked at here', () => {
  const names = [...statements.keys()].filter((name) =>
    /\.(purge|sweep|tombstone|delete_tombstones|delete_row|deletable|clear|expire$|release_expired|tenants_|drop_up_to|active|paused)/.test(
      name,
    ),
  )
  const others = [...of_few_rows, ...on_other_tables]
  expect(names.filter((name) => !others.includes(name)).toSorted()).toEqual(Object.keys(walks).toSorted())
})

forEachDatabase('A million rows', (databases) => {
  const engine = databases.engine === 'sqlite' ? sqliteEngine() : postgresEngine()
  beforeAll(async () => {
    await engine.open(databases)
  }, 300_000)
  afterAll(() => engine.close())

  for (const { belief, believe } of engine.beliefs) {
    describe(belief, () => {
      beforeAll(believe)
      test.each(steps.map((step) => [step.name, step] as const))(
        '%s reads no more than its limits',
        async (_, step) => {
          expect(await engine.excess(step)).toEqual([])
        },
      )
    })
  }
})

function givenTo({ name }: Statement<unknown>): Params {
  if (name in letters_from) return { ...given, from_id: letters_from[name]! }
  return name.endsWith('_filtered') || name.startsWith('audit.reach_')
    ? { ...given, after_seq: reached }
    : given
}

interface Engine {
  open(databases: { open(): Promise<{ url: string }>; newUrl(): Promise<string> }): Promise<void>
  /** The statistics that the planner may have, one after the other. */
  beliefs: { belief: string; believe(): Promise<void> }[]
  /** The reads of the statement past its limits, in words. */
  excess(statement: Statement<unknown>): Promise<string[]>
  close(): Promise<void>
}

// bun:sqlite counts no rows, so the plan is judged: what is walked in order to choose the rows is an index that holds
// just these, and what is changed is found by the primary key.
function sqliteEngine(): Engine {
  let connection: Database
  let tables: Set<string>
  return {
    async open(databases) {
      const { url } = await databases.open()
      connection = new Database(sqlitePath(url)!)
      connection.run('pragma synchronous = off')
      connection.run('begin')
      for (const seed of seeds(now)) connection.run(seed)
      connection.run('commit')
      const named = connection.prepare(`select name from sqlite_schema where type = 'table'`)
      tables = new Set(['same', ...(named.all() as { name: string }[]).map(({ name }) => name)])
      named.finalize()
    },
    beliefs: [
      { belief: 'without statistics', async believe() {} },
      { belief: 'with statistics', believe: async () => void connection.run('analyze') },
    ],
    async excess(statement) {
      const { name } = statement
      const details = sqlitePlanOf(connection, statement)
      const of_tables = details.filter(
        (detail) => /^(SEARCH|SCAN)/.test(detail) && tables.has(detail.split(' ')[1]!),
      )
      const walk = looked_for[name]!
      const walked = of_tables.filter((detail) => detail.endsWith(walk))
      const others = of_tables.filter((detail) => !detail.endsWith(walk) && !byKey(detail))
      const sorts = details.filter((detail) => detail.includes('FOR ORDER BY'))
      return [...(walked.length === 0 ? [`not by ${walk}`] : []), ...others, ...sorts]
    },
    async close() {
      connection?.close()
    },
  }
}

/** One row, or a range that a subquery has found. */
function byKey(detail: string): boolean {
  return [
    /^SEARCH tenant_lookups USING PRIMARY KEY \(value=\? AND kind=\?\)$/,
    /^SEARCH \w+ USING (PRIMARY KEY|(COVERING )?INDEX sqlite_autoindex_\w+_1) \(tenant_id=\? AND (\w+=\?( AND )?)+\)( LEFT-JOIN)?$/,
    /^SEARCH inbox_messages USING .*_1 \(tenant_id=\? AND inbox_id=\? AND seq>\? AND seq<\?\)$/,
    /^SEARCH same USING COVERING INDEX audit_entries_\w+ \(tenant_id=\? AND \w+=\? AND seq=\?\)$/,
    // The last entry, and a tenant's months.
    /^SEARCH audit_entries USING PRIMARY KEY \(tenant_id=\?\)$/,
    /^SEARCH api_calls USING PRIMARY KEY \(tenant_id=\?\)$/,
    // The next text of a field: one row.
    /^SEARCH audit_entries USING COVERING INDEX audit_entries_action \(tenant_id=\? AND action>\?\)$/,
    /^SEARCH audit_heads USING PRIMARY KEY \(tenant_id=\?\)$/,
    /^SEARCH tenants USING PRIMARY KEY \(tenant_id=\?\)$/,
  ].some((known) => known.test(detail))
}

// PostgreSQL tells how many rows it read.
function postgresEngine(): Engine {
  let early: SQL
  let seeder: SQL
  let late: SQL
  let asked: SQL
  const nameOf = ({ name }: Statement<unknown>) => name.replace('.', '_')
  const execute = (step: Statement<unknown>) => {
    const values = bind(step, givenTo(step)).map((value) =>
      typeof value === 'string' ? `'${value}'` : String(value),
    )
    return `execute ${nameOf(step)}${values.length > 0 ? `(${values.join(', ')})` : ''}`
  }
  const planEarly = async () => {
    asked = early
  }
  const plans = (mode: string) => async () => {
    asked = late
    await late.unsafe(`set plan_cache_mode = ${mode}`).simple()
  }
  return {
    async open(databases) {
      const url = await databases.newUrl()
      const connection = { ...postgres_session, statement_timeout: '60000' }
      early = new SQL({ url, max: 1, connection })
      late = new SQL({ url, max: 1, connection })
      seeder = new SQL({ url, max: 1 })
      const tables = await seeder.unsafe(`select tablename from pg_tables where schemaname = 'public'`)
      for (const { tablename } of tables)
        await seeder.unsafe(`alter table ${tablename} set (autovacuum_enabled = false)`)
      for (const step of steps)
        await late.unsafe(`prepare ${nameOf(step)} as ${postgresText(step.text)}`).simple()
      // Planned now, and kept: nothing tells PostgreSQL to think again when rows come in.
      await early.unsafe('set plan_cache_mode = force_generic_plan').simple()
      for (const step of steps) {
        await early.unsafe(`prepare ${nameOf(step)} as ${postgresText(step.text)}`).simple()
        await early.unsafe(`explain ${execute(step)}`).simple()
      }
      for (const seed of seeds(now)) await seeder.unsafe(seed)
    },
    beliefs: [
      { belief: 'planned while the tables were empty', believe: planEarly },
      { belief: 'without statistics, planned for any values', believe: plans('force_generic_plan') },
      { belief: 'without statistics, planned for these values', believe: plans('force_custom_plan') },
      {
        belief: 'with statistics, planned for these values',
        async believe() {
          await seeder.unsafe('analyze')
        },
      },
      { belief: 'with statistics, planned for any values', believe: plans('force_generic_plan') },
    ],
    async excess(step) {
      await asked.unsafe('begin').simple()
      const [row] = await asked.unsafe(`explain (analyze, format json) ${execute(step)}`).simple()
      await asked.unsafe('rollback').simple()
      const read = rowsRead(row['QUERY PLAN'][0].Plan)
      return read > readsMax(step.name) ? [`${read} rows read`] : []
    },
    async close() {
      for (const connection of [early, seeder, late]) await connection?.close()
    },
  }
}
