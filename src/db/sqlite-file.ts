// A SQLite file that no service has open: a copy that is made, looked through or filled.

import { constants, Database, type SQLQueryBindings } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { limit } from '../base/limit.ts'
import { type DbError, translate } from './errors.ts'
import { explained, sizeOf } from './space.ts'

export interface Column {
  name: string
  type: 'INTEGER' | 'TEXT'
}

export interface Table {
  name: string
  columns: Column[]
}

const TABLES = `select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by rowid`

export class SqliteFile {
  readonly #db: Database

  /**
   * Throws when there is no such file, when it cannot be opened or is not a SQLite database, or when its schema is damaged.
   * `immutable`: nothing is made beside the file, a log or a journal beside it is not read, and no lock is taken.
   */
  constructor(path: string, { readonly, immutable }: { readonly: boolean; immutable?: boolean }) {
    if (!existsSync(path)) throw new Error(`there is no file ${path}`)
    try {
      this.#db = immutable
        ? immutableAt(path)
        : new Database(path, readonly ? { readonly } : { readwrite: true })
    } catch (error) {
      throw explained(error, path)
    }
    this.#require(path, 'is not a SQLite database, or its first page is damaged', () => {
      this.#db.run('pragma busy_timeout = 5000')
      this.values('pragma schema_version')
    })
    // The first statement reads the whole schema.
    this.#require(path, 'is damaged: its schema cannot be read', () =>
      this.values('select 1 from sqlite_schema limit 1'),
    )
  }

  /** `damage`: said of the file when SQLite finds it damaged. Other failures, as on a disk that takes no writes, have their own reason. */
  #require(path: string, damage: string, look: () => unknown): void {
    try {
      look()
    } catch (error) {
      this.#db.close()
      const { kind } = translate('sqlite', error) as DbError
      throw kind === 'damaged' ? new Error(`${path} ${damage}`, { cause: error }) : explained(error, path)
    }
  }

  exec(text: string): void {
    this.#db.run(text)
  }

  all<Row>(text: string, ...values: SQLQueryBindings[]): Row[] {
    using prepared = this.#db.prepare(text) // an open statement would keep the file open
    return prepared.all(...values) as Row[]
  }

  /** The first column. */
  values(text: string): (string | number)[] {
    using prepared = this.#db.prepare(text)
    return prepared.values().map((row) => row[0] as string | number)
  }

  /** Arrays of values, read as they are asked for. */
  *rows(text: string): Generator<(string | number | null)[]> {
    using prepared = this.#db.prepare(text)
    for (const row of prepared.iterate()) yield Object.values(row as Record<string, string | number | null>)
  }

  /** Runs the statement once for each array of values. */
  insert(text: string, rows: readonly SQLQueryBindings[][]): void {
    using prepared = this.#db.prepare(text)
    for (const values of rows) prepared.run(...values)
  }

  /** Without a log beside it. */
  asOneFile(): void {
    this.exec('pragma journal_mode = delete')
  }

  /** For a file that is flushed once, at the end, and thrown away when that is not reached. */
  withoutFlushes(): void {
    this.exec('pragma synchronous = off')
  }

  /** In the order in which they were made: each comes after those that its rows point to. */
  tables(): Table[] {
    return this.values(TABLES).map((name) => ({
      name: String(name),
      columns: this.all<Column>(`select name, type from pragma_table_info('${name}') order by cid`),
    }))
  }

  count(table: string): number {
    return Number(this.values(`select count(*) from ${table}`)[0])
  }

  close(): void {
    this.#db.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

function immutableAt(path: string): Database {
  const { SQLITE_OPEN_READONLY, SQLITE_OPEN_URI } = constants
  return new Database(`${pathToFileURL(path).href}?immutable=1`, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
}

/** The migrations of a database of the service; null when it is none. */
export function appliedIn(file: SqliteFile): { name: string; hash: string }[] | null {
  if (!file.tables().some(({ name }) => name === 'applied_migrations')) return null
  return file.all('select name, hash from applied_migrations')
}

const shown_names = 3

/**
 * Throws when the file is a database of another program: tables would be added to it, and its journal mode would change for
 * good. A file that cannot be read is not judged: opening it says why.
 */
export function requireOwn(path: string): void {
  const others = tablesOfOthers(path)
  if (others.length === 0) return
  const named = others.slice(0, shown_names).join(', ')
  const more = others.length > shown_names ? ', …' : ''
  throw new Error(
    `${path} is a database of another program (it has the tables ${named}${more}): name a new file`,
  )
}

/** Many programs have a table schema_migrations: that of releases before 0.1.0 is known by its columns. */
const OWN = `select 1 from pragma_table_info('applied_migrations') where name = 'hash'
  union all select 1 from pragma_table_info('schema_migrations') where name = 'applied_at'`

/** None in a database of the service. A table whose name begins with _ belongs to what copies the file, such as Litestream. */
function tablesOfOthers(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return []
  try {
    using file = asItIs(path)
    if (file.values(OWN).length > 0) return []
    return file
      .values(TABLES)
      .map(String)
      .filter((name) => !name.startsWith('_'))
  } catch {
    return []
  }
}

/**
 * Opens a file that may belong to another program, and makes no log beside it. A journal that a crash has left is rolled
 * back, as by every program that opens the file: before that its tables are not known.
 */
function asItIs(path: string): SqliteFile {
  if (sizeOf(`${path}-wal`) > 0) return new SqliteFile(path, { readonly: true })
  if (sizeOf(`${path}-journal`) > 0) return new SqliteFile(path, { readonly: false })
  return new SqliteFile(path, { readonly: true, immutable: true })
}

const faults_max = limit(
  'backup.faults_listed',
  100,
  'rows',
  'Faults of a damaged backup that `admin verify` lists.',
)

/** Everything that SQLite finds wrong with the file, in its words; empty when it is whole. */
export function faultsOf(file: SqliteFile): string[] {
  try {
    const found = file.values(`pragma integrity_check(${faults_max})`).map(String)
    const faults = found.length === 1 && found[0] === 'ok' ? [] : found
    const dangling = file.all<{ table: string; parent: string }>('pragma foreign_key_check')
    return [
      ...faults,
      ...dangling.slice(0, faults_max).map(({ table, parent }) => `a row of ${table} points to no ${parent}`),
    ]
  } catch (error) {
    return [String((translate('sqlite', error) as Error).message)]
  }
}

/**
 * Writes one consistent state of the database at `source` to a new file, also while a service writes to it: it contains
 * everything that was committed before. The file is not flushed.
 */
export function copySqlite(source: string, target: string): void {
  using from = new SqliteFile(source, { readonly: false })
  from.exec(`vacuum into '${target.replaceAll("'", "''")}'`)
}
