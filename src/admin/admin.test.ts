import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { TestService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso } from '../base/clock.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { sqlitePath } from '../db/open.ts'
import { monthOf } from '../quotas/quota.ts'
import { addCalls } from '../quotas/store.ts'
import { secretsUnder } from '../secrets/service.ts'
import { signingContext } from '../tenants/signing.ts'
import { commands, helpText } from './commands.ts'
import { textOf } from './output.ts'
import { runAdmin } from './run.ts'

const TAMPER = unnamedAcrossTenants(
  'test.tamper',
  'update events set actor = :actor where tenant_id = :tenant_id and seq = 1',
)

const FREEZE_AGAIN = unnamedAcrossTenants(
  'test.freeze_again',
  `update tenants set resumed_at = :again_at - 1, moved_to = '', frozen_again_at = :again_at
    where tenant_id = :tenant_id and frozen_at is not null`,
)

const SIGNING_SECRET = unnamedAcrossTenants<{ signing_secret: string }>(
  'test.signing_secret',
  'select signing_secret from tenants where tenant_id = :tenant_id',
)
const SET_SIGNING_SECRET = unnamedAcrossTenants(
  'test.set_signing_secret',
  'update tenants set signing_secret = :sealed where tenant_id = :tenant_id',
)

const ADD_TENANT = unnamedAcrossTenants(
  'test.add_tenant',
  `insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
   values (:tenant_id, 'gone', 'gone@example.com', 'free', 'active', '', :now)`,
)
const REMOVE_TENANT = unnamedAcrossTenants(
  'test.remove_tenant',
  'delete from tenants where tenant_id = :tenant_id',
)

