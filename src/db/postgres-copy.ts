// The rows of a PostgreSQL database in a SQLite file, and back: the schema is the same on both engines.

import { type ReservedSQL, SQL } from 'bun'
import { limit } from '../base/limit.ts'
import { see_all_rows } from './bound.ts'
import { newer_session, postgres_session } from './connection-settings.ts'
import { namingServer } from './errors.ts'
import { pooled_session, type Session, settingsInstead } from './postgres-session.ts'
import { addressOf } from './postgres-url.ts'
import type { SqliteFile, Table } from './sqlite-file.ts'

const rows_max = limit(
  'backup.rows',
  2_000,
  'rows',
  'Rows that a backup reads from PostgreSQL, or a restore writes to it, at once.',
)
const piece_bytes_max = limit(
  'backup.piece_bytes',
  4 * 1_048_576,
  'bytes',
  'About how many bytes of rows a backup reads from PostgreSQL, or a restore writes to it, at once. A larger row goes alone.',
)

/** Bookkeeping of the database that is filled, or of the copy. */
const left_out = new Set(['applied_migrations', 'quarantine', 'backup_facts'])

type Cell = string | number | null

/**
 * As the login itself, and without a limit of time, where no pooler refuses that, also after session-settings has set the role
 * that its connections take. `is_pooled`: one did, and each transaction may have another connection.
 */
export async function connected<T>(
  url: string,
  work: (connection: ReservedSQL, is_pooled: boolean) => Promise<T>,
  session = of_login,
): Promise<T> {
  const settings = { ...session, application_name: 'waystation backup' }
  const pool = new SQL({ ...addressOf(url), max: 1, bigint: true, connection: settings })
  let connection: ReservedSQL
  try {
    connection = await pool.reserve()
  } catch (error) {
    await pool.close()
    const instead = settingsInstead(session, error)
    if (instead) return connected(url, work, instead)
    throw namingServer(url, error)
  }
  try {
    return await work(connection, session === pooled_session)
  } finally {
    connection.release()
    await pool.close()
  }
}

const of_login: Session = { role: 'none', statement_timeout: '0', row_security: 'on', ...newer_session }

const planned = Object.keys(postgres_session).filter((name) => name.startsWith('enable_'))
/** PostgreSQL knows it since 17. */
const without_end = "select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout'"
const unlimited = Object.keys(postgres_session).filter((name) => name.endsWith('_timeout'))

/**
 * Begins a copy: as long as it needs, between statements too, and with plans for whole tables. Also where session-settings has
 * given the role what suits requests, and a pooler keeps the connection from saying otherwise when it opens.
 */
export function beginning(mode = ''): string {
  const settings = [...planned, 'row_security'].map((name) => `${name} = on`)
  const times = unlimited.map((name) => `${name} = 0`)
  const set = [...settings, ...times].map((one) => `set local ${one}`)
  return [`begin ${mode}`, see_all_rows, ...set, without_end].join('; ')
}

function copiedTables(copy: Pick<SqliteFile, 'tables'>): Table[] {
  return copy.tables().filter(({ name }) => !left_out.has(name))
}

/** The part of a file that a copy writes. */
type Target = Pick<SqliteFile, 'tables' | 'exec' | 'insert' | 'count'>

/**
 * One state of the whole database, while services write to it. `copy` has the tables of this release, empty. Memory holds one
 * piece of rows, whatever their sizes are. `requireRoom` gets the bytes that the copy may need, before the first row is written.
 * Throws when the copy has another number of rows than the state had.
 */
export function copyPostgres(
  url: string,
  copy: Target,
  requireRoom: (bytes: number) => void = () => {},
): Promise<void> {
  return connected(url, async (connection) => {
    await connection.unsafe(beginning('isolation level repeatable read read only'))
    copy.exec('pragma foreign_keys = off') // looked at as a whole at the end
    const tables = copiedTables(copy)
    requireRoom(await bytesOfAll(connection, tables))
    for (const table of tables) {
      copy.exec('begin')
      await copyTable(connection, copy, table)
      copy.exec('commit')
      requireSameCount(table.name, await countOf(connection, table.name), copy.count(table.name))
    }
    await connection.unsafe('commit')
  })
}

async function countOf(connection: ReservedSQL, table: string): Promise<number> {
  const [row] = (await connection.unsafe(`select count(*) as rows from ${table}`)) as { rows: bigint }[]
  return Number(row!.rows)
}

function requireSameCount(table: string, read: number, written: number): void {
  if (read !== written) throw new Error(`${table} has ${read} rows, and ${written} were copied`)
}

/**
 * The places of the rows come first, with their sizes, so that a piece is bounded before it is read: tenants choose how large a
 * value is, and which large ones stand together. A row keeps its place while the transaction sees it.
 */
async function copyTable(connection: ReservedSQL, copy: Target, table: Table): Promise<void> {
  const { name, columns } = table
  const names = columns.map((column) => column.name)
  const insert = `insert into ${name} (${names.join(', ')}) values (${names.map((_, i) => `?${i + 1}`).join(', ')})`
  const select = `select ${names.join(', ')} from ${name} where ctid = any($1::text::tid[])`
  await connection.unsafe(
    `declare copied no scroll cursor for select ctid::text as place, ${bytesOfRow(table)} as bytes from ${name}`,
  )
  for (;;) {
    const sized = (await connection.unsafe(`fetch ${rows_max} from copied`)) as Sized[]
    for (const places of groups(sized)) {
      const rows = (await connection.unsafe(select, [arrayText(places)])) as Record<string, unknown>[]
      copy.insert(
        insert,
        rows.map((row) => names.map((column) => cellOf(row[column]))),
      )
    }
    if (sized.length < rows_max) break
  }
  await connection.unsafe('close copied')
}

