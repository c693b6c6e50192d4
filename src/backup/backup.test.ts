import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { verifiedText } from '../../test/seal/note.ts'
import { Operator } from '../../test/support/admin.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { claim, expectRefusal } from '../../test/support/effects.ts'
import { becomes, test_ms_max } from '../../test/support/patience.ts'
import {
  administer,
  dropPostgresDatabase,
  newPostgresDatabase,
  postgres_variable,
} from '../../test/support/postgres.ts'
import { quick } from '../../test/support/quick.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { cron_secret, TestService, type TestTenant } from '../../test/support/service.ts'
import { prepareDatabase } from '../app/start.ts'
import { iso, minute_ms, systemClock } from '../base/clock.ts'
import { makeFolder } from '../base/folder.ts'
import { readConfig } from '../config.ts'
import { openDb, sqlitePath } from '../db/open.ts'
import { copySqlite } from '../db/sqlite-file.ts'
import { enter } from '../quarantine/service.ts'
import { version } from '../version.ts'

const SECRET_KEY = 'the secret key of the backup tests'
const passphrase = 'correct horse battery staple'
const folder = mkdtempSync(join(tmpdir(), 'waystation-backup-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const revoked_type = 'tenant.keys_revoked'

let made = 0
function newFolder(): string {
  made += 1
  return join(folder, `folder-${made}`)
}

/** The byte in the middle of the file is another one. */
function damage(path: string): void {
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(path, bytes)
}

forEachDatabase('A backup', (databases) => {
  const { engine } = databases
  const original = new TestService({ SECRET_KEY })
  original.engine = engine
  let receiver: Receiver
  let tenant: TestTenant
  let operator: Operator
  let checkpoint: { size: number; note: string; keys: string[] }
  let written: unknown
  const file = join(folder, `${engine}.db`)

  const put = (service: TestService, value: number) =>
    service.ask('PUT', '/v1/kv/a/b', { key: tenant.api_key, body: { value } })
  const get = async (service: TestService) =>
    (await service.ask('GET', '/v1/kv/a/b', { key: tenant.api_key })).body.value
  const seal = async (service: TestService) =>
    (await service.ask('GET', '/v1/seal', { key: tenant.admin_key })).body
  const schedule = async (service: TestService, fire_at: number) => {
    const body = { callback_url: `${receiver.url}/fired`, callback_payload: null, fire_at: iso(fire_at) }
    const { status } = await service.ask('POST', '/v1/schedules', { key: tenant.api_key, body })
    expect(status).toBe(201)
  }

  beforeAll(async () => {
    receiver = await startReceiver()
    await original.start(await databases.newUrl())
    tenant = await original.signUp()
    operator = new Operator({ DATABASE_URL: original.database_url, DATA_DIR: newFolder(), SECRET_KEY })
    await put(original, 1)
    await schedule(original, original.clock.now() + minute_ms)
    checkpoint = await seal(original)
    written = await operator.json('backup', file)
  })
  afterAll(async () => {
    await receiver.stop()
    await original.stop()
  })

  test('is written while the service runs, is looked through, and has its checksum beside it', async () => {
    expect(written).toEqual({
      file,
      bytes: expect.any(Number),
      taken_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      secrets: null,
    })
    expect(
      readdirSync(folder)
        .filter((name) => name.startsWith(`${engine}.db`))
        .toSorted(),
    ).toEqual([`${engine}.db`, `${engine}.db.sha256`])
    const checked = Bun.spawnSync(['sha256sum', '-c', `${engine}.db.sha256`], { cwd: folder })
    expect(checked.exitCode).toBe(0)
    expect(await operator.refusal('backup', file)).toBe(`waystation admin: the file ${file} already exists`)
  })

  test('verify says what is in it, and finds a changed byte', async () => {
    const found = await operator.json('verify', file)
    expect(found).toMatchObject({ file, has_checksum: true, has_secrets: false, engine, version })
    expect([found.rows.tenants, found.rows.kv_entries, found.rows.jobs]).toEqual([1, 1, 1])
    const copy = join(folder, `damaged-${engine}.db`)
    for (const end of ['', '.sha256']) writeFileSync(copy + end, readFileSync(file + end))
    damage(copy)
    const refusal = await operator.refusal('verify', copy)
    expect(refusal).toStartWith(`waystation admin: ${copy} is damaged`)
    const DATABASE_URL = await databases.newUrl()
    expect(await operator.with({ DATABASE_URL }).refusal('restore', copy)).toBe(refusal)
  })

  test('is damaged where a byte of its schema is, also without its checksum', async () => {
    const copy = join(folder, `schema-${engine}.db`)
    const bytes = readFileSync(file)
    bytes[bytes.indexOf('CREATE TABLE kv_entries') + 'CREATE TABLE kv_entries'.length] = '!'.charCodeAt(0)
    writeFileSync(copy, bytes)
    const refusal = await operator.refusal('verify', copy)
    expect(refusal).toBe(`waystation admin: ${copy} is damaged: its schema cannot be read`)
    const DATABASE_URL = await databases.newUrl()
    expect(await operator.with({ DATABASE_URL }).refusal('restore', copy)).toBe(refusal)
  })

  test('is not a part of a database: a file whose newest writes are in a log beside it is refused', async () => {
    const part = join(folder, `part-${engine}.db`)
    writeFileSync(part, readFileSync(file))
    writeFileSync(`${part}-wal`, 'newer writes')
    const refusal = await operator.refusal('verify', part)
    expect(refusal).toStartWith(`waystation admin: ${part}-wal has newer writes than ${part}: `)
    const link = join(folder, `link-${engine}.db`)
    symlinkSync(part, link)
    expect(await operator.refusal('verify', link)).toStartWith(
      `waystation admin: ${part}-wal has newer writes than ${link}: `,
    )
    const DATABASE_URL = await databases.newUrl()
    expect(await operator.with({ DATABASE_URL }).refusal('restore', part)).toBe(refusal)
  })

  test('is restored into an empty database alone, and with its own SECRET_KEY alone', async () => {
    expect(await operator.refusal('restore', file)).toMatch(/restore into an empty/)
    const env = { DATABASE_URL: await databases.newUrl(), DATA_DIR: newFolder() }
    const stranger = operator.with({ ...env, SECRET_KEY: 'the secret key of another service' })
    expect(await stranger.refusal('restore', file)).toMatch(
      /SECRET_KEY: this database was sealed with another key/,
    )
    const without = operator.with({ ...env, SECRET_KEY: '' })
    expect(await without.refusal('restore', file)).toMatch(
      /the SECRET_KEY that sealed this database is needed/,
    )
    expect(await operator.with(env).json('restore', file)).toMatchObject({ tenants: 1, quarantined: true })
  })

  test(
    'restored, it sends nothing and starts no effect until it is released, and its journal goes on in a new epoch',
    async () => {
      await put(original, 2) // after the backup: not in it
      const DATABASE_URL = await databases.newUrl()
      const there = operator.with({ DATABASE_URL, DATA_DIR: newFolder() })
      const restored = await there.json('restore', file)
      expect(restored).toEqual({ tenants: 1, epoch: 2, backup_at: expect.any(String), quarantined: true })

      const copy = new TestService({ SECRET_KEY })
      copy.engine = engine
      await copy.start(DATABASE_URL)
      try {
        expect([await get(copy), await get(original)]).toEqual([1, 2])
        copy.clock.advance(10 * minute_ms)
        const since = (await copy.ask('GET', '/readyz')).body.quarantined_since
        expect(since).toEqual(expect.any(String))
        expect((await copy.ask('GET', '/readyz?verbose')).body.quarantined_since).toBe(since)
        const me = await copy.ask('GET', '/v1/tenants/me', { key: tenant.admin_key })
        expect(me.body.quarantined_since).toBe(since)
        const tick = () => copy.ask('POST', '/v1/tick', { key: cron_secret })
        for (const refused of [await tick(), await claim(copy, tenant)]) {
          expectRefusal(refused, 'QUARANTINED', { since })
          expect(refused.headers.get('retry-after')).toBe('30')
        }
        expect(await there.json('due')).toEqual([
          { tenant_id: tenant.tenant_id, kind: 'schedule', jobs: 1, since: expect.any(String) },
        ])
        expect(receiver.requests).toEqual([])
        await expectNewEpoch(copy, restored.backup_at)

        expect(await there.refusal('release')).toBe('waystation admin: there is nobody to ask: add --yes')
        there.answers = ['no']
        expect(await there.refusal('release')).toBe('waystation admin: nothing was done')
        expect(there.questions.at(-1)).toBe(
          '1 due jobs start at once (admin due lists them). Release? [y/N] ',
        )
        expect(await there.json('release', '--yes')).toEqual({ quarantined: false, keys_revoked: null })
        await becomes(async () => (await copy.ask('GET', '/readyz')).body, { status: 'ready' })
        expect((await tick()).status).toBe(200)
        expect(receiver.requests.map(({ target }) => target)).toEqual(['/fired'])
        expect((await claim(copy, tenant)).status).toBe(201)
        expect(await there.refusal('release', '--yes')).toBe(
          'waystation admin: the database is not in quarantine',
        )
      } finally {
        await copy.stop()
      }
    },
    test_ms_max,
  )

  async function expectNewEpoch(copy: TestService, backup_at: string): Promise<void> {
    const { body } = await copy.ask('GET', '/v1/events?type=seal.restored', { key: tenant.admin_key })
    expect(body.items ?? body.events).toMatchObject([
      { type: 'seal.restored', actor: 'operator', data: { epoch: 2, backup_at } },
    ])
    // A reader that had seen more than the backup has goes on behind its last event.
    const ahead = await copy.ask('GET', '/v1/events?after=1000000', { key: tenant.admin_key })
    expect(ahead.body.items).toEqual([])
    expect(ahead.body.next_after).toBeGreaterThanOrEqual(body.items[0].seq)
    expect(ahead.body.next_after).toBeLessThan(1_000_000)
    const sealed = await seal(copy)
    const origin = `waystation/${tenant.tenant_id}`
    expect([checkpoint.note.split('\n')[0], sealed.origin]).toEqual([origin, `${origin}/2`])
    expect(sealed.size).toBeGreaterThan(checkpoint.size)
    // Notes of the journal before are still signed by a key that is listed.
    expect(sealed.keys).toEqual([expect.stringMatching(/\/2\+/), checkpoint.keys[0]])
    expect((await seal(original)).origin).toBe(origin)
  }

  test('restored twice, each copy signs with a key of its own, under which no checkpoint of the other verifies', async () => {
    const sealed: { origin: string; note: string; keys: string[] }[] = []
    for (const _ of ['one', 'another']) {
      const DATABASE_URL = await databases.newUrl()
      await operator.with({ DATABASE_URL, DATA_DIR: newFolder() }).does('restore', file)
      const copy = new TestService({ SECRET_KEY })
      copy.engine = engine
      await copy.start(DATABASE_URL)
      sealed.push(await seal(copy))
      await copy.stop()
    }
    const [one, another] = sealed as [(typeof sealed)[0], (typeof sealed)[0]]
    expect(one.origin).toBe(another.origin)
    expect(verifiedText(one.note, one.keys[0]!)).toStartWith(one.origin)
    for (const key of another.keys) expect(verifiedText(one.note, key)).toBeNull()
  })

  test('release --revoke-keys ends every key, and reset-admin-key --all gives every tenant a new one', async () => {
    const approval = await original.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body: {} })
    expect(approval.status).toBe(201)
    const later = join(folder, `later-${engine}.db`)
    await operator.does('backup', later)
    const DATABASE_URL = await databases.newUrl()
    const there = operator.with({ DATABASE_URL, DATA_DIR: newFolder() })
    await there.does('restore', later)
    const copy = new TestService({ SECRET_KEY })
    copy.engine = engine
    await copy.start(DATABASE_URL)
    try {
      const me = (key: string) => copy.ask('GET', '/v1/tenants/me', { key })
      expect((await me(tenant.admin_key)).status).toBe(200)
      expect(await there.json('release', '--revoke-keys', '--yes')).toEqual({
        quarantined: false,
        keys_revoked: 3,
      })
      copy.clock.advance(2_000)
      expect(await get(copy)).toBeUndefined()
      expect((await me(tenant.admin_key)).body.error.code).toBe('UNAUTHORIZED')
      const [{ admin_key, ...reset }] = await there.json('reset-admin-key', '--all', '--yes')
      expect(reset).toEqual({ tenant_id: tenant.tenant_id, name: tenant.name })
      expect((await me(admin_key)).status).toBe(200)
      const rotated = await copy.ask('POST', `/v1/agents/${tenant.agent_id}/rotate-key`, {
        key: admin_key,
        body: {},
      })
      expect(rotated.status).toBe(200)
      const { body } = await copy.ask('GET', '/v1/approval-keys', { key: admin_key })
      expect(body.items ?? body.approval_keys).toEqual([])
      const revoked = await copy.ask('GET', `/v1/events?type=${revoked_type}`, { key: admin_key })
      expect((revoked.body.items ?? revoked.body.events).map(({ data }: { data: object }) => data)).toEqual([
        { admin: 1, agent: 1, approval: 1 },
      ])
    } finally {
      await copy.stop()
    }
  })

  test('with its secrets restores a lost data folder under the passphrase alone', async () => {
    const whole = join(folder, `whole-${engine}.db`)
    const generous = operator.with({ BACKUP_PASSPHRASE: passphrase, CRON_SECRET: cron_secret })
    expect(await operator.with({ BACKUP_PASSPHRASE: 'short' }).refusal('backup', whole, '--secrets')).toBe(
      'waystation admin: the passphrase needs at least 12 characters',
    )
    const { secrets } = await generous.json('backup', whole, '--secrets')
    expect(secrets).toBe(`${whole}.secrets`)
    for (const secret of [SECRET_KEY, cron_secret])
      expect(readFileSync(secrets, 'utf8')).not.toContain(secret)
    const DATA_DIR = newFolder()
    const lost = new Operator({ DATABASE_URL: await databases.newUrl(), DATA_DIR })
    lost.answers = ['another passphrase']
    expect(await lost.refusal('restore', whole)).toMatch(/this is not the passphrase of/)
    expect(existsSync(join(DATA_DIR, 'secret_key'))).toBe(false)
    lost.answers = [passphrase]
    expect(await lost.json('restore', whole)).toMatchObject({ tenants: 1 })
    const kept = ['secret_key', 'cron_secret'].map((name) => readFileSync(join(DATA_DIR, name), 'utf8'))
    expect(kept).toEqual([`${SECRET_KEY}\n`, `${cron_secret}\n`])
    await lost.does('check')
  })

  test('goes to the other engine as well', async () => {
    const DATA_DIR = newFolder()
    const to_postgres = engine === 'sqlite' && !quick
    const DATABASE_URL = to_postgres ? await newPostgresDatabase() : `sqlite:${join(newFolder(), 'moved.db')}`
    const there = operator.with({ DATABASE_URL, DATA_DIR })
    expect(await there.json('restore', file)).toMatchObject({ tenants: 1 })
    const again = join(folder, `moved-from-${engine}.db`)
    await there.does('backup', again)
    const { rows } = await there.json('verify', again)
    const before = (await operator.json('verify', file)).rows
    const added = { events: before.events + 1, seal_keys: before.seal_keys + 1, quarantine: 1 }
    expect(rows).toEqual({ ...before, ...added })
    if (to_postgres) await dropPostgresDatabase(DATABASE_URL)
  })

  test('whose restore was interrupted is neither served nor released', async () => {
    const { db, url } = await databases.open()
    await enter(db, null, async () => false)
    const halfway = new TestService({ SECRET_KEY })
    halfway.engine = engine
    if (engine === 'sqlite') await db.close()
    await expect(halfway.start(url)).rejects.toThrow('a restore into this database has not ended')
    const there = operator.with({ DATABASE_URL: url })
    expect(await there.refusal('release', '--yes')).toMatch(/a restore into this database has not ended/)
    expect(await there.refusal('quarantine', '--yes')).toMatch(/a restore into this database has not ended/)
    if (engine === 'sqlite') expect(await there.refusal('restore', file)).toMatch(/restore into an empty/)
    else {
      expect(await there.json('restore', file)).toMatchObject({ tenants: 1, quarantined: true })
      expect(await there.json('due')).toHaveLength(1)
      expect(await there.refusal('restore', file)).toMatch(/restore into an empty/)
    }
  })

  test('of another tool whose mark was interrupted is marked by the same command again', async () => {
    const url = await databases.newUrl()
    const halfway = new TestService({ SECRET_KEY })
    halfway.engine = engine
    await halfway.start(url)
    await halfway.signUp()
    await enter(halfway.app.db, null, async () => false)
    await halfway.app.stop()
    const there = operator.with({ DATABASE_URL: url })
    expect(await there.json('quarantine', '--yes')).toMatchObject({ tenants: 1, epoch: 2, quarantined: true })
    await halfway.stop()
  })

  test('is neither served nor released as it is: a copy of the file in the data folder is not a restore', async () => {
    const DATABASE_URL = `sqlite:${join(newFolder(), 'waystation.db')}`
    makeFolder(dirname(sqlitePath(DATABASE_URL)!))
    copyFileSync(file, sqlitePath(DATABASE_URL)!)
    const used = new TestService({ SECRET_KEY })
    await expect(used.start(DATABASE_URL)).rejects.toThrow(
      'it is a backup itself: give admin restore the backup and an empty data folder',
    )
    const config = readConfig({ DATABASE_URL, SECRET_KEY, DATA_DIR: newFolder() })
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const prepared = prepareDatabase(config, { clock: systemClock, log, onFatal() {} })
    await expect(prepared).rejects.toThrow('it is a backup itself')
    expect(await operator.with({ DATABASE_URL }).refusal('release', '--yes')).toMatch(/it is a backup itself/)
    expect(await operator.with({ DATABASE_URL }).refusal('stats')).toMatch(/it is a backup itself/)
    expect(readFileSync(sqlitePath(DATABASE_URL)!).equals(readFileSync(file))).toBe(true) // nothing was written to it
    expect(existsSync(`${sqlitePath(DATABASE_URL)}-wal`)).toBe(false)
  })

  test('by another tool is put into quarantine before it is served', async () => {
    const source = new TestService({ SECRET_KEY })
    source.engine = engine
    await source.start(await databases.newUrl())
    const { admin_key } = await source.signUp()
    await source.app.stop()
    const url = await copiedElsewhere(source.database_url, join(newFolder(), 'copied.db'))
    const there = operator.with({ DATABASE_URL: url, DATA_DIR: newFolder() })
    expect(await there.refusal('quarantine')).toBe('waystation admin: there is nobody to ask: add --yes')
    const marked = { tenants: 1, epoch: 2, backup_at: null, quarantined: true }
    expect(await there.json('quarantine', '--yes')).toEqual(marked)
    expect(await there.refusal('quarantine', '--yes')).toMatch(/the database has been in quarantine since/)
    const copy = new TestService({ SECRET_KEY })
    copy.engine = engine
    await copy.start(url)
    expect((await copy.ask('GET', '/readyz')).body.quarantined_since).toEqual(expect.any(String))
    expect((await copy.ask('GET', '/v1/tenants/me', { key: admin_key })).status).toBe(200)
    await copy.stop()
    await source.stop()
    if (engine === 'postgres') await dropPostgresDatabase(url)
  })

  test(
    'in quarantine, copied by another tool, becomes a copy of its own by quarantine --again',
    async () => {
      const one = operator.with({ DATABASE_URL: await databases.newUrl(), DATA_DIR: newFolder() })
      const { backup_at } = await one.json('restore', file)
      const url = await copiedElsewhere(one.env.DATABASE_URL!, join(newFolder(), 'copied.db'))
      const another = operator.with({ DATABASE_URL: url, DATA_DIR: newFolder() })
      expect(await another.refusal('quarantine', '--yes')).toMatch(
        /the database has been in quarantine since .*; admin quarantine --again makes a copy of it a copy of its own$/,
      )
      const marked = { tenants: 1, epoch: 3, backup_at, quarantined: true }
      expect(await another.json('quarantine', '--again', '--yes')).toEqual(marked)
      const sealed: { note: string; keys: string[] }[] = []
      for (const { env } of [one, another]) {
        const copy = new TestService({ SECRET_KEY })
        copy.engine = engine
        await copy.start(env.DATABASE_URL!)
        expect((await copy.ask('GET', '/readyz')).body.quarantined_since).toEqual(expect.any(String))
        sealed.push(await seal(copy))
        await copy.stop()
      }
      expect(verifiedText(sealed[1]!.note, sealed[1]!.keys[0]!)).toStartWith(
        `waystation/${tenant.tenant_id}/3`,
      )
      for (const key of sealed[0]!.keys) expect(verifiedText(sealed[1]!.note, key)).toBeNull()
      // Interrupted, it is begun again by either command.
      const db = await openDb(url, { clock: systemClock, exclusive: false, onFatal() {} })
      await enter(db, null, async () => false, true)
      await db.close()
      expect(await another.refusal('stats')).toMatch(/a restore into this database has not ended/)
      expect(await another.json('quarantine', '--yes')).toEqual({ ...marked, epoch: 4 })
      if (engine === 'postgres') await dropPostgresDatabase(url)
    },
    test_ms_max,
  )

  /** As a snapshot of the disk would. */
  async function copiedElsewhere(url: string, path: string): Promise<string> {
    const source = sqlitePath(url)
    if (source !== null) {
      makeFolder(dirname(path))
      copySqlite(source, path)
      return `sqlite:${path}`
    }
    const { origin, name } = /^(?<origin>.*)\/(?<name>\w+)$/.exec(url)!.groups as Record<string, string>
    const copy = `copy_${crypto.randomUUID().replaceAll('-', '')}`
    const server = process.env[postgres_variable] ?? origin!
    // A pooler keeps its connections after the service has gone.
    await administer(
      server,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    )
    await administer(server, `create database ${copy} template ${name}`)
    return `${origin}/${copy}`
  }
})
