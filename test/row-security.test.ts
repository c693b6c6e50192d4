// Row-level security as the second wall between tenants: with the conditions on the tenant taken out of every statement, no
// row of another tenant is read or changed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import type { NamedRoute } from '../src/contract/feature.ts'
import type { Scope } from '../src/db/db.ts'
import { statements, unnamed, unnamedAcrossTenants } from '../src/db/db.ts'
import { routes } from '../src/features.ts'
import {
  bytesButId,
  isAuthenticated,
  type Keyring,
  neverExisted,
  newKeyring,
  ownHeaders,
  pathWith,
  ready,
  titled,
} from './support/contract.ts'
import { onPostgres } from './support/databases.ts'
import { leaking_alone } from './support/leaking-routes.ts'
import { plant, rowsOf, tables, withoutTenant } from './support/mutants.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { few_connections, TestService } from './support/service.ts'

let planted = false

interface Attack {
  service: TestService
  /** As a superuser, whom no policy binds. */
  all: SQL
  own: Keyring
  other: Keyring
}

/** Returns what a call of this route, with the ids of another tenant, read or changed of that tenant. */
async function leakOf({ service, all, own, other }: Attack, named: NamedRoute): Promise<string[]> {
  const { route } = named
  const theirs = await ready(service, named, other)
  // An advance does what is due for every tenant, as a tick does: nothing of theirs is left for the one that is judged.
  if (named.name === 'advanceClock') {
    const settled = await service.ask('POST', '/v1/clock/advance', {
      key: other.keys.admin,
      body: { seconds: 1 },
    })
    expect(settled.body.done).toBe(true)
  }
  const before = await rowsOf(all, theirs.keyring.tenant_id)
  const ids = new Set(
    Object.values(before)
      .flat()
      .join(' ')
      .match(/\b[a-z]{3}_[0-9a-z]{26}\b/g),
  )
  const leaks: string[] = []
  for (const kind of route.auth) {
    const ask = (path: string) =>
      service.ask(route.method, path, {
        headers: ownHeaders(own, kind),
        ...(theirs.body === undefined ? {} : { body: theirs.body }),
      })
    planted = true
    try {
      const answer = await ask(theirs.path)
      const text = pathOf(route.path, theirs.params).reduce(
        (rest, id) => rest.replaceAll(id, '<id>'),
        answer.text,
      )
      if ([...ids].some((id) => text.includes(id))) leaks.push(`${kind} reads ${answer.text}`)
      if (answer.status >= 500)
        leaks.push(
          `${kind} is answered ${answer.status} ${JSON.stringify(service.logged.filter(({ level }) => level === 'error').at(-1))}`,
        )
      const has_ids = Object.values(route.params ?? {}).some(({ message }) => message === '')
      if (has_ids) {
        const params = neverExisted(route)
        const unknown = await ask(
          pathWith(route, params) + (theirs.path.split('?')[1] ? `?${theirs.path.split('?')[1]}` : ''),
        )
        const known = Object.values(theirs.params).reduce(
          (rest, id) => rest.replaceAll(id, '<id>'),
          bytesButId(answer),
        )
        const never = Object.values(params).reduce(
          (rest, id) => rest.replaceAll(id, '<id>'),
          bytesButId(unknown),
        )
        if (known !== never) leaks.push(`${kind} tells ${known} from ${never}`)
      }
    } finally {
      planted = false
    }
    const after = await rowsOf(all, theirs.keyring.tenant_id)
    for (const [table, rows] of Object.entries(before))
      if (JSON.stringify(rows) !== JSON.stringify(after[table])) leaks.push(`${kind} changes ${table}`)
  }
  return leaks
}

function pathOf(path: string, params: Record<string, string>): string[] {
  return Object.entries(params).flatMap(([name, value]) => (path.includes(`:${name}`) ? [value] : []))
}

