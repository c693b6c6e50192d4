// How the engines run a statement: what PostgreSQL reads, and what SQLite plans.

import type { Database } from 'bun:sqlite'
import { SQL } from 'bun'
import { boundText } from '../../src/db/bound.ts'
import { postgres_session } from '../../src/db/connection-settings.ts'
import { bind, type Params, type Statement } from '../../src/db/db.ts'
import { postgresText, sqliteTextOf } from '../../src/db/dialect.ts'
import { of_few_rows, reads, reads_max, type Scenario, whole_tables } from './plans.ts'

/** A run of a statement: its faults in words, and its time. */
export interface Run {
  faults: string[]
  ms: number
}

/** A step of a plan as PostgreSQL reports it. */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: PlanNode[]
}

/** Rows of tables, those that a filter threw away included. */
export function rowsRead(node: PlanNode): number {
  const thrown = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const of_table = node['Relation Name'] !== undefined && node['Node Type'] !== 'ModifyTable'
  const own = of_table ? (node['Actual Rows'] + thrown) * node['Actual Loops'] : 0
  return (node.Plans ?? []).reduce((sum, inner) => sum + rowsRead(inner), own)
}

/** The tables that are read from one end to the other. */
function wholeTables(node: PlanNode): string[] {
  const own = node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? 'a table'] : []
  return [...own, ...(node.Plans ?? []).flatMap(wholeTables)]
}

export const plan_modes = ['force_generic_plan', 'force_custom_plan'] as const

export class PostgresPlans {
  readonly #connection: SQL
  readonly #types = new Map<string, string[]>()

  /** `role`: one that row-level security binds. */
  constructor(
    url: string,
    private readonly role: string | null,
  ) {
    const times = { statement_timeout: '0', lock_timeout: '0' }
    const session = { ...postgres_session, ...times, ...(role === null ? {} : { role }) }
    this.#connection = new SQL({ url, max: 1, connection: session })
  }

  async prepare(statement: Statement<unknown>): Promise<void> {
    const name = nameOf(statement)
    const text = this.role === null ? postgresText(statement.text) : boundText(statement)
    await this.#connection.unsafe(`prepare ${name} as ${text}`).simple()
    const [row] = await this.#connection.unsafe(
      `select array_to_json(parameter_types::text[])::text as types from pg_prepared_statements where name = '${name}'`,
    )
    this.#types.set(name, JSON.parse(row.types))
  }

  async mode(mode: (typeof plan_modes)[number]): Promise<void> {
    await this.#connection.unsafe(`set plan_cache_mode = ${mode}`).simple()
  }

  /** Runs it, and takes back what it changed. */
  async run(statement: Statement<unknown>, { params }: Scenario): Promise<Run> {
    await this.#connection.unsafe('begin').simple()
    try {
      const text = `explain (analyze, buffers, timing off, format json) ${this.#execute(statement, params(statement))}`
      const [row] = await this.#connection.unsafe(text).simple()
      const [{ Plan: plan, 'Execution Time': ms }] = row['QUERY PLAN']
      const read = rowsRead(plan)
      const max = reads[statement.name]?.rows ?? reads_max
      const scanned = statement.name in whole_tables ? [] : wholeTables(plan)
      const is_whole = statement.name in whole_tables
      return {
        ms,
        faults: [
          ...(read > max && !is_whole ? [`${read} rows read`] : []),
          ...scanned.map((table) => `${table} read whole`),
        ],
      }
    } catch (error) {
      return { ms: 0, faults: [(error as Error).message] }
    } finally {
      await this.#connection.unsafe('rollback').simple()
    }
  }

  #execute(statement: Statement<unknown>, params: Params): string {
    const name = nameOf(statement)
    const types = this.#types.get(name)!
    const given = bind(
      statement,
      withDefaults(statement, params, (at) => (types[at] === 'text' ? 'x' : 1)),
    )
    const values = given.map((value, at) => literal(value, types[at]!))
    return `execute ${name}${values.length > 0 ? `(${values.join(', ')})` : ''}`
  }

  close(): Promise<void> {
    return this.#connection.close()
  }
}

function nameOf({ name }: Statement<unknown>): string {
  return name.replace('.', '_')
}

function literal(value: unknown, type: string): string {
  if (value === null) return 'null'
  return type === 'text' ? `'${String(value)}'` : String(Number.isNaN(Number(value)) ? 1 : value)
}

function withDefaults(
  statement: Statement<unknown>,
  params: Params,
  otherwise: (at: number) => string | number,
): Params {
  return Object.fromEntries(
    statement.params.map((name, at) => [name, name in params ? params[name]! : otherwise(at)]),
  )
}

/** The steps of SQLite's plan, and behind them those by which the row that was written is read back. */
export function sqlitePlanOf(connection: Database, statement: Statement<unknown>): string[] {
  const prepared = connection.prepare(`explain query plan ${sqliteTextOf(statement)}`)
  const steps = (prepared.all() as { detail: string }[]).map(({ detail }) => detail)
  prepared.finalize()
  return statement.read_back ? [...steps, ...sqlitePlanOf(connection, statement.read_back)] : steps
}

export class SqlitePlans {
  constructor(private readonly connection: Database) {}

  /** The faults of the plan: tables that are read whole, and tenants. */
  plan(statement: Statement<unknown>): string[] {
    const { name, text } = statement
    const details = sqlitePlanOf(this.connection, statement)
    if (name in whole_tables) return []
    const whole = details.filter((detail) => {
      const scanned = /^SCAN (\w+)/.exec(detail)?.[1]
      return scanned !== undefined && !/^SCAN (\d+ )?CONSTANT ROW/.test(detail) && !isMade(text, scanned)
    })
    const endless = /\blimit\b/.test(text) || name in of_few_rows ? [] : details.filter(isOfTenant)
    return [...whole, ...endless]
  }

  run(statement: Statement<unknown>, { params }: Scenario): Run {
    const prepared = this.connection.prepare(sqliteTextOf(statement))
    this.connection.run('begin')
    try {
      const given = bind(
        statement,
        withDefaults(statement, params(statement), () => 1),
      ) as never[]
      const began = performance.now()
      prepared.all(...given)
      return { ms: performance.now() - began, faults: [] }
    } catch (error) {
      return { ms: 0, faults: [(error as Error).message] }
    } finally {
      this.connection.run('rollback')
      prepared.finalize()
    }
  }
}

/** True for a walk over all rows of a tenant, whatever is asked of each: rows are counted on PostgreSQL alone. */
function isOfTenant(detail: string): boolean {
  return (
    /^SEARCH (?!(tenants|t|audit_heads|event_heads|seal_heads|subscription_mails|quota_usage) )/.test(
      detail,
    ) && /\(tenant_id(=|>)\?( AND tenant_id<\?)?\)$/.test(detail)
  )
}

/** True for the rows of a subquery, whose own plan is judged; false for a table, whatever it is called. */
function isMade(text: string, name: string): boolean {
  return new RegExp(`\\) as ${name}\\b|\\b${name} (\\([^)]*\\) )?as\\s*\\(`).test(text.replace(/\s+/g, ' '))
}
