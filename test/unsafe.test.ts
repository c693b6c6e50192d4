// Real start-ups that must be refused: one line that says why, exit code 1, nothing served.
// Conditions that cannot be created here (a network file system, an old SQLite) are in src/db/dialect.test.ts.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { openDb } from '../src/db/open.ts'
import { changeSchema } from '../src/db/schema-lock.ts'
import { default_plans, migrations } from '../src/features.ts'
import { forEachDatabase, onPostgres } from './support/databases.ts'
import { freePort } from './support/ports.ts'
import { administer, dropPostgresDatabase, newPostgresDatabase, startCluster } from './support/postgres.ts'
import { refusedStart, type ServerProcess, startServer } from './support/server-process.ts'

/** Starting a cluster and a process takes a moment on a busy machine. */
const start_ms_max = 300_000
const first_key = 'the first secret key of this test'
const other_key = 'another secret key of this test'

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-unsafe-'))
  folders.push(folder)
  return folder
}

async function expectRefusal(environment: Record<string, string>, line: string | RegExp): Promise<void> {
  const { exit_code, stdout, stderr } = await refusedStart({ DATA_DIR: newFolder(), ...environment })
  expect(stderr).toMatch(line)
  expect(stderr.trim().split('\n').length).toBe(1)
  expect(stdout).toBe('')
  expect(exit_code).toBe(1)
}

/** Starts, does this, and stops as an operator would. */
async function serving<T>(
  environment: Record<string, string>,
  action: (server: ServerProcess) => Promise<T>,
): Promise<T> {
  const server = await startServer({ DATA_DIR: newFolder(), ...environment })
  try {
    return await action(server)
  } finally {
    expect(await server.stop()).toBe(0)
  }
}

async function signUp({ url }: ServerProcess): Promise<number> {
  const response = await fetch(`${url}/v1/tenants`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: `t-${crypto.randomUUID()}`.slice(0, 20), owner_email: 'owner@example.com' }),
  })
  return response.status
}

forEachDatabase('a start is refused', (databases) => {
  test(
    'when the schema is newer than the code',
    async () => {
      const { db, url } = await databases.open()
      const newest = migrations.length
      const insert = unnamedAcrossTenants(
        'test.newer',
        `insert into applied_migrations (name, hash, applied_at) values ('future/0001', 'any', 0)`,
      )
      await changeSchema(db, (tx) => Promise.resolve(tx.run(insert, {}))) // as the owner of the tables
      await db.close()
      await expectRefusal(
        { DATABASE_URL: url },
        `waystation: cannot start: the database has schema version ${newest + 1}, this release knows ${newest}: run a newer release`,
      )
    },
    start_ms_max,
  )

  test(
    'when the database was made before the first release',
    async () => {
      const url = await databases.newUrl()
      const db = await openDb(url, { clock: systemClock, exclusive: true, onFatal: () => {} })
      const text =
        'create table schema_migrations (version integer primary key, name text, applied_at integer)'
      await changeSchema(db, async (tx) => {
        await tx.run(unnamedAcrossTenants('test.not_ours', 'drop table if exists applied_migrations'), {})
        await tx.run(unnamedAcrossTenants('test.older', text), {})
      })
      await db.close()
      await expectRefusal(
        { DATABASE_URL: url },
        'waystation: cannot start: the database was made before release 0.1.0 and cannot be read: use a new one',
      )
    },
    start_ms_max,
  )

  test(
    'when SECRET_KEY is not the one the database was sealed with, and not when it is',
    async () => {
      const DATABASE_URL = await databases.newUrl()
      await serving({ DATABASE_URL, SECRET_KEY: first_key }, signUp)
      const why =
        'waystation: cannot start: SECRET_KEY: this database was sealed with another key; give every node the first one'
      await expectRefusal({ DATABASE_URL, SECRET_KEY: other_key }, why)
      expect(await serving({ DATABASE_URL, SECRET_KEY: first_key }, signUp)).toBe(201)
    },
    start_ms_max,
  )

  test(
    'when the generated secret key was lost with its folder',
    async () => {
      const DATABASE_URL = await databases.newUrl()
      const DATA_DIR = newFolder()
      await serving({ DATABASE_URL, DATA_DIR }, signUp)
      await expectRefusal({ DATABASE_URL, DATA_DIR: newFolder() }, /SECRET_KEY: this database was sealed/)
      expect(await serving({ DATABASE_URL, DATA_DIR }, signUp)).toBe(201)
    },
    start_ms_max,
  )

  test(
    'when PLANS_FILE lacks a plan that tenants are on, and not when it has it',
    async () => {
      const DATABASE_URL = await databases.newUrl()
      const DATA_DIR = newFolder()
      const { free, pro } = default_plans
      const file = (name: string, plans: unknown) => {
        const path = join(DATA_DIR, name)
        writeFileSync(path, JSON.stringify(plans))
        return path
      }
      const with_gold = file('with-gold.json', { free, pro, gold: pro })
      const without = file('without.json', { free, pro })
      await serving({ DATABASE_URL, DATA_DIR, PLANS_FILE: with_gold }, signUp)
      const admin = Bun.spawnSync(
        [process.execPath, 'src/admin.ts', 'set-plan', await onlyTenant(DATABASE_URL), 'gold'],
        { cwd: join(import.meta.dir, '..'), env: { DATABASE_URL, DATA_DIR, PLANS_FILE: with_gold } },
      )
      expect(admin.exitCode).toBe(0)
      await expectRefusal(
        { DATABASE_URL, DATA_DIR, PLANS_FILE: without },
        'waystation: PLANS_FILE: tenants are on the plan "gold", which it does not have',
      )
      await expectRefusal({ DATABASE_URL, DATA_DIR }, /tenants are on the plan "gold"/)
      expect(await serving({ DATABASE_URL, DATA_DIR, PLANS_FILE: with_gold }, signUp)).toBe(201)

      async function onlyTenant(url: string): Promise<string> {
        const { stdout } = Bun.spawnSync([process.execPath, 'src/admin.ts', 'tenants'], {
          cwd: join(import.meta.dir, '..'),
          env: { DATABASE_URL: url, DATA_DIR, PLANS_FILE: with_gold },
        })
        return stdout.toString().split('\t')[0]!
      }
    },
    start_ms_max,
  )
})

