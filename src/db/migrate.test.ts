import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { forEachDatabase, onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { type Awaitable, type Db, type Owner, type Tx, unnamed } from './db.ts'
import { type Migration, migrate, migrations } from './migrate.ts'
import { openDb } from './open.ts'

const first: Migration = {
  version: 1,
  name: 'first',
  text: `-- a comment
    create table notes (id {text} primary key, n {integer} not null) {keyed};
    create index notes_n on notes (n);`,
}
const second: Migration = {
  version: 2,
  name: 'second',
  text: `insert into notes (id, n) values ('from the second', 2);
alter table notes add column extra {text};
`,
}
const third: Migration = {
  version: 3,
  name: 'third',
  text: `insert into notes (id, n, extra) values ('from the third', 3, 'x; y');`,
}
const failing: Migration = {
  version: 3,
  name: 'failing',
  text: `insert into notes (id, n) values ('from the failing', 3);
create table leftover (id {text} primary key) {keyed};
insert into notes (id, n) values ('from the second', 4);`,
}

const APPLIED = unnamed<{ version: number; name: string; applied_at: number }>(
  'test.applied',
  'select version, name, applied_at from schema_migrations order by version',
)
const NOTES = unnamed<{ id: string }>('test.notes', 'select id from notes order by n')
const LEFTOVER = unnamed('test.leftover', 'select id from leftover')

const versionsOf = async (db: Db) => (await db.all(APPLIED, {})).map(({ version }) => version)
const notesOf = async (db: Db) => (await db.all(NOTES, {})).map(({ id }) => id)

test('the list of migrations is the folder of migrations, numbered without gaps', () => {
  const files = readdirSync(join(import.meta.dir, 'migrations')).toSorted()
  const listed = migrations.map(({ version, name }) => `${String(version).padStart(4, '0')}_${name}.sql`)
  expect(listed).toEqual(files)
  expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, i) => i + 1))
  for (const [i, { text }] of migrations.entries()) {
    expect(text).toBe(readFileSync(join(import.meta.dir, 'migrations', files[i]!), 'utf8'))
  }
})

/** Why the table of the failed migration cannot be read. */
async function refusalOf(db: Db): Promise<string> {
  try {
    await db.all(LEFTOVER, {})
  } catch (error) {
    return String(error)
  }
  throw new Error('the table is there')
}

