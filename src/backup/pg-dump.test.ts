// The dump of docs/backup.md, as it is printed, where pg_dump is there and as new as the server.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { Operator } from '../../test/support/admin.ts'
import { blocksOf } from '../../test/support/checkout.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { test_ms_max } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { quick } from '../../test/support/quick.ts'
import { TestService } from '../../test/support/service.ts'

const SECRET_KEY = 'the secret key of the dump tests'
const folder = mkdtempSync(join(tmpdir(), 'waystation-pg-dump-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** 0 when it is not there. */
function majorOf(program: string): number {
  if (Bun.which(program) === null) return 0
  const { stdout } = Bun.spawnSync([program, '--version'])
  return Number(/(\d+)(\.\d+)?/.exec(stdout.toString())?.[1] ?? 0)
}

const dump = blocksOf('docs/backup.md', 'sh').find((block) => block.includes('pg_dump '))!

test('the page prints a dump whose last line is the quarantine', () => {
  const lines = dump.trimEnd().split('\n')
  expect(
    lines.map((line) => line.replace(/^(DATABASE_URL=\S+|PGOPTIONS='[^']*') /, '').split(' ')[0]),
  ).toEqual([...['pg_dump', 'createdb', 'pg_restore', 'npm']])
})

/** 0 where no server is started. */
async function serverMajor(): Promise<number> {
  if (quick) return 0
  const url = await newPostgresDatabase()
  const connection = new SQL({ url, max: 1 })
  const [row] = await connection`show server_version`
  await connection.close()
  await dropPostgresDatabase(url)
  return Number.parseInt(row.server_version, 10)
}

const server_major = await serverMajor()
const is_dumped = server_major > 0 && majorOf('pg_dump') >= server_major

onPostgres('A dump of PostgreSQL', () => {
  const name = crypto.randomUUID().slice(0, 8)
  const [owner, login, role] = ['owner', 'login', 'role'].map((one) => `${one}_${name}`) as [
    string,
    string,
    string,
  ]
  const urlOf = (url: string, user: string) => url.replace('postgres:postgres@', `${user}:${user}@`)
  const made: string[] = []
  let all: SQL

  beforeAll(async () => {
    made.push(await newPostgresDatabase())
    all = new SQL({ url: made[0]!, max: 1 })
    for (const one of [owner, login]) await all.unsafe(`create role ${one} login password '${one}'`)
    await all.unsafe(`create role ${role} nologin; grant ${role} to ${owner}`).simple()
  })
  afterAll(async () => {
    for (const url of made.slice(1)) await dropPostgresDatabase(url)
    for (const one of [login, role, owner, `${role}_of_superuser`])
      await all.unsafe(`drop role if exists ${one}`)
    await all.close()
    await dropPostgresDatabase(made[0]!)
  })

  /** Rows of each table, as a superuser counts them, who may see all. */
  async function rowsOf(url: string): Promise<Record<string, number>> {
    const connection = new SQL({ url, max: 1 })
    const counts: Record<string, number> = {}
    const tables =
      await connection`select tablename as name from pg_tables where schemaname = 'public' order by 1`
    for (const { name } of tables)
      counts[name] = (await connection.unsafe(`select count(*)::int as rows from ${name}`))[0].rows
    await connection.close()
    return counts
  }

  interface Setting {
    env: (url: string) => { DATABASE_URL: string; DATABASE_OWNER_URL?: string }
    database_role: string
    /** Of the shell that dumps, where it has less than the service. */
    shell?: (url: string) => Record<string, string>
    has_session_settings?: boolean
  }
  const two_logins = (url: string) => ({
    ...{ DATABASE_URL: urlOf(url, login), DATABASE_OWNER_URL: urlOf(url, owner) },
  })
  const settings: [string, Setting][] = [
    ['a superuser', { env: (url) => ({ DATABASE_URL: url }), database_role: `${role}_of_superuser` }],
    ['the owner of two logins', { env: two_logins, database_role: login }],
    [
      'the login that row-level security binds',
      { env: two_logins, database_role: login, shell: (url) => ({ DATABASE_URL: urlOf(url, login) }) },
    ],
    [
      'one login after session-settings',
      {
        env: (url) => ({ DATABASE_URL: urlOf(url, owner) }),
        database_role: role,
        has_session_settings: true,
      },
    ],
  ]

  // Named, so that a run says what it has not shown.
  if (!is_dumped)
    return test('is not tried here: pg_dump is not there, or older than the server', () => {
      expect(majorOf('pg_dump')).toBeLessThan(server_major)
    })

  test.each(settings)(
    'by %s has every row, and is in quarantine before it is served',
    async (_, { env, database_role, shell, has_session_settings }) => {
      const database_url = made[0]!.replace(/\w+$/, `source_${crypto.randomUUID().replaceAll('-', '')}`)
      await all.unsafe(`create database ${database_url.split('/').at(-1)} owner ${owner} template template0`)
      made.push(database_url)
      const urls = env(database_url)
      const environment = { ...urls, DATABASE_ROLE: database_role, SECRET_KEY }
      const source = new TestService({ ...environment, ROW_LEVEL_SECURITY: 'required' })
      source.engine = 'postgres'
      await source.start(urls.DATABASE_URL)
      const { admin_key, api_key } = await source.signUp()
      await source.ask('PUT', '/v1/kv/n/k', { key: api_key, body: { value: 1 } })
      if (has_session_settings) await new Operator(environment).does('session-settings')
      await source.stop()

      const restored = database_url.replace('source_', 'dump_')
      made.push(restored)
      const commands = dump
        .replaceAll('waystation_restored', restored.split('/').at(-1)!)
        .replace(/^DATABASE_URL=.*$/m, '')
      const { hostname, port, username, password } = new URL(database_url)
      const ran = Bun.spawnSync(['bash', '-ec', commands], {
        cwd: folder,
        env: {
          ...{ PATH: process.env.PATH ?? '', PGHOST: hostname, PGPORT: port, PGUSER: username },
          ...{ PGPASSWORD: password, ...(shell ?? env)(database_url) },
        },
      })
      expect([ran.exitCode, ran.stderr.toString()]).toEqual([0, ''])
      const rows = await rowsOf(restored)
      expect(rows).toEqual(await rowsOf(database_url))
      expect([rows.tenants, rows.kv_entries]).toEqual([1, 1])
      const operator = new Operator({ DATABASE_URL: restored, DATA_DIR: folder, SECRET_KEY })
      expect(await operator.json('quarantine', '--yes')).toMatchObject({ tenants: 1, epoch: 2 })
      const copy = new TestService({ SECRET_KEY })
      copy.engine = 'postgres'
      await copy.start(restored)
      try {
        const me = await copy.ask('GET', '/v1/tenants/me', { key: admin_key })
        expect([me.status, me.body.quarantined_since]).toEqual([200, expect.any(String)])
      } finally {
        await copy.stop()
      }
    },
    test_ms_max,
  )
})
