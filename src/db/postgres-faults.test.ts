import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { onPostgres } from '../../test/support/databases.ts'
import { until } from '../../test/support/patience.ts'
import {
  administer,
  dropPostgresDatabase,
  newPostgresDatabase,
  ownerUrlOf,
} from '../../test/support/postgres.ts'
import { postgresFaults } from './postgres-faults.ts'

onPostgres('A look for damage', () => {
  let url: string
  let sql: SQL
  beforeAll(async () => {
    url = ownerUrlOf(await newPostgresDatabase())
    sql = new SQL({ url, max: 1 })
    const at = url.lastIndexOf('/')
    // As session-settings sets it for the role, or an operator for all programs.
    await administer(url.slice(0, at), `alter database ${url.slice(at + 1)} set lock_timeout = '20ms'`)
  })
  afterAll(async () => {
    await sql.close()
    await dropPostgresDatabase(url)
  })

  const waits = async () => {
    const [row] = await sql.unsafe(`select count(*)::int as n from pg_locks
      where not granted and relation = 'tenants'::regclass
        and database = (select oid from pg_database where datname = current_database())`)
    return row.n > 0
  }

  /** Looks while somebody holds a table, as `vacuum full` does. */
  async function besideLock(meanwhile: () => Promise<unknown>): Promise<string[]> {
    await sql.unsafe('begin; lock table tenants in access exclusive mode')
    const found = postgresFaults(url)
    found.catch(() => {})
    await until(waits)
    await Bun.sleep(50)
    await meanwhile()
    await sql.unsafe('commit')
    return (await found).faults
  }

  test('waits for a table that is locked, and takes that for none', async () => {
    expect(await besideLock(async () => {})).toEqual([])
  })

  test('that is cancelled fails, and has found none', async () => {
    const cancel = () =>
      sql.unsafe(`select pg_cancel_backend(pid) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'`)
    await expect(besideLock(cancel)).rejects.toThrow('canceling statement due to user request')
  })

  test('also reads a table of another program, whatever its name', async () => {
    await sql.unsafe('create table "Notes of Others" (id integer)')
    expect((await postgresFaults(url)).faults).toEqual([])
  })
})
