// How row-level security comes into force, and what is said where it does not.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { SQL } from 'bun'
import { Operator } from '../../test/support/admin.ts'
import { blocksOf } from '../../test/support/checkout.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { scrape } from '../../test/support/metrics.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { TestService } from '../../test/support/service.ts'
import { secured_message, unsecured_message } from '../app/secured.ts'
import { systemClock } from '../base/clock.ts'
import { unnamed, unnamedAcrossTenants } from './db.ts'
import { DbError } from './errors.ts'
import { openPostgres } from './postgres.ts'
import { rowSecurity, secureRows } from './row-security.ts'

onPostgres('Row-level security', () => {
  const name = crypto.randomUUID().slice(0, 8)
  const [owner, login, role] = ['owner', 'login', 'role'].map((one) => `${one}_${name}`) as [
    string,
    string,
    string,
  ]
  let server: SQL
  let base_url: string
  const urls: string[] = []
  const services: TestService[] = []

  beforeAll(async () => {
    base_url = await newPostgresDatabase()
    urls.push(base_url)
    server = new SQL({ url: base_url, max: 1 })
    for (const one of [owner, login]) await server.unsafe(`create role ${one} login password '${one}'`)
  })
  afterAll(async () => {
    for (const service of services) await service.stop()
    await server.close()
    for (const url of urls) await dropPostgresDatabase(url)
    const last = new SQL({ url: base_url.replace(/\w+$/, 'postgres'), max: 1 })
    for (const one of [
      owner,
      login,
      role,
      ...['_one', '_late', '_own', '_other', '_of_others', '_astray', '_half', '_owned'].map(
        (end) => role + end,
      ),
    ])
      await last.unsafe(`drop role if exists ${one}`)
    await last.close()
  })

  const urlOf = (url: string, user: string) => url.replace('postgres:postgres@', `${user}:${user}@`)

  /** An empty database of the owner, as a superuser reaches it. */
  async function ownDatabase(): Promise<string> {
    const url = base_url.replace(/\w+$/, `own_${crypto.randomUUID().replaceAll('-', '')}`)
    await server.unsafe(`create database ${url.split('/').at(-1)} owner ${owner} template template0`)
    urls.push(url)
    return url
  }

  async function started(url: string, environment: Record<string, string>): Promise<TestService> {
    const service = new TestService({
      DATABASE_CONNECTIONS: '3',
      SECRET_KEY: 'the secret key of these tests',
      DATABASE_ROLE: role,
      ...environment,
    })
    service.engine = 'postgres'
    services.push(service)
    return service.start(url)
  }

  const CURRENT = unnamedAcrossTenants<{ name: string }>('test.current', 'select current_user as name')

  /** A transaction that reads tables for long, such as a dump. Returns what ends it. */
  async function inUse(url: string, ...tables: string[]): Promise<() => Promise<void>> {
    const reader = new SQL({ url, max: 1 })
    const connection = await reader.reserve()
    await connection.unsafe(`begin; lock table ${tables.join(', ')} in access share mode`).simple()
    return async () => {
      await connection.unsafe('rollback')
      await connection.release()
      await reader.close()
    }
  }

  const reasonOf = ({ logged }: TestService) =>
    logged.find(({ message }) => message === unsecured_message)?.fields.reason

  test('is off where the login may not prepare it, which the log and the command check say', async () => {
    const url = urlOf(await ownDatabase(), owner)
    const service = await started(url, {})
    expect(reasonOf(service)).toBe(`there is no role ${role}, and ${owner} may not create it`)
    expect((await service.signUp()).tenant_id).toMatch(/^ten_/)
    const { notes } = (await new Operator({ DATABASE_URL: url, DATABASE_ROLE: role }).json('check')) as {
      notes: string[]
    }
    expect(notes).toContain(
      `row-level security is off: there is no role ${role}, and ${owner} may not create it`,
    )
    const required = started(url, { ROW_LEVEL_SECURITY: 'required' })
    expect(required).rejects.toThrow(
      `ROW_LEVEL_SECURITY: there is no role ${role}, and ${owner} may not create it`,
    )
  })

  test('is in force for one login once a superuser has run the SQL of the page', async () => {
    const url = urlOf(await ownDatabase(), owner)
    const block = blocksOf('docs/row-level-security.md', 'sql').find((text) =>
      text.startsWith('create role waystation_app nologin'),
    )!
    await server
      .unsafe(block.replaceAll('waystation_app', role).replace(/ to waystation;/, ` to ${owner};`))
      .simple()
    const service = await started(url, { ROW_LEVEL_SECURITY: 'required' })
    expect(reasonOf(service)).toBeUndefined()
    const { tenant_id, api_key } = await service.signUp()
    expect((await service.ask('PUT', '/v1/kv/n/k', { key: api_key, body: { value: 1 } })).status).toBe(200)
    const operator = new Operator({ DATABASE_URL: url, DATABASE_ROLE: role })
    const { notes } = (await operator.json('check')) as { notes: string[] }
    expect(notes).toContain(`row-level security is in force for the role ${role}`)
    expect(await operator.json('tenants')).toMatchObject([{ tenant_id }])
    // The owner sees all rows, the role of the service those of the tenant that it names.
    const connection = new SQL({ url, max: 1 })
    const seen = async () => Number((await connection`select count(*)::int as n from kv_entries`)[0].n)
    expect(await seen()).toBe(1)
    await connection.unsafe(`set role ${role}`)
    expect(await seen()).toBe(0)
    await connection.unsafe(`set waystation.tenant = '${tenant_id}'`)
    expect(await seen()).toBe(1)
    await connection.close()
  })

  test.each(['auto', 'off'])(
    'is not begun in another database than the one that is served (%s)',
    async (when) => {
      const [url, other] = [await ownDatabase(), await ownDatabase()]
      const environment = { DATABASE_OWNER_URL: urlOf(other, owner), ROW_LEVEL_SECURITY: when }
      await expect(started(urlOf(url, login), environment)).rejects.toThrow(
        'DATABASE_OWNER_URL: leads to a different database than DATABASE_URL',
      )
      for (const one of [url, other]) {
        const connection = new SQL({ url: one, max: 1 })
        expect([...(await connection`select tablename from pg_tables where schemaname = 'public'`)]).toEqual(
          [],
        )
        await connection.close()
      }
    },
  )

  test('is in force for a login that owns nothing, prepared by the owner', async () => {
    const url = await ownDatabase()
    const environment = {
      ...{ DATABASE_OWNER_URL: urlOf(url, owner), DATABASE_ROLE: login },
      ROW_LEVEL_SECURITY: 'required',
    }
    const service = await started(urlOf(url, login), environment)
    const { tenant_id, api_key } = await service.signUp()
    expect((await service.ask('PUT', '/v1/kv/n/k', { key: api_key, body: { value: 1 } })).status).toBe(200)
    expect((await service.ask('GET', '/v1/kv/n/k', { key: api_key })).body.value).toBe(1)
    const operator = new Operator({ DATABASE_URL: urlOf(url, login), ...environment })
    expect(await operator.json('tenants')).toMatchObject([{ tenant_id }])
    const without = new Operator({ DATABASE_URL: urlOf(url, login) })
    expect(await without.refusal('vacuum')).toMatch(
      new RegExp(`^waystation admin: ${login} may not vacuum \\w+: set DATABASE_OWNER_URL`),
    )
    // Without the owner's URL as well: its tables are prepared.
    const again = await started(urlOf(url, login), { DATABASE_ROLE: login, ROW_LEVEL_SECURITY: 'required' })
    expect((await again.ask('GET', '/v1/kv/n/k', { key: api_key })).status).toBe(200)
    const connection = new SQL({ url: urlOf(url, login), max: 1 })
    expect([...(await connection`select tenant_id from kv_entries`)]).toEqual([])
    expect(connection`alter table kv_entries disable row level security`.execute()).rejects.toThrow(
      /must be owner/,
    )
    await connection.close()
  })

  describe('a table in use at the start', () => {
    let url: string
    let service: TestService
    let release: (() => Promise<void>) | null = null
    const environment = { DATABASE_ROLE: `${role}_late`, METRICS: '127.0.0.1:0' }
    const inForce = async () => (await scrape(service)).sum('waystation_row_level_security')
    const connections = async () => (await service.app.db.one(CURRENT, {}))!.name
    beforeAll(async () => {
      url = await ownDatabase()
      service = await started(url, { ...environment, ROW_LEVEL_SECURITY: 'off' })
      release = await inUse(url, 'agents')
    })
    afterAll(() => release?.())

    test('ends no start, which warns of it, and a metric says so', async () => {
      expect(await inForce()).toBeNull() // nobody wants it
      const required = started(url, { ...environment, ROW_LEVEL_SECURITY: 'required' })
      const reason = new RegExp(`^the table agents is not prepared for the role ${role}_late; .*lock timeout`)
      expect(required).rejects.toThrow(new RegExp(reason.source.replace('^', '^ROW_LEVEL_SECURITY: ')))
      service = await started(url, environment)
      const [warning, ...others] = service.logged.filter(({ message }) => message === unsecured_message)
      expect([warning!.level, others]).toEqual(['warn', []])
      expect(warning!.fields.reason).toMatch(reason)
      expect(await inForce()).toBe(0)
      expect(await connections()).toBe('postgres')
    })

    test('is tried again while it lasts, and then it is in force without a restart', async () => {
      const warnings = () => service.logged.filter(({ message }) => message === unsecured_message).length
      for (const expected of [1, 1, 2]) {
        await service.app.late_rows!.secure()
        expect([await inForce(), warnings()]).toEqual([0, expected])
        service.clock.advance(30_000)
      }
      const { tenant_id, api_key } = await service.signUp()
      const put = () => service.ask('PUT', '/v1/kv/n/k', { key: api_key, body: { value: 1 } })
      expect((await put()).status).toBe(200)
      await release!()
      release = null
      // A transaction that has begun before goes on.
      const held = Promise.withResolvers<void>()
      const begun = Promise.withResolvers<void>()
      const meanwhile = service.app.db.write(async (tx) => {
        await tx.one(CURRENT, {})
        begun.resolve()
        await held.promise
        return (await tx.one(CURRENT, {}))!.name
      })
      await begun.promise
      const taking = spyOn(service.app.db, 'takeRole').mockRejectedValueOnce(
        new DbError('lost', 'it is away'),
      )
      await expect(service.app.late_rows!.secure()).rejects.toThrow('it is away')
      taking.mockRestore()
      expect(await inForce()).toBe(0)
      const puts = Array.from({ length: 20 }, put)
      await service.app.late_rows!.secure()
      expect((await Promise.all([...puts, put()])).map(({ status }) => status)).toEqual(Array(21).fill(200))
      held.resolve()
      expect(await meanwhile).toBe('postgres')

      expect(await inForce()).toBe(1)
      expect(await connections()).toBe(`${role}_late`)
      expect(service.logged.at(-1)).toMatchObject({ level: 'debug' })
      expect(service.logged.filter(({ message }) => message === secured_message)).toHaveLength(1)
      const seen = {
        ...unnamedAcrossTenants<{ n: number }>('test.seen', 'select count(*) as n from kv_entries'),
      }
      expect(await service.app.db.all({ ...seen, scope: 'none' }, {})).toEqual([{ n: 0 }])
      expect((await service.ask('GET', '/v1/kv/n/k', { key: api_key })).body.version).toBe(22)
      // Once is enough.
      await service.app.late_rows!.secure()
      expect(service.logged.filter(({ message }) => message === secured_message)).toHaveLength(1)
      expect(tenant_id).toMatch(/^ten_/)
    })
  })

  describe('tables that were all in use at the start, of a login that owns none', () => {
    let service: TestService
    let api_key: string
    let release: (() => Promise<void>) | null = null
    const read = async () => (await service.ask('GET', '/v1/kv/n/k', { key: api_key })).status
    beforeEach(async () => {
      const url = await ownDatabase()
      const environment = {
        ...{ DATABASE_OWNER_URL: urlOf(url, owner), DATABASE_ROLE: login },
        METRICS: '127.0.0.1:0',
      }
      await started(urlOf(url, owner), { ROW_LEVEL_SECURITY: 'off' })
      const connection = new SQL({ url, max: 1 })
      await connection.unsafe(
        `grant select, insert, update, delete on all tables in schema public to ${login}`,
      )
      const tables = await connection.unsafe(
        `select tablename as name from pg_tables where schemaname = 'public'`,
      )
      await connection.close()
      release = await inUse(url, ...tables.map(({ name }: { name: string }) => name))
      service = await started(urlOf(url, login), environment)
      expect(reasonOf(service)).toMatch(/lock timeout/)
      api_key = (await service.signUp()).api_key
      expect((await service.ask('PUT', '/v1/kv/n/k', { key: api_key, body: { value: 1 } })).status).toBe(200)
      await release()
      release = null
    })
    afterEach(() => release?.())

    /** One try at which the tables are free, and this becomes of the role. */
    async function prepared(failure: Error): Promise<unknown> {
      const taking = spyOn(service.app.db, 'takeRole').mockRejectedValueOnce(failure)
      const end = await service.app.late_rows!.secure().catch((error: unknown) => error)
      taking.mockRestore()
      return end
    }

    test('show their rows also once they are prepared, and the role is not taken', async () => {
      expect(await prepared(new DbError('lost', 'it is away'))).toMatchObject({ message: 'it is away' })
      expect(await read()).toBe(200)
      await service.app.late_rows!.secure()
      expect((await scrape(service)).sum('waystation_row_level_security')).toBe(1)
      expect(await read()).toBe(200)
    })

    const refusals: [what: string, failure: Error][] = [
      ['a pooler', new DbError('lost', 'unsupported startup parameter: role')],
      ['the server', new Error('permission denied to set role')],
    ]
    test('are tried no more where a connection that opens cannot have the role', async () => {
      const { db } = service.app
      const take = db.takeRole.bind(db)
      const taking = spyOn(db, 'takeRole').mockImplementationOnce(() => take(`${role}_of_nobody`))
      await service.app.late_rows!.secure()
      taking.mockRestore()
      const warnings = service.logged.filter(({ message }) => message === unsecured_message)
      expect(warnings.at(-1)!.fields.reason).toContain(`; role "${role}_of_nobody" does not exist`)
      await service.app.late_rows!.secure()
      expect(service.logged.filter(({ message }) => message === secured_message)).toEqual([])
      expect(await read()).toBe(200)
    })

    test.each(refusals)(
      'are tried no more where %s refuses the role, which a warning says',
      async (_, failure) => {
        expect(await prepared(failure)).toBeUndefined()
        const warnings = service.logged.filter(({ message }) => message === unsecured_message)
        expect(warnings.at(-1)!.fields.reason).toBe(
          `a pooler dropped the role of the connection: run npm run admin -- session-settings, then RECONNECT in the pooler, and start again; ${failure.message}`,
        )
        await service.app.late_rows!.secure()
        expect(service.logged.filter(({ message }) => message === secured_message)).toEqual([])
        expect(await read()).toBe(200)
      },
    )
  })

  test('is not in force for the owner of the tables without the role, whose policy shows all rows', async () => {
    const url = urlOf(await ownDatabase(), owner)
    await server.unsafe(`create role ${role}_owned nologin; grant ${role}_owned to ${owner}`).simple()
    await started(url, { ROW_LEVEL_SECURITY: 'required', DATABASE_ROLE: `${role}_owned` })
    const secured = async (taken: string | undefined) => {
      const db = await openPostgres(url, { clock: systemClock, role: taken })
      const gauges = await db.gauges()
      await db.close()
      return gauges.secured
    }
    expect(await secured(undefined)).toBe(false)
    expect(await secured(`${role}_owned`)).toBe(true)
  })

  test('that a role has in some tables alone, as when one was in use, is not in force, and hides no row of a tenant', async () => {
    const url = await ownDatabase()
    const service = await started(url, { ROW_LEVEL_SECURITY: 'required', DATABASE_ROLE: `${role}_half` })
    const { tenant_id, api_key } = await service.signUp()
    await service.ask('PUT', '/v1/kv/n/k', { key: api_key, body: { value: 1 } })
    const connection = new SQL({ url, max: 1 })
    await connection.unsafe('alter table tenants disable row level security')
    await connection.close()
    const db = await openPostgres(url, { clock: systemClock, role: `${role}_half` })
    const seen = unnamed<{ n: number }>(
      'test.of_tenant',
      'select count(*) as n from kv_entries where tenant_id = :tenant_id',
    )
    expect(await db.all(seen, { tenant_id })).toEqual([{ n: 1 }])
    expect((await db.gauges()).secured).toBe(false)
    expect(await db.takeRole(`${role}_half`)).toBe(false)
    await expect(db.takeRole(`${role}_of_nobody`)).rejects.toThrow('does not exist')
    await db.close()
  })

  test('is off for a node with another role, and stays in force for those that have the role of the tables', async () => {
    const url = await ownDatabase()
    const service = await started(url, { ROW_LEVEL_SECURITY: 'required', DATABASE_ROLE: `${role}_one` })
    const { api_key } = await service.signUp()
    const other = await started(url, { DATABASE_ROLE: `${role}_other` })
    expect(reasonOf(other)).toMatch(/^the table \w+ is prepared for another role than \w+_other$/)
    for (const node of [service, other])
      expect((await node.ask('GET', '/v1/kv/n/k', { key: api_key })).status).toBe(404)
  })

  test('is off for a login that may use no schema', async () => {
    const astray = `${role}_astray`
    await server.unsafe(`create role ${astray} login password '${astray}'`)
    await server.unsafe(`alter role ${astray} set search_path = nowhere`)
    const db = await openPostgres(urlOf(await ownDatabase(), astray), { clock: systemClock })
    const expected = { off: `${astray} may use no schema in its search_path`, is_late: false }
    expect(await rowSecurity(db, role)).toEqual(expected)
    expect(await secureRows(db, role)).toEqual(expected)
    await db.close()
  })

  test('is off where the role is that of another login of the server', async () => {
    const url = await ownDatabase()
    const of_others = `${role}_of_others`
    await server.unsafe(`create role ${of_others} nologin`)
    await server.unsafe(`grant ${of_others} to ${login}`)
    const service = await started(url, { DATABASE_ROLE: of_others })
    expect(reasonOf(service)).toBe(
      `another login has the role ${of_others}, such as that of another service: set DATABASE_ROLE`,
    )
    const connection = new SQL({ url: urlOf(url, login), max: 1 })
    expect(connection`select count(*) from kv_entries`.execute()).rejects.toThrow(/permission denied/)
    await connection.close()
  })

  test('is off where a policy or a right is not what it was made as, and mended by the next start', async () => {
    const url = await ownDatabase()
    const environment = { DATABASE_ROLE: `${role}_one`, ROW_LEVEL_SECURITY: 'required' }
    const service = await started(url, environment)
    await service.signUp()
    const operator = new Operator({ DATABASE_URL: url, DATABASE_ROLE: `${role}_one` })
    const note = async () => ((await operator.json('check')) as { notes: string[] }).notes.at(-1)
    const all = new SQL({ url, max: 1 })
    const changes = [
      'alter policy waystation_of_tenant on tenants using (true)',
      'alter policy waystation_of_tenant on tenants with check (true)',
      `drop policy waystation_of_tenant on tenants;
       create policy waystation_of_tenant on tenants for select to ${role}_one using (
         tenant_id = current_setting('waystation.tenant', true) or current_setting('waystation.tenant', true) = '*')`,
      `revoke update on tenants from ${role}_one`,
    ]
    for (const change of changes) {
      await all.unsafe(change).simple()
      expect([change, await note()]).toEqual([
        change,
        `row-level security is off: the table tenants is not prepared for the role ${role}_one`,
      ])
      await started(url, environment)
      expect(await note()).toBe(`row-level security is in force for the role ${role}_one`)
    }
    await all.close()
  })

  test('is off where the role is a member of the owner of the tables, whose policy shows all rows', async () => {
    const url = await ownDatabase()
    const environment = { DATABASE_OWNER_URL: urlOf(url, owner), DATABASE_ROLE: login }
    await server.unsafe(`grant ${owner} to ${login}`)
    const service = await started(urlOf(url, login), environment)
    await server.unsafe(`revoke ${owner} from ${login}`)
    expect(reasonOf(service)).toBe(`the role ${login} is a member of ${owner}, which owns the tables`)
  })

  test("the operator's commands work as the owner after session-settings, which off takes back", async () => {
    const url = await ownDatabase()
    const own_role = `${role}_own`
    await server.unsafe(`create role ${own_role} nologin; grant ${own_role} to ${owner}`).simple()
    const owner_url = urlOf(url, owner)
    const service = await started(owner_url, { DATABASE_ROLE: own_role, ROW_LEVEL_SECURITY: 'required' })
    await service.signUp()
    const all = new SQL({ url, max: 1 })
    await all.unsafe('create extension amcheck')
    const operator = new Operator({ DATABASE_URL: owner_url, DATABASE_ROLE: own_role })
    const { statements } = (await operator.json('session-settings')) as { statements: string[] }
    const set_role = `alter role ${owner} in database ${url.split('/').at(-1)} set role = '${own_role}'`
    expect(statements).toContain(set_role)

    const vacuumed = () =>
      all.unsafe(
        `select relname from pg_stat_user_tables where relname = 'tenants' and (last_vacuum is null or last_analyze is null)`,
      )
    expect(await vacuumed()).toHaveLength(1)
    expect(await operator.json('vacuum')).toEqual({ vacuumed: true })
    expect(await vacuumed()).toHaveLength(0)
    const { notes } = (await operator.json('check')) as { notes: string[] }
    expect(notes).toContain('indexes were not checked: permission denied for function bt_index_check')
    expect(notes).toContain(`row-level security is in force for the role ${own_role}`)
    expect((await operator.json('stats')) as unknown[]).toContainEqual({
      ...{ name: 'rows of tenants', value: 1 },
      bytes: expect.any(Number),
    })

    const off = operator.with({ ROW_LEVEL_SECURITY: 'off' })
    const back = (await off.json('session-settings')) as { statements: string[] }
    expect(back.statements).toContain(set_role.replace(/set role = .*/, 'reset role'))
    const connection = new SQL({ url: owner_url, max: 1 })
    expect([...(await connection`select current_user as name`)]).toEqual([{ name: owner }])
    await connection.close()
    await all.close()
  })

  test('off works as the login, beside the policies', async () => {
    const url = await newPostgresDatabase()
    urls.push(url)
    const service = await started(url, { ROW_LEVEL_SECURITY: 'off' })
    expect(reasonOf(service)).toBeUndefined()
    const { api_key } = await service.signUp()
    expect((await service.ask('PUT', '/v1/kv/n/k', { key: api_key, body: { value: 1 } })).status).toBe(200)
  })
})