interface Sized {
  /** `(0,1)`: page and number within it. */
  place: string
  bytes: bigint
}

/** The size of the database, or of its rows where that is more: PostgreSQL compresses large values, and a copy does not. */
async function bytesOfAll(connection: ReservedSQL, tables: readonly Table[]): Promise<number> {
  const sums = tables.map((table) => `(select coalesce(sum(${bytesOfRow(table)}), 0) from ${table.name})`)
  const [row] = (await connection.unsafe(
    `select greatest(pg_database_size(current_database()), ${sums.join(' + ')})::bigint as bytes`,
  )) as { bytes: bigint }[]
  return Number(row!.bytes)
}

/** The length of a text is known without reading it. */
function bytesOfRow({ columns }: Table): string {
  const texts = columns.filter(({ type }) => type === 'TEXT')
  const lengths = texts.map(({ name }) => `coalesce(octet_length(${name}), 0)`)
  return `(${[8 * columns.length, ...lengths].join(' + ')})::bigint`
}

/** The places of the rows that are read together. */
function* groups(sized: readonly Sized[]): Generator<string[]> {
  let places: string[] = []
  let sum = 0
  for (const { place, bytes } of sized) {
    if (places.length > 0 && sum + Number(bytes) > piece_bytes_max) {
      yield places
      places = []
      sum = 0
    }
    places.push(place)
    sum += Number(bytes)
  }
  if (places.length > 0) yield places
}

/** An array of places as PostgreSQL reads it. */
function arrayText(places: readonly string[]): string {
  return `{${places.map((place) => `"${place}"`).join(',')}}`
}

/** Every integer column is bigint in PostgreSQL and stays below 2^53. */
function cellOf(value: unknown): Cell {
  return typeof value === 'bigint' ? Number(value) : (value as Cell)
}

/** Fills an empty database of this release in one transaction. Throws when it then has another number of rows than the copy. */
export function fillPostgres(url: string, copy: SqliteFile): Promise<void> {
  return connected(url, async (connection) => {
    await connection.unsafe(beginning())
    const own = new Set(await tableNames(connection))
    // Other programs leave tables of theirs in a SQLite file.
    for (const table of copiedTables(copy)) {
      if (!own.has(table.name)) continue
      await fillTable(connection, copy, table)
      requireSameCount(table.name, copy.count(table.name), await countOf(connection, table.name))
    }
    await raiseIdentities(connection)
    await connection.unsafe('commit')
  })
}

async function fillTable(connection: ReservedSQL, copy: SqliteFile, { name, columns }: Table): Promise<void> {
  const names = columns.map((column) => column.name).join(', ')
  const types = columns.map((column) => `${column.name} ${column.type === 'INTEGER' ? 'bigint' : 'text'}`)
  const insert = `insert into ${name} (${names}) overriding system value
    select ${names} from json_to_recordset($1::text::json) as r (${types.join(', ')})`
  for (const piece of pieces(copy, { name, columns })) await connection.unsafe(insert, [piece])
}

/** JSON arrays of rows as objects. */
function* pieces(copy: SqliteFile, { name, columns }: Table): Generator<string> {
  let rows: string[] = []
  let bytes = 0
  for (const cells of copy.rows(`select ${columns.map((column) => column.name).join(', ')} from ${name}`)) {
    const row = JSON.stringify(Object.fromEntries(columns.map((column, i) => [column.name, cells[i]])))
    rows.push(row)
    bytes += row.length
    if (rows.length < rows_max && bytes < piece_bytes_max) continue
    yield `[${rows.join(',')}]`
    rows = []
    bytes = 0
  }
  if (rows.length > 0) yield `[${rows.join(',')}]`
}

/** The next numbers that the engine makes are higher than those that were copied. */
async function raiseIdentities(connection: ReservedSQL): Promise<void> {
  const columns = (await connection.unsafe(
    `select table_name, column_name from information_schema.columns
      where table_schema = current_schema() and is_identity = 'YES'`,
  )) as { table_name: string; column_name: string }[]
  for (const { table_name, column_name } of columns)
    await connection.unsafe(
      `select setval(pg_get_serial_sequence('${table_name}', '${column_name}'),
                     (select coalesce(max(${column_name}), 0) + 1 from ${table_name}), false)`,
    )
}

export async function tableNames(connection: ReservedSQL): Promise<string[]> {
  const tables = (await connection.unsafe(
    'select tablename as name from pg_tables where schemaname = current_schema() order by 1',
  )) as { name: string }[]
  return tables.map(({ name }) => name)
}

/**
 * True when no table has a row: a service that was started on this database has left one. A restore that was interrupted before
 * it had filled any has left the beginning of a quarantine alone.
 */
export function isEmptyPostgres(url: string): Promise<boolean> {
  return connected(url, async (connection) => {
    await connection.unsafe(beginning())
    for (const name of await tableNames(connection)) {
      if (name === 'applied_migrations') continue
      const counted = name === 'quarantine' ? 'where is_whole = 1' : ''
      const rows = (await connection.unsafe(`select 1 from "${name}" ${counted} limit 1`)) as unknown[]
      if (rows.length > 0) return false
    }
    return true
  })
}