onPostgres('Row-level security', () => {
  const attacked = titled(routes.filter(isAuthenticated))
  const start = async (environment: Record<string, string>) => {
    const service = new TestService({ CLOCK: 'test', ...few_connections, ...environment })
    service.engine = 'postgres'
    service.background = false
    const url = await newPostgresDatabase()
    await service.start(url)
    const attack = {
      service,
      all: new SQL({ url, max: 1 }),
      own: await newKeyring(service),
      other: await newKeyring(service),
    }
    const stop = async () => {
      await attack.all.close()
      await service.stop()
      await dropPostgresDatabase(url)
    }
    return { ...attack, stop }
  }

  const end = plant(() => planted)
  afterAll(end)

  test('the mutants have no condition on the tenant left, but for joins of its rows', () => {
    const bound = [...statements.values()].filter(
      ({ scope, text }) => scope === 'tenant' && !/^insert/i.test(text),
    )
    expect(bound.length).toBeGreaterThan(200)
    const kept = bound.filter((statement) => withoutTenant(statement) === statement)
    expect(kept.map(({ name }) => name)).toEqual([])
  })

  describe('in force', () => {
    let attack: Awaited<ReturnType<typeof start>>
    beforeAll(async () => {
      attack = await start({ ROW_LEVEL_SECURITY: 'required' })
    })
    afterAll(() => attack.stop())

    test('is forced on every table with a tenant, for a role that owns none', async () => {
      const found = await attack.all.unsafe(
        `select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as forced, pg_get_userbyid(c.relowner) as owner,
                (select string_agg(polname, ' ' order by polname) from pg_policy where polrelid = c.oid) as policies
           from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
          where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`,
      )
      expect(found.length).toBeGreaterThan(25)
      for (const { name, ...rest } of found)
        expect([name, rest]).toEqual([
          name,
          { forced: true, owner: 'postgres', policies: 'waystation_of_owner waystation_of_tenant' },
        ])
      const role = await attack.all.unsafe(
        `select rolsuper, rolbypassrls, rolcanlogin, rolcreaterole from pg_roles where rolname = 'waystation_app'`,
      )
      expect([...role]).toEqual([
        { rolsuper: false, rolbypassrls: false, rolcanlogin: false, rolcreaterole: false },
      ])
    })

    test.each(attacked)(
      '%s reads and changes nothing of another tenant without a condition on it',
      async (_, named) => {
        expect(await leakOf(attack, named)).toEqual([])
      },
    )
  })

  test('holds where writes of two tenants share a transaction', async () => {
    const { service, own, other, stop } = await start({
      ROW_LEVEL_SECURITY: 'required',
      DATABASE_CONNECTIONS: '3',
    })
    const both = [own, other]
    const paths = Array.from({ length: 40 }, (_, i) => `/v1/kv/shared/key-${i}`)
    const put = (tenant: Keyring, path: string, headers = {}) =>
      service.ask('PUT', path, {
        headers: { ...ownHeaders(tenant, 'agent'), ...headers },
        body: { value: tenant.tenant_id },
      })
    const audit = (tenant: Keyring, action: string) =>
      service.ask('POST', '/v1/audit', { headers: ownHeaders(tenant, 'agent'), body: { action } })
    planted = true
    try {
      const made = await Promise.all(paths.flatMap((path) => both.map((tenant) => put(tenant, path))))
      expect(new Set(made.map(({ status, body }) => `${status} ${body.version}`))).toEqual(new Set(['200 1']))
      const again = await Promise.all(
        paths.flatMap((path) => both.map((tenant) => put(tenant, path, { 'if-match': '"1"' }))),
      )
      expect(new Set(again.map(({ status, body }) => `${status} ${body.version}`))).toEqual(
        new Set(['200 2']),
      )
      const logged = await Promise.all(paths.flatMap((path) => both.map((tenant) => audit(tenant, path))))
      expect(logged.map(({ body }) => body.seq).toSorted((a, b) => a - b)).toEqual(
        paths.flatMap((_, i) => [i + 1, i + 1]),
      )
      for (const tenant of both)
        for (const path of paths) {
          const { body } = await service.ask('GET', path, { headers: ownHeaders(tenant, 'agent') })
          expect(body.value).toBe(tenant.tenant_id)
        }
    } finally {
      planted = false
      await stop()
    }
  })

  test('a statement that names no tenant at all sees none, and changes none', async () => {
    const attack = await start({ ROW_LEVEL_SECURITY: 'required' })
    const { service, all } = attack
    const seen = unnamedAcrossTenants<{ tenants: number }>(
      'test.all',
      'select count(*) as tenants from tenants',
    )
    await service.ask('PUT', '/v1/kv/n/k', { headers: ownHeaders(attack.own, 'agent'), body: { value: 1 } })
    for (const { name } of await all.unsafe(tables)) {
      const select = unnamed<{ tenant_id: string }>('test.select', `select tenant_id from ${name}`)
      expect(await service.app.db.all(select, {})).toEqual([])
      const change = unnamed('test.change', `update ${name} set tenant_id = tenant_id`)
      // Also where a statement before it in the transaction was allowed more.
      const [before, after, changed] = await service.app.db.write(async (tx) => [
        (await tx.one(seen, {}))!.tenants,
        (await tx.all(select, {})).length,
        await tx.run(change, {}),
      ])
      expect([name, before, after, changed]).toEqual([name, 2, 0, 0])
    }
    expect((await service.app.db.one(seen, {}))!.tenants).toBe(2)
    await attack.stop()
  })

  test('a statement sees no more than its own scope behind any other in its transaction', async () => {
    const { service, all, own, other, stop } = await start({ ROW_LEVEL_SECURITY: 'required' })
    await all.unsafe('truncate tenant_lookups')
    for (const { tenant_id } of [own, other])
      await all.unsafe(`insert into tenant_lookups (value, kind, tenant_id) values ($1, 'name', $2)`, [
        `of ${tenant_id}`,
        tenant_id,
      ])
    const text = 'select tenant_id from tenant_lookups where :given is not null order by 1'
    const scoped = (scope: Scope, param: string) => ({
      ...unnamedAcrossTenants<{ tenant_id: string }>(
        'test.scoped',
        text.replace(':given', `cast(:${param} as text)`),
      ),
      scope,
    })
    const scopes = {
      tenant: [scoped('tenant', 'tenant_id'), { tenant_id: own.tenant_id }, [own]],
      hash: [scoped('hash', 'hash'), { hash: `of ${other.tenant_id}` }, [other]],
      none: [scoped('none', 'nothing'), { nothing: '' }, []],
      all: [scoped('all', 'nothing'), { nothing: '' }, [own, other]],
    } as const
    for (const [before, [first, params]] of Object.entries(scopes))
      for (const [after, [second, given, seen]] of Object.entries(scopes)) {
        const rows = await service.app.db.write(async (tx) => {
          await tx.all(first, params)
          return tx.all(second, given)
        })
        const wanted = seen.map(({ tenant_id }) => ({ tenant_id }))
        expect([before, after, rows]).toEqual([
          before,
          after,
          wanted.toSorted((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1)),
        ])
      }
    await stop()
  })

  test('without it the same calls read and change what another tenant has', async () => {
    const attack = await start({ ROW_LEVEL_SECURITY: 'off' })
    const leaking: string[] = []
    const leaks = async (named: (typeof attacked)[number][1]) => {
      const found = await leakOf(attack, named).catch(async () => {
        attack.other = await newKeyring(attack.service)
        return []
      })
      return found.some((leak) => !leak.includes('is answered'))
    }
    for (const [title, named] of attacked)
      if (leaking_alone.includes(title))
        for (let tries = 0; tries < 3; tries++)
          if (await leaks(named)) {
            leaking.push(title)
            break
          }
    await attack.stop()
    expect(leaking.toSorted()).toEqual(leaking_alone.toSorted())
  }, 300_000)
})
