// Every store and API test runs on both engines through the same code.

import { afterAll, describe } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from '../../src/db/db.ts'
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
  /** A new database, migrated and open; closed after the tests of this block. */
  open(clock?: TestClock): Promise<{ db: Db; clock: TestClock; url: string }>
}

const engines = quick ? (['sqlite'] as const) : (['sqlite', 'postgres'] as const)

/** Runs a block of tests once on SQLite and once on PostgreSQL; the quick run leaves PostgreSQL out. */
export function forEachDatabase(name: string, block: (databases: TestDatabases) => void): void {
  for (const engine of engines) {
    describe(`${name} (${engine})`, () => {
      const closing: (() => Promise<void>)[] = []
      afterAll(async () => {
        for (const close of closing.reverse()) await close()
      })
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
      block({
        engine,
        newUrl,
        async open(clock = new TestClock()) {
          const url = await newUrl()
          const db = await openDb(url, { clock, exclusive: true, onFatal: failTest })
          await migrate(db, migrations)
          closing.push(() => db.close())
          return { db, clock, url }
        },
      })
    })
  }
}

/** A block of tests that need PostgreSQL, which the quick run leaves out. */
export function onPostgres(name: string, block: () => void): void {
  if (!quick) describe(name, block)
}

function failTest(error: unknown): void {
  throw error
}
