// Rows without the service: a million of them by requests would take longer than the attack. A row that the service
// wrote itself is copied, whatever its columns are.

import { Database } from 'bun:sqlite'
import { SQL } from 'bun'

type Row = Record<string, unknown>

/** Statements on the database of a service. On SQLite the service must not run when they write. */
export async function withDatabase<T>(
  database_url: string,
  work: (run: (text: string) => Promise<Row[]>) => Promise<T>,
): Promise<T> {
  if (!database_url.startsWith('sqlite:')) {
    const sql = new SQL({ url: database_url, max: 1 })
    try {
      return await work(async (text) => (await sql.unsafe(text)) as Row[])
    } finally {
      await sql.close()
    }
  }
  const db = new Database(database_url.slice('sqlite:'.length))
  try {
    return await work(async (text) => db.query(text).all() as Row[])
  } finally {
    db.close()
  }
}

export interface Copies {
  table: string
  /** Finds the one row that is copied, in SQL. */
  where: string
  /** Columns that differ, as SQL in which `n` runs from 1 to `count`. */
  changes: Record<string, string>
  count: number
}

/** Copies a row `count` times. Throws unless exactly one row is found. */
export async function copyRow(database_url: string, { table, where, changes, count }: Copies): Promise<void> {
  await withDatabase(database_url, async (run) => {
    const found = await run(`select * from ${table} where ${where}`)
    if (found.length !== 1) throw new Error(`${found.length} rows of ${table} to copy instead of 1`)
    const names = Object.keys(found[0]!)
    const missing = Object.keys(changes).filter((name) => !names.includes(name))
    if (missing.length > 0) throw new Error(`${table} has no ${missing.join(', ')}`)
    const values = names.map((name) => changes[name] ?? `original.${name}`)
    await run(
      `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
       insert into ${table} (${names.join(', ')})
       select ${values.join(', ')} from numbers, (select * from ${table} where ${where}) as original`,
    )
  })
}