describe('a start on SQLite', () => {
  test(
    'is refused while another server has the file; that one goes on, and after its end the start is good',
    async () => {
      const DATABASE_URL = `sqlite:${join(newFolder(), 'w.db')}`
      const SECRET_KEY = first_key
      await serving({ DATABASE_URL, SECRET_KEY }, async (first) => {
        await expectRefusal(
          { DATABASE_URL, SECRET_KEY },
          /^waystation: DATABASE_URL: another process has this database open \(.*w\.db\.lock\); stop it, or choose another database with DATA_DIR or DATABASE_URL$/m,
        )
        expect(await signUp(first)).toBe(201)
      })
      expect(await serving({ DATABASE_URL, SECRET_KEY }, signUp)).toBe(201)
    },
    start_ms_max,
  )

  test(
    'is refused on a file that is not a database, which stays as it is',
    async () => {
      const path = join(newFolder(), 'letter.txt')
      const text = 'Dear reader, this is not a database. '.repeat(50)
      writeFileSync(path, text)
      await expectRefusal(
        { DATABASE_URL: `sqlite:${path}` },
        /^waystation: DATABASE_URL: .*is not a SQLite database/,
      )
      expect(readFileSync(path, 'utf8')).toBe(text)
    },
    start_ms_max,
  )

  test(
    'in memory is good, and says loudly that nothing is durable',
    async () => {
      const banner = await serving({ DATABASE_URL: 'sqlite::memory:' }, async (server) => server.banner)
      expect(banner).toContain(':memory:  (gone when the process ends: nothing is durable)')
    },
    start_ms_max,
  )
})

onPostgres('a start on PostgreSQL', () => {
  test.each(['fsync', 'full_page_writes', 'synchronous_commit'])(
    'is refused with %s=off',
    async (setting) => {
      const cluster = await startCluster({ flags: ['-c', `${setting}=off`] })
      try {
        await expectRefusal(
          { DATABASE_URL: `${cluster.base_url}/postgres` },
          `waystation: DATABASE_URL: refusing to serve from this PostgreSQL: ${setting} is off, not on`,
        )
      } finally {
        await cluster.stop()
      }
    },
    start_ms_max,
  )

  test(
    'is refused when synchronous_commit is off for this database alone',
    async () => {
      const DATABASE_URL = await newPostgresDatabase()
      const at = DATABASE_URL.lastIndexOf('/')
      await administer(
        DATABASE_URL.slice(0, at),
        `alter database ${DATABASE_URL.slice(at + 1)} set synchronous_commit = off`,
      )
      await expectRefusal({ DATABASE_URL }, /synchronous_commit is off, not on/)
      await dropPostgresDatabase(DATABASE_URL)
    },
    start_ms_max,
  )

  test(
    'is refused when the database is not in UTF-8',
    async () => {
      const base_url = await baseUrl()
      const name = `ascii_${crypto.randomUUID().replaceAll('-', '')}`
      await administer(base_url, `create database ${name} encoding 'SQL_ASCII' template template0`)
      await expectRefusal(
        { DATABASE_URL: `${base_url}/${name}` },
        /refusing to serve from this PostgreSQL: server_encoding is SQL_ASCII, not UTF8/,
      )
      await dropPostgresDatabase(`${base_url}/${name}`)
    },
    start_ms_max,
  )

  test(
    'is refused when nobody listens there',
    async () => {
      const port = freePort()
      await expectRefusal(
        { DATABASE_URL: `postgres://postgres:secret@127.0.0.1:${port}/postgres` },
        /^waystation: DATABASE_URL: (?!.*secret)/,
      )
    },
    start_ms_max,
  )
})

/** Of the cluster of the run. */
async function baseUrl(): Promise<string> {
  const url = await newPostgresDatabase()
  await dropPostgresDatabase(url)
  return url.slice(0, url.lastIndexOf('/'))
}
