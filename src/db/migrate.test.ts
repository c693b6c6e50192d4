import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { forEachDatabase, onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { hashOf } from '../base/keys.ts'
import { features, migrations } from '../features.ts'
import { type Awaitable, type Db, type Owner, type Tx, unnamedAcrossTenants } from './db.ts'
import { type Migration, migrate, requireCurrent } from './migrate.ts'
import { openDb } from './open.ts'

const first: Migration = {
  name: 'first',
  text: `-- a comment
    create table notes (id {text} primary key, n {integer} not null) {keyed};
    create index notes_n on notes (n);`,
}
const second: Migration = {
  name: 'second',
  text: `insert into notes (id, n) values ('from the second', 2);
alter table notes add column extra {text};
`,
}
const third: Migration = {
  name: 'third',
  text: `insert into notes (id, n, extra) values ('from the third', 3, 'x; y');`,
}
const third_without_notes: Migration = {
  name: 'third',
  text: 'create table others (id {text} primary key) {keyed}',
}
const failing: Migration = {
  name: 'failing',
  text: `insert into notes (id, n) values ('from the failing', 3);
create table leftover (id {text} primary key) {keyed};
insert into notes (id, n) values ('from the second', 4);`,
}

const APPLIED = unnamedAcrossTenants<{ name: string; hash: string; applied_at: number }>(
  'test.applied',
  'select name, hash, applied_at from applied_migrations order by name',
)
const NOTES = unnamedAcrossTenants<{ id: string }>('test.notes', 'select id from notes order by n')
const LEFTOVER = unnamedAcrossTenants('test.leftover', 'select id from leftover')

const namesOf = async (db: Db) => (await db.all(APPLIED, {})).map(({ name }) => name)
const notesOf = async (db: Db) => (await db.all(NOTES, {})).map(({ id }) => id)

describe('the list of migrations', () => {
  test('is that of the features: a schema.sql each, under the name of its folder', () => {
    const files = [...new Bun.Glob('*/schema.sql').scanSync(join(import.meta.dir, '..'))].toSorted()
    const first = migrations.filter(({ name }) => name.endsWith('/0001'))
    expect(first.map(({ name }) => `${dirname(name)}/schema.sql`).toSorted()).toEqual(files)
    for (const { name, text } of first) {
      expect(text).toBe(readFileSync(join(import.meta.dir, '..', dirname(name), 'schema.sql'), 'utf8'))
    }
    for (const { name: folder, migrations = [] } of features) {
      const numbered = migrations.map((_, i) => `${folder}/${String(i + 1).padStart(4, '0')}`)
      expect(migrations.map(({ name }) => name)).toEqual(numbered)
    }
  })

  test('has every released one as it was', () => {
    const hashes = new Map(migrations.map(({ name, text }) => [name, hashOf(text)]))
    const released = JSON.parse(readFileSync(join(import.meta.dir, 'released.json'), 'utf8'))
    expect(Object.keys(released).length).toBeGreaterThan(10)
    const now = Object.keys(released).map((name) => [name, hashes.get(name)])
    expect(Object.fromEntries(now)).toEqual(released)
  })
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
      { name: 'first', hash: hashOf(first.text), applied_at },
      { name: 'second', hash: hashOf(second.text), applied_at },
      { name: 'third', hash: hashOf(third.text), applied_at: applied_at + 1_000 },
    ])
    expect(await notesOf(db)).toEqual(['from the second', 'from the third'])
    await closeAll()
  })

  test('a file that fails leaves nothing behind, those before it stay, and it runs whole once it is mended', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    await expect(migrate(db, [first, second, failing])).rejects.toThrow(/unique/i)
    expect(await namesOf(db)).toEqual(['first', 'second'])
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
    expect(await namesOf(db)).toEqual(['first', 'second', 'third'])
    await closeAll()
  })

  test('a new one of a feature is applied, wherever it stands in the list', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    await migrate(db, [first, third_without_notes])
    expect(await migrate(db, [first, second, third_without_notes])).toBe(3)
    expect(await notesOf(db)).toEqual(['from the second'])
    await closeAll()
  })

  test('a schema that was made with another text is refused, and stays as it is', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    await migrate(db, [first])
    const changed = { ...first, text: `${first.text} ` }
    const refusal =
      'the database was made with another first than this release has: run the release that made it'
    await expect(migrate(db, [changed, second])).rejects.toThrow(refusal)
    await expect(requireCurrent(db, [changed])).rejects.toThrow(refusal)
    expect(await namesOf(db)).toEqual(['first'])
    await closeAll()
  })

  const older = 'create table schema_migrations (version integer primary key, name text, applied_at integer)'

  test('a database of this release opens again after an older one has left its table in it', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    await migrate(db, [first])
    await db.write((tx) => tx.run(unnamedAcrossTenants('test.older', older), {}))
    expect(await requireCurrent(db, [first])).toBe(1)
    expect(await migrate(db, [first, second])).toBe(2)
    expect(await notesOf(db)).toEqual(['from the second'])
    await closeAll()
  })

  test('a database from before the first release is refused in one line, and stays as it is', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    await db.write((tx) => tx.run(unnamedAcrossTenants('test.older', older), {}))
    const refusal = 'the database was made before release 0.1.0 and cannot be read: use a new one'
    await expect(migrate(db, [first])).rejects.toThrow(new Error(refusal))
    await expect(requireCurrent(db, [first])).rejects.toThrow(new Error(refusal))
    await expect((async () => namesOf(db))()).rejects.toThrow(/applied_migrations/)
    await closeAll()
  })

  test('a command beside the service asks for the schema of its release, and writes nothing', async () => {
    const { dbs } = await blank()
    const [db] = dbs as [Db]
    const refusal = (has: number) => `the database has schema version ${has}, this release has 2`
    await expect(requireCurrent(db, [first, second])).rejects.toThrow(refusal(0))
    await migrate(db, [first])
    await expect(requireCurrent(db, [first, second])).rejects.toThrow(refusal(1))
    await migrate(db, [first, second, third])
    await expect(requireCurrent(db, [first, second])).rejects.toThrow(
      'the database has schema version 3, this release knows 2: run a newer release',
    )
    await closeAll()
  })

  test('nodes that start at the same time all end at the same version, each file applied once', async () => {
    const { dbs } = await blank(4)
    const answers = await Promise.all(dbs.map((db) => migrate(db, [first, second, third])))
    expect(answers).toEqual([3, 3, 3, 3])
    expect(await namesOf(dbs[0]!)).toEqual(['first', 'second', 'third'])
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

  test('a release that learns only in the middle that a newer one has migrated still refuses', async () => {
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
    expect(await migrate(db, migrations)).toBe(migrations.length)
    const applied = await db.all(APPLIED, {})
    expect(await migrate(db, migrations)).toBe(migrations.length)
    expect(await db.all(APPLIED, {})).toEqual(applied)
    expect(applied.map(({ name }) => name)).toEqual(migrations.map(({ name }) => name).toSorted())
    expect(await requireCurrent(db, migrations)).toBe(migrations.length)
    await closeAll()
  })
})

onPostgres('on PostgreSQL', () => {
  test('a file for which the server has not enough room is tried once, however long it took', async () => {
    const url = await newPostgresDatabase()
    const db = await openDb(url, { clock: new TestClock(), exclusive: false, onFatal: () => {} })
    const large: Migration = {
      name: 'large',
      text: `set local temp_file_limit = '64kB';
create table large as select n from generate_series(1, 400000) n order by random();`,
    }
    let tries = 0
    db.onStatement((name) => {
      if (name === 'migrate.lock') tries += 1
    })
    expect(await migrate(db, migrations)).toBe(migrations.length)
    tries = 0
    await expect(migrate(db, [...migrations, large])).rejects.toThrow('temp_file_limit')
    expect(tries).toBe(2) // to look what is there, and the file
    expect(await namesOf(db)).not.toContain('large')
    await db.close()
    await dropPostgresDatabase(url)
  }, 300_000)

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
    expect(await migrate(db, migrations)).toBe(migrations.length)
    expect(tries).toBe(2)
    await released
    await other.close()
    await db.close()
    await dropPostgresDatabase(url)
  }, 300_000)
})