forEachDatabase('migrations', (databases) => {
  const opened: Db[] = []

  /** A database without anything in it, and nodes that have it open. */
  async function blank(nodes = 1): Promise<{ dbs: Db[]; clock: TestClock; url: string }> {
    const url = await databases.newUrl()
    if (databases.engine === 'postgres') {
      const connection = new SQL({ url, max: 1 })
      await connection.unsafe('drop schema public cascade').simple()
      await connection.unsafe('create schema public').simple()
      await connection.close()
    }
    const clock = new TestClock()
    const dbs: Db[] = []
    for (let i = 0; i < nodes; i++) dbs.push(await node(url, clock))
    return { dbs, clock, url }
  }

  async function node(url: string, clock = new TestClock()): Promise<Db> {
    const onFatal = (error: unknown) => {
      throw error
    }
    const db = await openDb(url, { clock, exclusive: false, onFatal })
    opened.push(db)
    return db
  }

  /** Each test closes what it opened, so that the server's connections suffice. */
  async function closeAll(): Promise<void> {
    for (const db of opened.splice(0)) await db.close()
  }

  test('each file runs once, in order, and the answer is the newest version', async () => {
    const { dbs, clock } = await blank()
    const [db] = dbs as [Db]
    const applied_at = clock.now()
    expect(await migrate(db, [first, second])).toBe(2)
    clock.advance(1_000)
    expect(await migrate(db, [first, second, third])).toBe(3)
    expect(await migrate(db, [first, second, third])).toBe(3)
    expect([...(await db.all(APPLIED, {}))]).toEqual([
      { version: 1, name: 'first', applied_at },
      { version: 2, name: 'second', applied_at },
      { version: 3, name: 'third', applied_at: applied_at + 1_000 },
    ])
    expect(await notesOf(db)).toEqual(['from the second', 'from the third'])
    await closeAll()
  })

  test('a file that fails leaves nothing behind, those before it stay, and it runs whole once it is mended', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    await expect(migrate(db, [first, second, failing])).rejects.toThrow(/unique/i)
    expect(await versionsOf(db)).toEqual([1, 2])
    expect(await notesOf(db)).toEqual(['from the second'])
    expect(await refusalOf(db)).toMatch(/leftover/)
    expect(await migrate(db, [first, second, third])).toBe(3)
    expect(await notesOf(db)).toEqual(['from the second', 'from the third'])
    await closeAll()
  })

  test('a schema newer than the code is refused, and stays as it is', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    await migrate(db, [first, second, third])
    await expect(migrate(db, [first, second])).rejects.toThrow(
      'the database has schema version 3, this release knows 2: run a newer release',
    )
    await expect(migrate(db, [])).rejects.toThrow('this release knows 0')
    expect(await versionsOf(db)).toEqual([1, 2, 3])
    await closeAll()
  })

  test('nodes that start at the same time all end at the same version, each file applied once', async () => {
    const { dbs } = await blank(4)
    const answers = await Promise.all(dbs.map((db) => migrate(db, [first, second, third])))
    expect(answers).toEqual([3, 3, 3, 3])
    expect(await versionsOf(dbs[0]!)).toEqual([1, 2, 3])
    expect(await notesOf(dbs[0]!)).toEqual(['from the second', 'from the third'])
    await closeAll()
  })

  test('an old and a new release that start together: the new schema stands, and the old release refuses it or came first', async () => {
    const { dbs } = await blank(2)
    const [old_node, new_node] = dbs as [Db, Db]
    const [old_result, new_result] = await Promise.allSettled([
      migrate(old_node, [first]),
      migrate(new_node, [first, second, third]),
    ])
    expect(new_result).toEqual({ status: 'fulfilled', value: 3 })
    const told = old_result.status === 'fulfilled' ? old_result.value : String(old_result.reason)
    // The newer release takes one step at a time: the old one may look after any of them.
    const refusal = (version: number) =>
      `Error: the database has schema version ${version}, this release knows 1: run a newer release`
    expect([1, refusal(2), refusal(3)]).toContain(told)
    await closeAll()
  })

  test('a release that learns only in the middle that a newer one has migrated refuses all the same', async () => {
    const { dbs } = await blank(2)
    const [old_node, new_node] = dbs as [Db, Db]
    let writes = 0
    const overtaken: Db = Object.create(old_node, {
      write: {
        async value(owner: Owner, work: (tx: Tx) => Awaitable<number>) {
          writes += 1
          if (writes === 2) await migrate(new_node, [first, second, third])
          return old_node.write(owner, work)
        },
      },
    })
    await expect(migrate(overtaken, [first])).rejects.toThrow(
      'the database has schema version 3, this release knows 1: run a newer release',
    )
    await closeAll()
  })

  test('the schema of this release comes about on a blank database, and again changes nothing', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    expect(await migrate(db)).toBe(migrations.length)
    expect(await migrate(db)).toBe(migrations.length)
    expect(await versionsOf(db)).toEqual(migrations.map(({ version }) => version))
    await closeAll()
  })
})

onPostgres('on PostgreSQL', () => {
  test('a node waits longer than one lock time-out while another one migrates', async () => {
    const url = await newPostgresDatabase()
    const db = await openDb(url, { clock: new TestClock(), exclusive: false, onFatal: () => {} })
    const other = new SQL({ url, max: 1 })
    await other.unsafe('begin').simple()
    await other.unsafe('select pg_advisory_xact_lock(8420)')
    let tries = 0
    let released: Promise<unknown> | undefined
    db.onStatement((name) => {
      if (name !== 'migrate.lock') return
      tries += 1
      if (tries === 2) released = Promise.resolve(other.unsafe('commit').simple())
    })
    expect(await migrate(db)).toBe(migrations.length)
    expect(tries).toBeGreaterThan(2)
    await released
    await other.close()
    await db.close()
    await dropPostgresDatabase(url)
  }, 30_000)
})
