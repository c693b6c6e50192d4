// docs/runbook.md, done section by section as it is printed, in a fresh checkout.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { pastPooler } from './support/admin.ts'
import { blocksOf, Checkout, type Program } from './support/checkout.ts'
import { forEachDatabase } from './support/databases.ts'
import { test_ms_max, until } from './support/patience.ts'
import { ownerUrlOf } from './support/postgres.ts'

const page = 'docs/runbook.md'
const blocks = blocksOf(page, 'sh')
const [
  before,
  reset,
  with_new_key,
  restore,
  look,
  release,
  room,
  remove_old,
  vacuum,
  rotate,
  reseal,
  again,
  rescue,
  put_back,
] = blocks
const secret = { BACKUP_PASSPHRASE: 'correct horse battery staple' }

test('the runbook has no other commands than those that run here', () => {
  expect(blocks).toHaveLength(14)
})

describe('its pages begin with how the trouble is recognised and what to do now:', () => {
  const sections = readFileSync(page, 'utf8').split(/^## /m).slice(1)
  const titles = [
    'A lost admin key',
    'A lost disk',
    'A full disk',
    'A leaked SECRET_KEY',
    'A database that was removed',
  ]
  test.each(titles)('%s', (title) => {
    const section = sections.find((each) => each.startsWith(`${title}\n`))!
    expect(section).toMatch(/^.*\n\n\*\*You see:\*\* [^*]+\n\n\*\*Do now:\*\* [^*]+?\n\n```sh\n/)
  })
})

forEachDatabase('Done as it is printed', (databases) => {
  const checkout = new Checkout()
  const on_postgres = databases.engine === 'postgres'
  let service: Program | null = null
  let admin_key = ''
  /** Of PostgreSQL. SQLite has its default, in the data folder. */
  let database: Record<string, string> = {}

  beforeAll(async () => {
    if (on_postgres) database = pastPooler({ DATABASE_URL: await databases.newUrl() })
  }, test_ms_max)
  afterAll(() => checkout.clean())

  async function start(environment = ''): Promise<void> {
    service = await checkout.serve(`${environment} npm start`, database)
  }

  async function stop(): Promise<void> {
    await service!.interrupt()
  }

  function run(block: string, environment: Record<string, string> = {}): Promise<string> {
    return checkout.run(block, { ...database, ...environment })
  }

  async function ask(method: string, path: string, body?: object) {
    const answer = await fetch(checkout.url + path, {
      method,
      headers: { authorization: `Bearer ${admin_key}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: answer.status, body: JSON.parse(await answer.text()) }
  }

  /** With the disk of the service, or that of PostgreSQL. */
  async function loseDisk(): Promise<void> {
    rmSync(join(checkout.folder, 'data'), { recursive: true })
    if (on_postgres) database = pastPooler({ DATABASE_URL: await databases.newUrl() })
  }

  /** SQLite's disk has less free than is kept. PostgreSQL's own disk is full: its server refuses as it does then. */
  async function fillDisk(): Promise<void> {
    if (!on_postgres) {
      await stop()
      return start('DISK_RESERVE=9007199254740991')
    }
    await administer(`create function no_room() returns trigger language plpgsql as $$ begin
      raise exception 'could not extend file' using errcode = '53100'; end $$`)
    await administer('create trigger no_room before insert on agents execute function no_room()')
  }

  async function freeDisk(): Promise<void> {
    if (on_postgres) await administer('drop function no_room cascade')
    else await start()
  }

  /** Restores a backup into a SQLite database of its own. */
  function elsewhere(name: string, environment: Record<string, string>): Promise<string> {
    const there = `export DATA_DIR=from-${name} DATABASE_URL=sqlite:from-${name}/waystation.db DATABASE_OWNER_URL=`
    return run(`${there}\nnpm run admin -- restore backup/${name}.db`, environment)
  }

  async function administer(statement: string): Promise<void> {
    const sql = new SQL(ownerUrlOf(database.DATABASE_URL!))
    await sql.unsafe(statement)
    await sql.close()
  }

  test(
    'before anything happens: a backup with its secrets, which is whole',
    async () => {
      await start()
      const made = await ask('POST', '/v1/tenants', { name: 'acme', owner_email: 'you@example.com' })
      expect(made.status).toBe(201)
      admin_key = made.body.admin_key
      expect(await run(before!)).toContain('The secrets are beside it.')
      expect(existsSync(join(checkout.folder, 'backup/waystation.db.secrets'))).toBe(true)
    },
    test_ms_max,
  )

  test(
    'a lost admin key: the old one ends, and the new one works',
    async () => {
      const printed = await run(`${reset}\n${with_new_key}\necho "$ADMIN_KEY" > new-key`)
      expect(printed).toContain('"name":"acme"')
      const old_key = admin_key
      admin_key = checkout.read('new-key').trim()
      expect(admin_key).toMatch(/^svc_adm_/)
      expect((await ask('GET', '/v1/tenants/me')).status).toBe(200)
      admin_key = old_key
    },
    test_ms_max,
  )

  test(
    'a lost disk: the backup is served, sends nothing until it is released, and every tenant gets a new key',
    async () => {
      await stop()
      await loseDisk()
      expect(await run(restore!, secret)).toContain('restored: 1 tenants, in quarantine')
      await start()
      const seen = await run(look!)
      expect(seen).toContain('"quarantined_since":"')
      expect(seen).toContain('the database is whole')
      const released = lines(await run(release!))
      expect(
        released.find((line) =>
          line.endsWith(' keys were revoked; admin reset-admin-key --all gives every tenant a new one'),
        ),
      ).toBeTruthy()
      const [tenant_id, name, key] = released.at(-1)!.split('\t')
      expect([tenant_id, name]).toEqual([expect.stringMatching(/^ten_/), 'acme'])
      admin_key = key!
      expect((await ask('GET', '/v1/tenants/me')).status).toBe(200)
    },
    test_ms_max,
  )

  test(
    'a full disk: writes are refused until there is room, which removed backups and a vacuum make',
    async () => {
      await fillDisk()
      const agent = { name: 'agent-one' }
      expect(await ask('POST', '/v1/agents', agent)).toMatchObject({
        status: 507,
        body: { error: { code: 'STORAGE_FULL' } },
      })
      expect((await ask('GET', '/v1/tenants/me')).status).toBe(200)
      expect(await run(room!)).toContain('rows of tenants')
      for (const name of ['second', 'third']) await run(`npm run admin -- backup backup/${name}.db`)
      await run(remove_old!)
      const kept = ['waystation', 'second', 'third'].map((name) =>
        existsSync(join(checkout.folder, `backup/${name}.db`)),
      )
      expect(kept).toEqual([false, true, true])
      const secrets = (name: string) => join(checkout.folder, `backup/${name}.db.secrets`)
      copyFileSync(secrets('waystation'), secrets('third'))
      expect(await elsewhere('third', secret)).toContain('restored: 1 tenants')
      if (!on_postgres) await stop()
      expect(await run(vacuum!)).toMatch(
        on_postgres ? /^vacuumed and analyzed$/m : /had \d+ bytes and has \d+/,
      )
      await freeDisk()
      expect((await ask('POST', '/v1/agents', agent)).status).toBe(201)
    },
    test_ms_max,
  )

  test(
    'a leaked SECRET_KEY: another one seals everything, beside the service',
    async () => {
      const old_key = checkout.read('data/secret_key')
      expect((await ask('GET', '/v1/seal')).status).toBe(200)
      await run('npm run admin -- backup backup/earlier.db')
      expect(await run(rotate!)).toContain('copy the file elsewhere')
      const previous_key = checkout.read('data/secret_key_previous').trim()
      await stop()
      await start()
      const printed = await run(reseal!)
      expect(printed).toMatch(/^\d+ secrets were sealed again: the new key alone is enough/m)
      expect(printed).toContain('the database is whole')
      expect(checkout.read('data/secret_key')).not.toBe(old_key)
      expect(existsSync(join(checkout.folder, 'data/secret_key_previous'))).toBe(false)
      expect((await ask('GET', '/v1/seal')).status).toBe(200)
      expect(await run(again!, secret)).toContain('is whole')
      expect(await elsewhere('earlier', { SECRET_KEY: previous_key })).toContain('restored: 1 tenants')
      await stop()
      await start()
      expect((await ask('GET', '/v1/seal')).status).toBe(200)
      await stop()
    },
    test_ms_max,
  )

  test(
    'a database that was removed, of SQLite, on Linux: what was acknowledged until then comes out of the open files',
    async () => {
      if (on_postgres || process.platform !== 'linux') return
      await start()
      expect((await ask('POST', '/v1/agents', { name: 'the-last' })).status).toBe(201)
      for (const end of ['', '-wal', '-shm', '.lock', '.reserve'])
        rmSync(join(checkout.folder, `data/waystation.db${end}`), { force: true })
      const agent = { name: 'too-late' }
      await until(async () => (await fetch(`${checkout.url}/readyz`)).status === 503)
      expect((await ask('POST', '/v1/agents', agent)).status).toBe(503)
      expect(lines(await run(rescue!))).toHaveLength(3)
      await stop()
      expect(await run(put_back!)).toContain('the database is whole')
      await start()
      const { items } = (await ask('GET', '/v1/agents')).body
      expect(items.map(({ name }: { name: string }) => name)).toContain('the-last')
      expect((await ask('POST', '/v1/agents', agent)).status).toBe(201)
      await stop()
    },
    test_ms_max,
  )
})

test(
  'a database of SQLite that was replaced, on Linux, is not mistaken for what has taken its place, which is kept',
  async () => {
    if (process.platform !== 'linux') return
    const checkout = new Checkout()
    const place = join(checkout.folder, 'data/waystation.db')
    try {
      const service = await checkout.serve('npm start', {})
      const body = JSON.stringify({ name: 'acme', owner_email: 'you@example.com' })
      const headers = { 'content-type': 'application/json' }
      const made = await fetch(`${checkout.url}/v1/tenants`, { method: 'POST', headers, body })
      expect(made.status).toBe(201)
      writeFileSync(`${place}.new`, 'of somebody else')
      renameSync(`${place}.new`, place)
      const other = Bun.spawn(['sleep', '600'], { stdin: Bun.file(place) })
      try {
        await until(async () => (await fetch(`${checkout.url}/readyz`)).status === 503)
        await checkout.run(rescue!)
      } finally {
        other.kill()
        await other.exited
      }
      await service.interrupt()
      expect(await checkout.run(put_back!)).toContain('the database is whole')
      expect(await checkout.run('npm run admin -- tenants')).toContain('acme')
      expect(readFileSync(join(checkout.folder, 'replaced/waystation.db'), 'utf8')).toBe('of somebody else')
    } finally {
      await checkout.clean()
    }
  },
  test_ms_max,
)

function lines(printed: string): string[] {
  return printed.split('\n').filter((line) => line !== '' && !line.startsWith('>'))
}
