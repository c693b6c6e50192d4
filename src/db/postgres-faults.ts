// Damage that PostgreSQL finds in its own files.

import { DbError, translate } from './errors.ts'
import { beginning, connected, tableNames } from './postgres-copy.ts'

/** SQLSTATE of a right that the login does not have, which is not damage. */
const insufficient_privilege = '42501'

export interface PostgresFaults {
  faults: string[]
  /** The reasons for which indexes were not looked through. */
  denied: string[]
  /** The extension amcheck is there; without it no index was looked through. */
  checks_indexes: boolean
  data_checksums: boolean
}

/** Reads every row of every table, which finds what data checksums find, and looks through indexes where amcheck is there. */
export function postgresFaults(url: string): Promise<PostgresFaults> {
  return connected(url, async (connection) => {
    const all = async <Row>(text: string) => (await connection.unsafe(text)) as Row[]
    const [checksums] = await all<{ data_checksums: string }>('show data_checksums')
    const [amcheck] = await all<{ found: bigint }>(
      `select count(*) as found from pg_extension where extname = 'amcheck'`,
    )
    const checks_indexes = Number(amcheck!.found) > 0
    const faults: string[] = []
    const denied = new Set<string>()
    const attempt = async (text: string) => {
      try {
        await connection.unsafe(`${beginning()}; ${text}; commit`)
      } catch (error) {
        await connection.unsafe('rollback')
        if (translate('postgres', error) instanceof DbError) throw error // cancelled, or without memory: nothing was found
        const { message, errno } = error as Error & { errno?: string }
        if (errno === insufficient_privilege) denied.add(message)
        else faults.push(message)
      }
    }
    for (const name of await tableNames(connection)) await attempt(`select count(t.*::text) from "${name}" t`)
    if (denied.size > 0)
      throw new Error(
        `${[...denied].join('\n')}\nset DATABASE_OWNER_URL to the owner of the tables: not all of them were checked`,
      )
    const indexes = await all<{ oid: bigint | number }>(
      `select c.oid from pg_class c join pg_am a on a.oid = c.relam and a.amname = 'btree'
         join pg_namespace n on n.oid = c.relnamespace where n.nspname = current_schema() and c.relkind = 'i'`,
    )
    if (checks_indexes) for (const { oid } of indexes) await attempt(`select bt_index_check(${oid}, true)`)
    return { faults, denied: [...denied], checks_indexes, data_checksums: checksums?.data_checksums === 'on' }
  })
}
