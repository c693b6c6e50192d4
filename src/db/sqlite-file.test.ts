// Files of other programs that DATABASE_URL names by mistake. On SQLite alone: a database of PostgreSQL may be shared.

import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import { databaseFolder } from '../../test/support/folders.ts'
import { prepareDatabase } from '../app/start.ts'
import { systemClock } from '../base/clock.ts'
import { readConfig } from '../config.ts'
import { requireOwn } from './sqlite-file.ts'

const folder = databaseFolder()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
function made(...statements: string[]): string {
  const path = join(folder, `${++files}.db`)
  const db = new Database(path, { create: true })
  for (const statement of statements) db.run(statement)
  db.close(true)
  return path
}

function start(path: string): Promise<unknown> {
  const config = readConfig({ DATABASE_URL: `sqlite:${path}`, DATA_DIR: `${path}.secrets` })
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  return prepareDatabase(config, { clock: systemClock, log, onFatal() {} })
}

/** Its own and those that SQLite has made beside it. */
function filesOf(path: string): string[] {
  return readdirSync(folder).filter((name) => new RegExp(`^${basename(path)}(-|$)`).test(name))
}

const tables = ['a', 'b', 'c', 'd'].map(
  (name) => `create table places_${name} (id integer primary key, url text)`,
)

describe('A database of another program', () => {
  test.each([
    [1, 'places_a'],
    [3, 'places_a, places_b, places_c'],
    [4, 'places_a, places_b, places_c, …'],
  ])('ends the start with one line that names its tables: %d of them', async (count, named) => {
    const path = made(...tables.slice(0, count), "insert into places_a (url) values ('https://example.com')")
    const before = readFileSync(path)
    await expect(start(path)).rejects.toThrow(
      `DATABASE_URL: ${path} is a database of another program (it has the tables ${named}): name a new file`,
    )
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(filesOf(path)).toEqual([basename(path)])
  })

  test.each(['delete', 'wal'])('is left as it is, and alone, in journal mode %s', async (mode) => {
    const path = made(`pragma journal_mode = ${mode}`, tables[0]!)
    const before = readFileSync(path)
    await expect(start(path)).rejects.toThrow('is a database of another program')
    const operator = new Operator({ DATABASE_URL: `sqlite:${path}`, DATA_DIR: `${path}.secrets` })
    for (const words of [['tenants'], ['vacuum'], ['backup', `${path}.copy`]])
      expect(await operator.refusal(...words)).toBe(
        `waystation admin: ${path} is a database of another program (it has the tables places_a): name a new file`,
      )
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(filesOf(path)).toEqual([basename(path)])
  })

  test('is known also after a crash that has left a journal', async () => {
    const running = new Database(made(tables[0]!))
    running.run('pragma cache_size = 2')
    running.run('begin')
    running.run(`insert into places_a (url)
      select hex(randomblob(500)) from (values (1), (2), (3), (4), (5)) a, (values (1), (2), (3), (4), (5)) b`)
    const path = join(folder, 'crashed.db')
    for (const end of ['', '-journal']) copyFileSync(`${running.filename}${end}`, `${path}${end}`)
    running.close()
    await expect(start(path)).rejects.toThrow('is a database of another program (it has the tables places_a)')
  })

  test('is known also with a table schema_migrations, as many programs have', async () => {
    const path = made('create table schema_migrations (version text primary key)', tables[0]!)
    await expect(start(path)).rejects.toThrow('(it has the tables schema_migrations, places_a)')
  })

  test('is known also by its log alone', async () => {
    const path = made('pragma journal_mode = wal')
    const other = new Database(path)
    other.run(tables[0]!)
    await expect(start(path)).rejects.toThrow('is a database of another program (it has the tables places_a)')
    expect(other.query('select count(*) as n from places_a').get()).toEqual({ n: 0 })
    other.close(true)
  })
})

describe('A file is served', () => {
  test('that is not there yet, is empty, or is a database without tables', async () => {
    const empty = join(folder, 'empty.db')
    writeFileSync(empty, '')
    for (const path of [join(folder, 'none.db'), empty, made('pragma user_version = 7')]) {
      await start(path)
      expect(existsSync(path)).toBe(true)
    }
  })

  test('that the service has made, also with tables of an operator beside its own', async () => {
    const path = made()
    await start(path)
    const beside = new Database(path)
    beside.run('create table notes (text)')
    beside.close(true)
    await start(path)
    expect(() => requireOwn(path)).not.toThrow()
  })

  test('in which Litestream has begun before the service', async () => {
    const path = made(
      'create table _litestream_seq (id integer)',
      'create table _litestream_lock (id integer)',
    )
    await start(path)
    expect(() => requireOwn(path)).not.toThrow()
  })
})
