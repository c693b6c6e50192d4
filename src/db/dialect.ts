// Everything that differs between the two engines, on one page.

export type Engine = 'sqlite' | 'postgres'

/** PostgreSQL whose tables Citus has distributed over several servers speaks a dialect of its own. */
export type PostgresDialect = 'postgres' | 'citus'
type Dialect = Engine | PostgresDialect

/** Tokens of migration files. */
export const tokens: Record<Engine, Record<string, string>> = {
  sqlite: {
    integer: 'integer',
    text: 'text',
    keyed: 'strict, without rowid',
    heap: 'strict',
    ascending: 'integer primary key',
    known_whole: '',
  },
  postgres: {
    integer: 'bigint',
    text: 'text collate "C"',
    keyed: '',
    heap: '',
    ascending: 'bigint generated always as identity',
    known_whole: 'alter table % replica identity full',
  },
}

/**
 * A migration file in this engine's words: `{integer}`, `{text}`, `{ascending}` for a number that the engine makes, higher
 * for every further row, and after a table `{keyed}` or `{heap}`. `{known_whole <table>}` is a statement for a table that has no
 * primary key on PostgreSQL: without it the server refuses each of its updates once a publication for logical replication has it.
 */
export function render(engine: Engine, text: string): string {
  return text.replace(/\{(\w+)(?: (\w+))?\}/g, (token, name: string, table: string | undefined) => {
    const words = tokens[engine][name]
    if (words === undefined) throw new Error(`unknown token ${token} in a migration`)
    return words.replace('%', () => table ?? '')
  })
}

/**
 * SQLite numbers its parameters with `?1` where PostgreSQL writes `$1`. Where it plans by the value of a parameter, in
 * `= ?1` and `limit ?1`, it prepares the statement again whenever the value changes, which costs several times its
 * run. Its planner does not look through `likely`, which returns its argument and costs nothing.
 */
export function sqliteText(text: string): string {
  return worded('sqlite', text)
    .replace(/\$(\d+)/g, '?$1')
    .replace(/((?<![<>!])=|\bis|\blimit)(\s+)(\?\d+)/g, '$1$2likely($3)')
}

/** Without the clause that returns a row which is read back. */
export function sqliteTextOf({ text, read_back }: { text: string; read_back?: unknown }): string {
  return sqliteText(read_back ? text.slice(0, text.lastIndexOf(' returning ')) : text)
}

export function postgresText(text: string, dialect: PostgresDialect = 'postgres'): string {
  return worded(dialect, text)
}

/**
 * Tokens of statements. Differs because SQLite gets the index to walk by name, where `postgres_session` keeps
 * PostgreSQL to them; SQLite has no rows that others have locked; and rows that were chosen are found again by their
 * primary key there, which PostgreSQL does for certain only by their places. `{each …} select … where key {listed …} {found}`
 * finds the rows of a list of keys: until 17 PostgreSQL may otherwise read all rows with the columns before, and look for
 * each whether it is in the list. `{distributed …}` stands in statements for Citus alone (`of_shard` in db.ts).
 */
function worded(dialect: Dialect, text: string): string {
  return text.replace(/\{(\w+)(?: ([^{}]+))?\}/g, (token, name: string, names: string) => {
    const word = words[dialect][name]
    if (word === undefined) throw new Error(`unknown token ${token} in a statement`)
    return word.replace('%', () => names)
  })
}

const postgres_words = {
  by: '',
  locked: 'for update',
  skip_locked: 'for update skip locked',
  shared: 'for share',
  rows_in: 'ctid = any (array(',
  place: 'ctid,',
  row: 'ctid',
  end: '))',
  each: 'select found.ctid from unnest(array[%]) as listed (key), lateral (',
  listed: '= listed.key',
  found: ') as found',
}

const words: Record<Dialect, Record<string, string>> = {
  sqlite: {
    by: 'indexed by %',
    locked: '',
    skip_locked: '',
    shared: '',
    rows_in: '(%) in (',
    place: '',
    row: '%',
    end: ')',
    each: '',
    listed: 'in (%)',
    found: '',
    distributed: '',
  },
  postgres: { ...postgres_words, distributed: '' },
  citus: { ...postgres_words, distributed: '%' },
}
