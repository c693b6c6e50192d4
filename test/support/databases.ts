// Every store and API test runs on both engines through the same code.

import { afterAll, describe } from 'bun:test'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import type { Db } from '../../src/db/db.ts'
import { DbError } from '../../src/db/errors.ts'
import { migrate } from '../../src/db/migrate.ts'
import { openDb } from '../../src/db/open.ts'
import { migrations } from '../../src/features.ts'
import { TestClock } from './clock.ts'
import { databaseFolder } from './folders.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './postgres.ts'
import { quick } from './quick.ts'

export interface TestDatabases {
  engine: 'sqlite' | 'postgres'
  /** The URL of a new, empty database. */
  newUrl(): Promise<string>
  /** The same with the tables in it, for tests that are not about how they are made. */
  newUrlWithTables(): Promise<string>
  /** A new database, migrated and open; closed after the tests of this block. */
  open(clock?: TestClock): Promise<{ db: Db; clock: TestClock; url: string }>
}

const engines = quick ? (['sqlite'] as const) : (['sqlite', 'postgres'] as const)

/** Runs a block of tests once on SQLite and once on PostgreSQL; the quick run leaves PostgreSQL out. */
export function forEachDatabase(name: string, block: (databases: TestDatabases) => void): void {
  for (const engine of engines) {
    describe(`${name} (${engine})`, () => {
      const closing: (() => Promise<void>)[] = []
      const newUrl = async () => {
        if (engine === 'sqlite') {
          const folder = databaseFolder()
          closing.push(async () => rmSync(folder, { recursive: true, force: true }))
          return `sqlite:${join(folder, 'test.db')}`
        }
        const url = await newPostgresDatabase()
        closing.push(() => dropPostgresDatabase(url))
        return url
      }
      const newUrlWithTables = async () => {
        const url = await newUrl()
        if (engine === 'sqlite') writeFileSync(url.slice('sqlite:'.length), await fileWithTables())
        return url // a new one of PostgreSQL is a copy of one with tables
      }
      block({
        engine,
        newUrl,
        newUrlWithTables,
        async open(clock = new TestClock()) {
          const url = await newUrlWithTables()
          const db = await openDb(url, { clock, exclusive: true, onFatal: failTest })
          await migrate(db, migrations)
          closing.push(() => db.close())
          return { db, clock, url }
        },
      })
      // Hooks run in the order in which they are set: what the block has started ends before its databases go.
      afterAll(async () => {
        for (const close of closing.reverse()) await close()
      })
    })
  }
}

/** A block of tests that need PostgreSQL, which the quick run leaves out. */
export function onPostgres(name: string, block: () => void): void {
  if (!quick) describe(name, block)
}

let file_with_tables: Promise<Buffer> | undefined

/** Made once for all databases of this process: to make the tables takes longer than most tests. */
function fileWithTables(): Promise<Buffer> {
  file_with_tables ??= (async () => {
    const folder = databaseFolder()
    try {
      const path = join(folder, 'template.db')
      const db = await openDb(`sqlite:${path}`, { clock: systemClock, exclusive: true, onFatal: failTest })
      await migrate(db, migrations)
      await db.close() // moves the log into the file
      return readFileSync(path)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })()
  return file_with_tables
}

function failTest(error: unknown): void {
  throw error
}

/** The end of a call to a database, in words: `done`, or the kind and message of its error. */
export async function endOf(action: () => unknown): Promise<string> {
  try {
    await action()
    return 'done'
  } catch (error) {
    return error instanceof DbError ? `${error.kind}: ${error.message}` : String(error)
  }
}
