import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { onPostgres } from '../../test/support/databases.ts'
import { test_ms_max } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { emptyCopy } from '../backup/empty.ts'
import { systemClock } from '../base/clock.ts'
import { migrations } from '../features.ts'
import { unnamedAcrossTenants } from './db.ts'
import { migrate } from './migrate.ts'
import { openDb } from './open.ts'
import { copyPostgres, fillPostgres, isEmptyPostgres } from './postgres-copy.ts'

const kib = 1_024
const mib = 1_048_576
const folder = mkdtempSync(join(tmpdir(), 'waystation-copy-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Rows of keys and values, so many at a time with values of so many bytes. */
async function fill(url: string, parts: readonly { rows: number; bytes: number }[]): Promise<void> {
  const db = await openDb(url, { clock: systemClock, exclusive: false, onFatal() {} })
  await migrate(db, migrations)
  for (const [part, { rows, bytes }] of parts.entries()) {
    const filled = unnamedAcrossTenants(
      'filled',
      `insert into kv_entries (tenant_id, namespace, key, version, created_version, counted, updated_at, value)
       select 'tnt_a', 'part-${part}', 'key-' || i, 1, 1, 1, 1, repeat('é', ${bytes / 2})
         from generate_series(1, ${rows}) as i`,
    )
    await db.write((tx) => tx.run(filled, {}))
  }
  await db.close()
}

onPostgres('A copy of PostgreSQL', () => {
  test(
    'holds few large values in memory at once, also after many small ones, and has every row',
    async () => {
      const url = await newPostgresDatabase()
      const large = Array.from({ length: 10 }, () => ({ rows: 50, bytes: 256 * kib }))
      await fill(url, [{ rows: 5_000, bytes: 10 }, ...large])
      const empty = await emptyCopy(join(folder, 'copy.db'))
      const keys = new Set<string>()
      const written = new Map<string, number>()
      let bytes_held_most = 0
      let pieces = 0
      try {
        await copyPostgres(url, {
          tables: () => empty.tables(),
          exec() {},
          count: (table) => written.get(table) ?? 0,
          insert(text, rows) {
            const table = /^insert into (\w+) /.exec(text)![1]!
            written.set(table, (written.get(table) ?? 0) + rows.length)
            const bytes = rows.flat().reduce<number>((sum, cell) => sum + Buffer.byteLength(String(cell)), 0)
            bytes_held_most = Math.max(bytes_held_most, bytes)
            if (!text.startsWith('insert into kv_entries ')) return
            pieces += 1
            for (const [, namespace, key] of rows) keys.add(`${namespace}/${key}`)
          },
        })
      } finally {
        empty.close()
        await dropPostgresDatabase(url)
      }
      expect(keys.size).toBe(5_500)
      expect(bytes_held_most).toBeLessThan(5 * mib)
      expect(pieces).toBeLessThan(50) // small rows are still read many at once
    },
    test_ms_max,
  )

  test(
    'that has not every row is not taken for whole, in either direction',
    async () => {
      const [url, other] = [await newPostgresDatabase(), await newPostgresDatabase()]
      await fill(url, [{ rows: 10, bytes: 10 }])
      const copy = await emptyCopy(join(folder, 'lossy.db'))
      try {
        const lossy = new Proxy(copy, {
          get(target, name) {
            if (name === 'insert')
              return (text: string, rows: [][]) =>
                copy.insert(text, text.startsWith('insert into kv_entries ') ? rows.slice(1) : rows)
            const value = Reflect.get(target, name)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
        await expect(copyPostgres(url, lossy)).rejects.toThrow('kv_entries has 10 rows, and 9 were copied')
        const claiming = new Proxy(copy, {
          get(target, name) {
            if (name === 'count')
              return (table: string) => copy.count(table) + (table === 'kv_entries' ? 1 : 0)
            const value = Reflect.get(target, name)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
        await expect(fillPostgres(other, claiming)).rejects.toThrow(
          'kv_entries has 10 rows, and 9 were copied',
        )
        expect(await isEmptyPostgres(other)).toBe(true)
      } finally {
        copy.close()
        for (const each of [url, other]) await dropPostgresDatabase(each)
      }
    },
    test_ms_max,
  )

  test(
    'takes its time where the role has the limits of requests, between its statements as well',
    async () => {
      const [url, other] = [await newPostgresDatabase(), await newPostgresDatabase()]
      await fill(url, [{ rows: 5_000, bytes: 100 }])
      const copy = await emptyCopy(join(folder, 'slow.db'))
      for (const each of [url, other]) {
        const connection = new SQL({ url: each, max: 1 })
        const name = new URL(each).pathname.slice(1)
        for (const limited of ['idle_in_transaction_session_timeout = 1', 'enable_seqscan = off'])
          await connection.unsafe(`alter role postgres in database ${name} set ${limited}`)
        await connection.close()
      }
      try {
        await copyPostgres(url, copy)
        await fillPostgres(other, copy)
        expect(await isEmptyPostgres(other)).toBe(false)
      } finally {
        copy.close()
        for (const each of [url, other]) await dropPostgresDatabase(each)
      }
    },
    test_ms_max,
  )
})