const SECRET_KEY = 'the secret key of the operator tests'
const folder = mkdtempSync(join(tmpdir(), 'waystation-admin-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A service, one tenant of it, and its operator. */
class Place {
  service: TestService
  operator!: Operator
  tenant!: TestTenant

  constructor(
    readonly engine: 'sqlite' | 'postgres',
    readonly environment: Record<string, string> = { SECRET_KEY },
  ) {
    this.service = new TestService(environment)
    this.service.engine = engine
  }

  async start(url: string): Promise<void> {
    await this.service.start(url)
    this.tenant = await this.service.signUp()
    this.operator = new Operator({ DATABASE_URL: url, DATA_DIR: folder, ...this.environment })
  }

  me(key = this.tenant.admin_key) {
    return this.service.ask('GET', '/v1/tenants/me', { key })
  }

  put(key = this.tenant.api_key) {
    return this.service.ask('PUT', '/v1/kv/a/b', { key, body: { value: 1 } })
  }

  /** Nodes remember a key for a second. */
  forget() {
    this.service.clock.advance(2_000)
  }

  async actors(type: string): Promise<unknown[]> {
    const { body } = await this.service.ask('GET', `/v1/events?type=${type}`, { key: this.tenant.admin_key })
    return (body.items ?? body.events).map(({ actor, data }: Record<string, unknown>) => [actor, data])
  }
}

forEachDatabase("The operator's command", (databases) => {
  const place = new Place(databases.engine)
  const { service } = place
  beforeAll(async () => place.start(await databases.newUrl()))
  afterAll(() => service.stop())

  test('lists tenants as lines with tabs, as a table on a terminal, and as JSON', async () => {
    const { tenant_id, name } = place.tenant
    const rows = await place.operator.json('tenants')
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
    expect(rows).toEqual([{ tenant_id, plan: 'free', status: 'active', created_at, name }])
    expect(await place.operator.does('tenants')).toBe(`${Object.values(rows[0]).join('\t')}\n`)
    const terminal = new Operator(place.operator.env)
    terminal.is_terminal = true
    expect((await terminal.does('tenants')).split('\n')[0]).toMatch(
      /^tenant_id +plan +status +created_at +name$/,
    )
  })

  test('create-tenant makes one that works, also while sign-up is closed', async () => {
    const closed = place.operator.with({ SIGNUP: 'closed' })
    const made = await closed.json('create-tenant', 'made by hand', 'owner@example.com', 'builder')
    expect(made).toMatchObject({ name: 'made by hand', plan: 'builder' })
    expect((await place.me(made.admin_key)).body).toMatchObject({
      tenant_id: made.tenant_id,
      plan: 'builder',
    })
    expect(await closed.refusal('create-tenant', 'made by hand', 'owner@example.com')).toBe(
      'waystation admin: A tenant with this name already exists.',
    )
    expect(await closed.refusal('create-tenant', 'x', 'owner@example.com')).toMatch(/3 to 40 characters/)
    expect(await closed.refusal('create-tenant', 'another one', 'owner', 'free')).toMatch(/not an address/)
    expect(await closed.refusal('create-tenant', 'another one', 'o@x.y', 'gold')).toMatch(/unknown plan gold/)
  })

  test.each([
    ['😀'.repeat(25), 'owner@example.com'],
    ['👻'.repeat(2), 'owner@example.com'],
    ['👻'.repeat(41), 'owner@example.com'],
    ['  two words ', 'owner@localhost'],
    ['long address', `${'o'.repeat(243)}@example.com`],
    ['other address', '<owner@example.com>'],
  ])(
    'create-tenant takes the names and addresses that a sign-up takes: %p, %p',
    async (name, owner_email) => {
      const { code } = await place.operator.run('create-tenant', name, owner_email)
      const { status } = await place.service.ask('POST', '/v1/tenants', { body: { name, owner_email } })
      expect(status).toBe(code === 0 ? 409 : 400) // taken, or refused as well
    },
  )

  test('show says what a tenant uses of its plan', async () => {
    await place.put()
    // The month may end on the way.
    const months = new Set([Date.now(), Date.now() + day_ms].map(monthOf))
    for (const month of months)
      await service.app.db.write((tx) => addCalls(tx, place.tenant.tenant_id, month, 2))
    const rows: { name: string; value: string }[] = await place.operator.json('show', place.tenant.name)
    const values = Object.fromEntries(rows.map(({ name, value }) => [name, value]))
    expect(values).toMatchObject({
      tenant_id: place.tenant.tenant_id,
      plan: 'free',
      agents: '1 of 25',
      frozen_at: null,
    })
    expect(values.kv_keys).toStartWith('1 of ')
    expect(values.api_calls_per_month).toBe('2 of 500')
    expect(await place.operator.refusal('show', 'nobody')).toBe('waystation admin: there is no tenant nobody')
  })

  test('a tenant is found by each spelling of its name, and by its id before the name of another', async () => {
    const { operator, tenant } = place
    const made = await operator.json('create-tenant', 'Cr\u00e8me', 'creme@example.com')
    const taken = 'waystation admin: A tenant with this name already exists.'
    for (const name of ['Cr\u00e8me', 'CR\u00c8ME', 'cre\u0300me']) {
      expect(await operator.refusal('create-tenant', name, 'creme@example.com')).toBe(taken)
      expect(await operator.json('set-plan', name, 'pro')).toMatchObject({ tenant_id: made.tenant_id })
    }
    await operator.does('create-tenant', tenant.tenant_id, 'mallory@example.com')
    expect(await operator.json('set-plan', tenant.tenant_id, 'free')).toMatchObject({ name: tenant.name })
  })

  test('freeze and resume stop and start the agents of a tenant, with events by the operator', async () => {
    const { tenant } = place
    await place.operator.does('freeze', tenant.name, 'under attack')
    place.forget()
    expect((await place.put()).body.error).toMatchObject({
      code: 'TENANT_FROZEN',
      details: { reason: 'under attack' },
    })
    expect(await place.operator.json('stats')).toContainEqual({ name: 'frozen', value: 1, bytes: null })
    expect(await place.operator.does('freeze', tenant.name)).toMatch(/was already frozen/)
    // As it is while the resume before goes on.
    const again_at = place.service.clock.now()
    const { tenant_id } = tenant
    await place.service.app.db.write((tx) => tx.run(FREEZE_AGAIN, { tenant_id, again_at }))
    const since = { name: 'frozen_at', value: iso(again_at) }
    expect(await place.operator.json('show', tenant.name)).toContainEqual(since)
    await place.operator.does('resume', tenant.name)
    place.forget()
    expect((await place.put()).status).toBe(200)
    expect(await place.actors('tenant.frozen')).toEqual([['operator', { reason: 'under attack' }]])
    expect(await place.actors('tenant.resumed')).toEqual([['operator', { frozen_ms: expect.any(Number) }]])
  })

  test('freeze takes the reasons that the API takes', async () => {
    const { tenant, operator, service } = place
    const { tenant_id, admin_key: key } = tenant
    const ask = (verb: string, body: object) =>
      service.ask('POST', `/v1/tenants/${tenant_id}/${verb}`, { key, body })
    for (const reason of ['', '👻'.repeat(250), '👻'.repeat(500), 'x'.repeat(501), '👻'.repeat(501)]) {
      const { code, stderr } = await operator.run('freeze', tenant.name, reason)
      if (code !== 0) expect(stderr).toBe('waystation admin: a reason may have at most 500 characters\n')
      const frozen_reason = (await place.me()).body.frozen_reason
      expect(frozen_reason).toBe(code === 0 ? reason : null)
      await operator.does('resume', tenant.name)
      expect((await ask('freeze', { reason })).status).toBe(code === 0 ? 200 : 400)
      await operator.does('resume', tenant.name)
    }
  })

  test('a reason or a name that begins with -- is taken behind --', async () => {
    const { tenant, operator } = place
    expect(await operator.refusal('freeze', tenant.name, '--yes, at once')).toBe(
      'waystation admin: freeze has no option --yes, at once; see npm run admin -- help',
    )
    await operator.does('freeze', tenant.name, '--', '--yes, at once')
    expect((await place.me()).body.frozen_reason).toBe('--yes, at once')
    await operator.does('resume', '--', tenant.name)
    const made = await operator.run('create-tenant', '--json', '--', '--dashes', 'owner@example.com')
    expect([made.code, JSON.parse(made.stdout)]).toEqual([0, expect.objectContaining({ name: '--dashes' })])
    expect(await operator.does('set-plan', '--', '--dashes', 'pro')).toContain('(--dashes) is on pro')
  })

  test('unused-keys lists keys by when they were used last, to the day', async () => {
    const { tenant, service, operator } = place
    const unused = async (days: string) => {
      const rows: { tenant_id: string; kind: string }[] = await operator.json('unused-keys', days)
      return rows.filter(({ tenant_id }) => tenant_id === tenant.tenant_id).map(({ kind }) => kind)
    }
    // The command goes by the clock of the machine, the service of this test by its own: ten days after the keys were made.
    const days = String(Math.floor((Date.now() - service.clock.now()) / day_ms) - 10)
    expect(await unused(days)).toEqual(['admin', 'agent'])
    service.clock.advance(30 * day_ms)
    expect((await place.put()).status).toBe(200)
    expect(await unused(days)).toEqual(['admin'])
    // Within a day of a use no other is noted.
    const statements: string[] = []
    service.clock.advance(day_ms - 1)
    service.app.db.onStatement((name) => statements.push(name))
    expect((await place.put()).status).toBe(200)
    service.app.db.onStatement(null)
    expect(statements).not.toContain('credentials.used_key')
    expect(await operator.refusal('unused-keys', '0')).toBe('waystation admin: "0" is not a number of days')
  })

  test('reset-admin-key ends the old key, with an event by the operator, once that was agreed to', async () => {
    const { tenant, operator } = place
    const words = ['reset-admin-key', tenant.name]
    expect(await operator.refusal(...words)).toBe('waystation admin: there is nobody to ask: add --yes')
    expect(await operator.refusal('reset-admin-key')).toBe('waystation admin: name one tenant, or give --all')
    operator.answers = ['y']
    const [{ admin_key, ...rest }] = await operator.json(...words)
    expect(rest).toEqual({ tenant_id: tenant.tenant_id, name: tenant.name })
    place.forget()
    expect((await place.me()).body.error.code).toBe('UNAUTHORIZED')
    tenant.admin_key = admin_key
    expect((await place.me()).status).toBe(200)
    expect(await place.actors('tenant.key_rotated')).toEqual([['operator', { grace_seconds: 0 }]])
  })

  test('reset-admin-key --all prints each key once it is made, and goes on past a tenant that gets none', async () => {
    const { tenant, operator } = place
    const gone_id = 'ten_gone'
    for (const json of [[], ['--json']]) {
      await service.app.db.write((tx) => tx.run(ADD_TENANT, { tenant_id: gone_id, now: 0 })) // the first of the list
      const printed: string[] = []
      const complaints: string[] = []
      const code = await runAdmin(['reset-admin-key', '--all', ...json], {
        ...{ env: operator.env, command: 'admin', is_terminal: false },
        print: (text) => printed.push(text),
        complain: (text) => complaints.push(text),
        async ask() {
          await service.app.db.write((tx) => tx.run(REMOVE_TENANT, { tenant_id: gone_id }))
          return 'y'
        },
      })
      const count = (await operator.json('tenants')).length + 1
      expect(code).toBe(1)
      expect(complaints[0]).toStartWith(`${gone_id}: `)
      expect(complaints[1]).toContain(`1 of ${count} tenants got no key: try again, reset-admin-key`)
      expect(printed).toHaveLength(json.length === 0 ? count - 1 : count + 1)
      const rows =
        json.length === 0
          ? printed.map((line) => line.split('\t'))
          : JSON.parse(printed.join('\n')).map((row: object) => Object.values(row))
      tenant.admin_key = rows.find(([tenant_id]: string[]) => tenant_id === tenant.tenant_id)[2]
      place.forget()
      expect((await place.me()).status).toBe(200)
    }
  })

  test('check finds a whole database whole, and an event that was changed behind the seal', async () => {
    const { tenant, operator, service } = place
    expect((await service.ask('GET', '/v1/seal', { key: tenant.admin_key })).status).toBe(200)
    expect(await operator.does('check')).toStartWith('the database is whole')
    const { tenant_id } = tenant
    const actor = (to: string) => service.app.db.write((tx) => tx.run(TAMPER, { tenant_id, actor: to }))
    await actor('mallory')
    expect(await operator.refusal('check')).toBe(
      `waystation admin: the database is damaged:\nthe journal of ${tenant_id}: event 1 is not what was sealed`,
    )
    await actor('anonymous')
    await operator.does('check')
  })

  test('stats counts rows of every table', async () => {
    const rows: { name: string }[] = await place.operator.json('stats')
    const names = rows.map(({ name }) => name)
    expect(names).toContain('rows of kv_entries')
    expect(names.slice(0, 3)).toEqual(['engine', 'bytes', 'tenants'])
  })

  test('vacuum leaves a database that a service has open alone on SQLite, and runs beside it on PostgreSQL', async () => {
    if (databases.engine === 'postgres') {
      await place.operator.does('vacuum')
      return
    }
    const link = join(mkdtempSync(join(tmpdir(), 'waystation-link-')), 'link.db')
    symlinkSync(sqlitePath(place.service.database_url)!, link)
    const linked = place.operator.with({ DATABASE_URL: `sqlite:${link}` })
    for (const operator of [place.operator, linked])
      expect(await operator.refusal('vacuum')).toMatch(/another process has this database open/)
    rmSync(dirname(link), { recursive: true })
  })
})

forEachDatabase('A rotation of SECRET_KEY', (databases) => {
  const { engine } = databases
  const old_key = 'the first secret key of this database'
  const new_key = 'the second secret key of this database'
  let database_url = ''
  let tenant: TestTenant
  let inbox_url = ''

  async function served<T>(environment: Record<string, string>, work: (service: TestService) => Promise<T>) {
    const service = new TestService(environment)
    service.engine = engine
    await service.start(database_url)
    try {
      return await work(service)
    } finally {
      await service.stop()
    }
  }

  /** Everything that is sealed is read: the token of an inbox, the key of the seal, the secret of callbacks. */
  const opensAll = (environment: Record<string, string>) =>
    served(environment, async (service) => {
      const inboxes = await service.ask('GET', '/api/webhook', { key: tenant.api_key })
      const sealed = await service.ask('GET', '/v1/seal', { key: tenant.admin_key })
      return [inboxes.status, inboxes.text.includes(inbox_url), sealed.status]
    })
  const opened = [200, true, 200]

  beforeAll(async () => {
    database_url = await databases.newUrl()
    await served({ SECRET_KEY: old_key }, async (service) => {
      tenant = await service.signUp()
      const made = await service.ask('POST', '/api/webhook', { key: tenant.api_key, body: { label: 'x' } })
      expect(made.status).toBe(201)
      inbox_url = /\/hook\/[\w-]+/.exec(made.text)![0]
      await service.ask('GET', '/v1/seal', { key: tenant.admin_key })
    })
  })

  test('goes from the old key to the new one beside the service, and in the end the new one alone is enough', async () => {
    const both = { SECRET_KEY: new_key, SECRET_KEY_PREVIOUS: old_key }
    const operator = new Operator({ DATABASE_URL: database_url, DATA_DIR: folder, ...both })
    const start_first =
      'waystation admin: first start every node of the service with SECRET_KEY and SECRET_KEY_PREVIOUS'
    expect(await operator.refusal('rotate-secret-key')).toBe(start_first)
    // Step 1 of several nodes: all know the new key, none seals with it.
    expect(await opensAll({ SECRET_KEY: old_key, SECRET_KEY_PREVIOUS: new_key })).toEqual(opened)
    expect(await opensAll(both)).toEqual(opened)
    await expect(opensAll({ SECRET_KEY: old_key })).rejects.toThrow(/sealed with another key/)
    await expect(opensAll({ SECRET_KEY: new_key })).rejects.toThrow(/sealed with another key/)
    for (const SECRET_KEY of [old_key, new_key]) {
      const lacking = new Operator({ DATABASE_URL: database_url, DATA_DIR: folder, SECRET_KEY })
      expect(await lacking.refusal('rotate-secret-key')).toBe(start_first)
    }
    await served(both, async (service) => {
      const resealed = await operator.json('rotate-secret-key')
      expect(resealed).toEqual({ begun: false, resealed: 3, done: true })
      expect((await service.ask('GET', '/v1/seal', { key: tenant.admin_key })).status).toBe(200)
    })
    expect(await operator.json('rotate-secret-key')).toEqual({ begun: false, resealed: 0, done: true })
    expect(await opensAll({ SECRET_KEY: new_key })).toEqual(opened)
    await expect(opensAll({ SECRET_KEY: old_key })).rejects.toThrow(/sealed with another key/)
  })

  test('once it has ended a node with the two keys swapped does not start, and nothing stops those with the new key', async () => {
    const swapped = { SECRET_KEY: old_key, SECRET_KEY_PREVIOUS: new_key }
    await expect(opensAll(swapped)).rejects.toThrow('SECRET_KEY: a rotation has replaced this key')
    expect(await opensAll({ SECRET_KEY: new_key, SECRET_KEY_PREVIOUS: old_key })).toEqual(opened)
    expect(await opensAll({ SECRET_KEY: new_key })).toEqual(opened)
  })

  test('called once more seals what a node of an earlier release has sealed with the old key until its restart', async () => {
    database_url = await databases.newUrl()
    const first_step = { SECRET_KEY: old_key, SECRET_KEY_PREVIOUS: new_key }
    const both = { SECRET_KEY: new_key, SECRET_KEY_PREVIOUS: old_key }
    const operator = new Operator({ DATABASE_URL: database_url, DATA_DIR: folder, ...both })
    const late = secretsUnder(old_key)
    await served(first_step, async (service) => {
      tenant = await service.signUp()
    })
    await served(both, async (service) => {
      expect((await operator.json('rotate-secret-key')).resealed).toBe(1)
      const { tenant_id } = tenant
      const row = (await service.app.db.one(SIGNING_SECRET, { tenant_id }))!
      const sealer = secretsUnder(new_key)
      const context = signingContext(tenant_id)
      const sealed = late.seal(context, sealer.open(context, row.signing_secret))
      await service.app.db.write((tx) => tx.run(SET_SIGNING_SECRET, { tenant_id, sealed }))
    })
    expect((await operator.json('rotate-secret-key')).resealed).toBe(1)
    expect((await operator.json('rotate-secret-key')).resealed).toBe(0)
  })

  test('with the key in a file makes the new one, and removes the old one once everything is sealed with the new one', async () => {
    const url = await databases.newUrl()
    const DATA_DIR = join(folder, `files-${engine}`)
    const operator = new Operator({ DATABASE_URL: url, DATA_DIR })
    const key = () => readFileSync(join(DATA_DIR, 'secret_key'), 'utf8')
    const start = async () => {
      const service = new TestService({ DATA_DIR })
      service.engine = engine
      return service.start(url)
    }
    const first = await start()
    const other = await first.signUp()
    await first.app.stop()
    const before = key()
    expect(await operator.json('rotate-secret-key')).toEqual({ begun: false, resealed: 0, done: true })
    expect(key()).toBe(before)
    expect(await operator.json('rotate-secret-key', '--begin')).toEqual({
      begun: true,
      resealed: 0,
      done: false,
    })
    expect(await operator.refusal('rotate-secret-key', '--begin')).toMatch(/a rotation has begun/)
    expect([key() === before, readFileSync(join(DATA_DIR, 'secret_key_previous'), 'utf8')]).toEqual([
      false,
      before,
    ])
    const elsewhere = operator.with({ DATA_DIR: folder })
    expect(await elsewhere.refusal('rotate-secret-key', '--begin')).toBe(
      `waystation admin: there is no ${folder}/secret_key; give DATA_DIR or the secret`,
    )
    // No command seals with a key that no node has.
    for (const command of [
      ['rotate-secret-key'],
      ['rotate-seal-key'],
      ['create-tenant', 'other', 'a@b.example'],
    ])
      expect([command, await operator.refusal(...command)]).toEqual([
        command,
        `waystation admin: first start every node of the service with ${DATA_DIR}/secret_key and ${DATA_DIR}/secret_key_previous`,
      ])
    const second = await start()
    try {
      const rotate = () => operator.json('rotate-secret-key')
      expect(await rotate()).toEqual({ begun: false, resealed: 1, done: true })
      expect(existsSync(join(DATA_DIR, 'secret_key_previous'))).toBe(false)
      expect((await second.ask('GET', '/v1/tenants/me', { key: other.admin_key })).status).toBe(200)
    } finally {
      await second.stop()
      await first.stop()
    }
  })
})

describe('The words of the command', () => {
  test('help names every command and its options', () => {
    const help = helpText('npm run admin --')
    for (const { usage, options = {} } of commands) {
      expect(help).toContain(`  ${usage}`)
      for (const option of Object.keys(options)) expect(help).toContain(`--${option}: `)
    }
  })

  test('help is a string with --json', async () => {
    const operator = new Operator({})
    for (const words of [[], ['help'], ['show', '--help']])
      expect(await operator.json(...words)).toBe(helpText('npm run admin --'))
  })

  const empty = mkdtempSync(join(folder, 'empty-'))

  test.each([
    [['teach'], 'unknown command teach; see npm run admin -- help'],
    [['set-plan', 'acme'], 'set-plan takes <tenant> <plan>; see npm run admin -- help'],
    [['tenants', 'acme'], 'tenants takes no arguments; see npm run admin -- help'],
    [['tenants', '--loud'], 'tenants has no option --loud; see npm run admin -- help'],
    [['tenants', '--profile', 'x'], 'tenants has no option --profile; see npm run admin -- help'],
    [['tenants', '--yes=no'], 'tenants has no option --yes=no; see npm run admin -- help'],
    [['tenants', '--scratch=x'], 'tenants has no option --scratch; see npm run admin -- help'],
    [['restore', 'x.db', '--scratch', '--yes'], 'it is --scratch <folder>; see npm run admin -- help'],
    [['restore', 'x.db', '--scratch='], 'it is --scratch <folder>; see npm run admin -- help'],
    [
      ['restore', 'x.db', '--scratch=--here'],
      '--scratch is for a restore into PostgreSQL: a SQLite database is built in its final place',
    ],
    [['tenants'], `there is no database at ${join(empty, 'none.db')}; start the service first`],
    [
      ['backup', join(empty, 'x.db')],
      `there is no database at ${join(empty, 'none.db')}; start the service first`,
    ],
    [['vacuum'], `there is no database at ${join(empty, 'none.db')}; start the service first`],
    [['verify', join(empty, 'none.db')], `there is no file ${join(empty, 'none.db')}`],
  ])('%p is refused with one line', async (words, line) => {
    const operator = new Operator({ DATABASE_URL: `sqlite:${join(empty, 'none.db')}`, DATA_DIR: empty })
    expect(await operator.refusal(...words)).toBe(`waystation admin: ${line}`)
    expect(JSON.parse(await operator.refusal(...words, '--json'))).toEqual({ error: line })
    expect(readdirSync(empty)).toEqual([])
  })

  test('a file that cannot be opened is not called damaged', async () => {
    const place = mkdtempSync(join(folder, 'closed-'))
    const file = join(place, 'waystation.db')
    const database = new Database(file)
    database.run('pragma journal_mode = wal')
    database.run('create table t (a)')
    database.close()
    mkdirSync(`${file}-wal`) // as on a disk that takes no writes
    const operator = new Operator({ DATABASE_URL: `sqlite:${file}`, DATA_DIR: place })
    for (const words of [['tenants'], ['backup', join(place, 'b.db')], ['vacuum']])
      expect(await operator.refusal(...words)).toBe(
        `waystation admin: cannot write to ${file}-wal: unable to open database file`,
      )
    const astray = operator.with({ DATABASE_URL: `sqlite:${place}` })
    for (const words of [['tenants'], ['backup', join(place, 'b.db')], ['vacuum'], ['verify', place]])
      expect(await astray.refusal(...words)).toMatch(
        /^waystation admin: cannot (write to|open) \/.*closed-\w+: /,
      )
  })

  test('a name cannot turn the direction in which the terminal writes', async () => {
    const name = 'evil\u202eemca\u2066\u2028'
    const [id, plain] = ['ten_1', 'evil?emca??']
    for (const aligned of [false, true])
      expect(textOf({ rows: [{ name, id }] }, { json: false, aligned })).toEndWith(
        aligned ? `${plain}  ${id}` : `${plain}\t${id}`,
      )
    const sentence = { text: `${id} (${name}) is frozen`, value: { name } }
    expect(textOf(sentence, { json: false, aligned: true })).toBe(`${id} (${plain}) is frozen`)
    expect(JSON.parse(textOf(sentence, { json: true, aligned: true }))).toEqual({ name })
  })

  test('a name with control characters cannot move the cursor of the terminal', () => {
    const printed = { rows: [{ name: 'a\u001b[2Jb\nc' }] }
    expect(textOf(printed, { json: false, aligned: true })).toBe('name\na?[2Jb?c')
    expect(textOf({ rows: [], none: 'no keys' }, { json: false, aligned: true })).toBe('no keys')
    expect(textOf({ rows: [] }, { json: true, aligned: true })).toBe('[]')
  })
})
