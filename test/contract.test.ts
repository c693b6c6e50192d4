// Generated from the list of routes: a new route is covered without a word here.

import { beforeAll, expect, test } from 'bun:test'
import { second_ms } from '../src/base/clock.ts'
import { newKey } from '../src/base/keys.ts'
import type { CallerKind } from '../src/contract/caller.ts'
import { api } from '../src/contract/group.ts'
import { type Route, successStatus } from '../src/contract/route.ts'
import { routes } from '../src/features.ts'
import {
  bearer,
  bytesButId,
  call,
  caller_kinds,
  callersOf,
  errorBytes,
  expectEnvelope,
  idParams,
  isAuthenticated,
  type Keyring,
  neverExisted,
  newKeyring,
  ownHeaders,
  pathWith,
  ready,
  readyIn,
  readyToRefuse,
  seenBy,
  titled,
  wrongKindBytes,
} from './support/contract.ts'
import { type Dead, requireKnown, unusable, withDeadKeys } from './support/contract-credentials.ts'
import { exampleBody, exampleQuery } from './support/contract-examples.ts'
import { cron_secret, forEachWholeService, type TestService } from './support/service.ts'

const everything = titled(routes)
const authenticated = titled(routes.filter(isAuthenticated))
/** A key of some kind may not call it. */
const takes_some_kinds = titled(
  routes.filter((named) => isAuthenticated(named) && named.route.auth.length < caller_kinds.length),
)
const open_to_all = titled(routes.filter((named) => !isAuthenticated(named) && !named.route.cron))
const with_params = titled(routes.filter(({ route }) => Object.keys(route.params ?? {}).length > 0))
const with_ids = titled(routes.filter(({ route }) => idParams(route).length > 0))

forEachWholeService('every route', (service) => {
  service.over_http = true
  let a: Keyring
  beforeAll(async () => {
    a = await newKeyring(service)
  })

  test.each(everything)(
    '%s answers what it declares to each kind of key that it is for, in each form',
    async (_, named) => {
      const { route } = named
      for (const [who, headers] of callersOf(route, a)) {
        const keyless = who === 'anybody' || who === 'cron'
        const forms = ['own header', 'Bearer', 'both', ...(route.group === api ? ['x-api-key alone'] : [])]
        for (const form of keyless ? [who] : forms) {
          const made = await ready(service, named, a)
          const own = keyless ? headers : ownHeaders(made.keyring, who as CallerKind)
          const key = keyless ? '' : made.keyring.keys[who as CallerKind]
          const sent: Record<string, Record<string, string>> = {
            Bearer: bearer(key),
            both: { ...own, ...bearer(key) },
            'x-api-key alone': { 'x-api-key': key },
          }
          const answer = await call(service, named, made, { headers: sent[form] ?? own })
          expect([who, form, answer.status]).toEqual([who, form, successStatus(route)])
          expect(answer.headers.get('x-ignored-fields')).toBeNull()
        }
      }
    },
  )

  test.each(titled(routes.filter(({ route }) => 304 in route.replies)))(
    '%s answers 304 without a body to a caller that has the version already',
    async (_, named) => {
      const made = await ready(service, named, a)
      const [, headers] = callersOf(named.route, a)[0]!
      const etag = (await call(service, named, made, { headers })).headers.get('etag')!
      const again = await call(service, named, made, { headers: { ...headers, 'if-none-match': etag } })
      expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag])
    },
  )

  test.each(everything)(
    '%s keeps a request id of 8 to 64 letters, digits, dots, dashes and underscores, and replaces others',
    async (_, named) => {
      const made = await ready(service, named, a)
      const kept = ['a.B-9_zz', '12345678', 'x'.repeat(64)]
      const replaced = ['1234567', 'x'.repeat(65), 'has space', 'sla/shed', 'col:oned', 'ümlautids', '']
      for (const headers of [{}, ...callersOf(named.route, made.keyring).map(([, own]) => own)]) {
        const answered = await Promise.all(
          [...kept, ...replaced].map(async (id) => {
            const sent = { headers: { ...headers, 'x-request-id': id } }
            const answer = await service.ask(named.route.method, made.path, sent)
            if (answer.status >= 400 && answer.body.error) expectEnvelope(answer, named.route)
            return answer.headers.get('x-request-id')
          }),
        )
        expect(answered.slice(0, kept.length)).toEqual(kept)
        const fresh = answered.slice(kept.length)
        for (const id of fresh) expect(id).toMatch(/^req_[0-9a-hjkmnp-tv-z]{26}$/)
        expect(new Set(fresh).size).toBe(replaced.length)
      }
    },
  )
})

forEachWholeService('the key of a request', (service) => {
  let a: Keyring
  let b: Keyring
  let dead: Dead
  beforeAll(async () => {
    a = await newKeyring(service)
    b = await newKeyring(service)
    dead = await withDeadKeys(service)
  })

  test.each(authenticated)(
    '%s: a caller without a valid one gets 401, always the same bytes',
    async (_, named) => {
      const made = await ready(service, named, dead.keyring)
      const rows = Object.entries(unusable({ ...dead, keyring: made.keyring }, named.route))
      const seen = await Promise.all(
        rows.map(async ([name, headers]) => {
          const answer = await call(service, named, made, { headers })
          return [name, bytesButId(answer), answer.headers.get('www-authenticate')]
        }),
      )
      expect(seen).toEqual(rows.map(([name]) => [name, errorBytes('UNAUTHORIZED', named.route), 'Bearer']))
      // Nothing of all that had an effect: the object is still there.
      const [, headers] = callersOf(named.route, made.keyring)[0]!
      expect((await call(service, named, made, { headers })).status).toBe(successStatus(named.route))
    },
  )

  test('is of any kind for the comments and votes of a checkpoint alone', () => {
    const any = routes.filter((named) => named.route.auth.length === caller_kinds.length)
    expect(any.map(({ name }) => name).toSorted()).toEqual(['createComment', 'listComments', 'listVotes'])
  })

  test.each(takes_some_kinds)('%s: a valid one of the wrong kind gets 403 FORBIDDEN', async (_, named) => {
    const made = await readyToRefuse(service, named, a)
    const wrong = caller_kinds.filter((kind) => !named.route.auth.includes(kind))
    for (const keyring of [made.keyring, b]) {
      for (const kind of wrong) {
        for (const headers of [ownHeaders(keyring, kind), bearer(keyring.keys[kind])]) {
          const answer = await call(service, named, made, { headers })
          expect([kind, bytesButId(answer)]).toEqual([kind, wrongKindBytes(kind, named.route)])
          expect(answer.headers.get('www-authenticate')).toBeNull()
        }
      }
    }
    expect(wrong.length).toBeGreaterThan(0)
  })

  test.each(authenticated)('%s: two different ones get 400, whatever each is worth', async (_, named) => {
    const made = await ready(service, named, a)
    const { keys } = made.keyring
    const own = ownHeaders(made.keyring, named.route.auth[0]!)
    const pairs: Record<string, string>[] = [
      { 'x-admin-key': keys.admin, ...ownHeaders(made.keyring, 'agent') },
      { ...ownHeaders(made.keyring, 'agent'), 'x-approval-key': keys.approval },
      { ...own, ...bearer(b.keys[named.route.auth[0]!]) },
      { ...own, ...bearer(newKey(named.route.auth[0]!)) },
      { 'x-admin-key': newKey('admin'), 'x-approval-key': newKey('approval') },
    ]
    for (const headers of pairs) {
      const answer = await call(service, named, made, { headers })
      expect([answer.status, answer.body.error.code]).toEqual([400, 'VALIDATION_FAILED'])
      expect(answer.body.error.details).toEqual({
        issues: [{ path: 'header', message: 'two different keys were sent; send one' }],
      })
    }
  })

  test.each(open_to_all)('%s: none is read, not even two different ones', async (_, named) => {
    const sent = [
      { authorization: 'Bearer garbage' },
      ownHeaders(a, 'approval'),
      { 'x-admin-key': a.keys.admin, ...bearer(b.keys.admin) },
    ]
    for (const headers of sent) {
      const made = await ready(service, named, a)
      expect((await call(service, named, made, { headers })).status).toBe(successStatus(named.route))
    }
  })

  test('POST /v1/tick takes the cron secret as Bearer and looks at nothing else; the secret opens nothing else', async () => {
    const tick = routes.find(({ route }) => route.cron)!
    const made = await ready(service, tick, a)
    const refused = [
      {},
      bearer('garbage'),
      bearer(a.keys.admin),
      ownHeaders(a, 'admin'),
      { 'x-admin-key': cron_secret },
    ]
    for (const headers of refused) {
      const answer = await call(service, tick, made, { headers })
      expect(bytesButId(answer)).toBe(errorBytes('UNAUTHORIZED'))
    }
    const two = { ...bearer(cron_secret), ...ownHeaders(a, 'admin'), ...ownHeaders(b, 'agent') }
    expect((await call(service, tick, made, { headers: two })).status).toBe(200)
    const elsewhere = await service.ask('GET', '/v1/agents', { headers: bearer(cron_secret) })
    expect(bytesButId(elsewhere)).toBe(errorBytes('UNAUTHORIZED'))
  })

  const rotating = authenticated.flatMap(([title, named]) =>
    named.route.auth.filter((kind) => kind !== 'approval').map((kind) => [title, kind, named] as const),
  )
  test.each(rotating)(
    '%s: one that was rotated with a grace works to its last millisecond (%s key)',
    async (_, kind, named) => {
      const grace_seconds = 60
      for (const [after_ms, status] of [
        [0, 200],
        [grace_seconds * second_ms - 1, 200],
        [grace_seconds * second_ms, 401],
      ] as const) {
        const owner = await newKeyring(service)
        await rotate(service, owner, kind, grace_seconds)
        service.clock.advance(Math.max(0, after_ms - 1))
        // Made now: it may expire sooner than the key.
        const made = await readyIn(service, named, owner)
        // Remembered a millisecond before, which must not help it.
        await requireKnown(service, owner.keys[kind])
        service.clock.advance(Math.min(1, after_ms))
        const answer = await call(service, named, made, { headers: ownHeaders(owner, kind) })
        if (status === 401) expect([after_ms, answer.status]).toEqual([after_ms, 401])
        else expect(Object.keys(named.route.replies)).toContain(String(answer.status))
      }
    },
  )

  const works_while_pending = [
    'GET /v1/tenants/:tenant_id',
    'DELETE /v1/tenants/:tenant_id',
    'POST /v1/tenants/:tenant_id/restore',
  ]
  test.each(authenticated)(
    '%s: once the tenant waits for its deletion, it gets 403 TENANT_PENDING_DELETION or still serves',
    async (title, named) => {
      const made = await ready(service, named, await newKeyring(service))
      const { keyring } = made
      const asked = { key: keyring.keys.admin, body: { confirm: 'DELETE ALL DATA' } }
      expect((await service.ask('DELETE', `/v1/tenants/${keyring.tenant_id}`, asked)).status).toBe(202)
      for (const kind of caller_kinds) {
        const serves = kind === 'admin' && works_while_pending.includes(title)
        const answer = await call(service, named, made, { headers: ownHeaders(keyring, kind) })
        if (serves) expect([kind, answer.status]).toEqual([kind, successStatus(named.route)])
        else
          expect([kind, bytesButId(answer)]).toEqual([
            kind,
            errorBytes('TENANT_PENDING_DELETION', named.route),
          ])
        // The allowed verb may have restored the tenant: then it is deleted again for the next kind.
        if (serves) await service.ask('DELETE', `/v1/tenants/${keyring.tenant_id}`, asked)
      }
    },
  )

  test('once the tenant is restored, each of its keys serves again at once', async () => {
    const owner = await newKeyring(service)
    const path = `/v1/tenants/${owner.tenant_id}`
    const ask = (kind: CallerKind) => service.ask('GET', '/v1/agents/-', { key: owner.keys[kind] })
    const codes = () => Promise.all(caller_kinds.map(async (kind) => (await ask(kind)).body.error.code))
    await service.ask('DELETE', path, { key: owner.keys.admin, body: { confirm: 'DELETE ALL DATA' } })
    expect(await codes()).toEqual(caller_kinds.map(() => 'TENANT_PENDING_DELETION'))
    expect((await service.ask('POST', `${path}/restore`, { key: owner.keys.admin })).status).toBe(200)
    expect(await codes()).toEqual(['AGENT_NOT_FOUND', 'AGENT_NOT_FOUND', 'FORBIDDEN'])
  })
})

forEachWholeService("another tenant's", (service) => {
  let a: Keyring
  let b: Keyring
  beforeAll(async () => {
    a = await newKeyring(service)
    b = await newKeyring(service)
  })

  test.each(with_params)(
    '%s: what another tenant has answers byte for byte like what never existed, and stays as it was',
    async (_, named) => {
      const { route } = named
      for (const kind of route.auth) {
        const theirs = await ready(service, named, b)
        const before = await seenBy(service, theirs.keyring, objectPaths(route, theirs.params))
        const foreign = await service.ask(route.method, theirs.path, {
          headers: ownHeaders(a, kind),
          ...(theirs.body ? { body: { ...theirs.body, tenant_id: theirs.keyring.tenant_id } } : {}),
        })
        const never = neverExisted(route)
        const unknown = await call(
          service,
          named,
          { path: `${pathWith(route, never)}${exampleQuery(route)}`, body: theirs.body },
          { headers: ownHeaders(a, kind) },
        )
        expect(masked(bytesButId(foreign), theirs.params)).toBe(masked(bytesButId(unknown), never))
        if (idParams(route).length > 0) expect(unknown.status).toBe('tenant_id' in never ? 403 : 404)
        expect(await seenBy(service, theirs.keyring, objectPaths(route, theirs.params))).toEqual(before)
      }
    },
  )

  test.each(with_ids)('%s: an id of any form gets the answer of an unknown one', async (_, named) => {
    const { route } = named
    const odd = [
      '-',
      '%20',
      '%00',
      '%ff',
      '%2F',
      '%2e%2e%2f',
      '%22',
      "x'--",
      'x'.repeat(65),
      'x'.repeat(3_000),
    ]
    const forms = [...odd, '%F0%9F%98%80', '%EF%BF%BD', '*', ':tenant_id', 'null', '__proto__']
    const body = exampleBody(route)
    const [, headers] = callersOf(route, a)[0]!
    const unknown = await call(
      service,
      named,
      { path: pathWith(route, neverExisted(route)), body },
      { headers },
    )
    for (const name of idParams(route)) {
      const seen = await Promise.all(
        forms.map(async (form) => {
          const others = Object.fromEntries(idParams(route).map((other) => [other, '-']))
          const path = pathWith(route, { ...others, [name]: '@' }).replace('%40', form)
          return [form, bytesButId(await call(service, named, { path, body }, { headers }))]
        }),
      )
      expect(seen).toEqual(forms.map((form) => [form, bytesButId(unknown)]))
    }
  })
})

/** An answer may repeat the names that the client chose. */
function masked(text: string, params: Record<string, string>): string {
  return Object.entries(params).reduce((rest, [name, value]) => rest.replaceAll(value, `<${name}>`), text)
}

/** Where the object of these parameters can be read. */
function objectPaths(route: Route, params: Record<string, string>): string[] {
  const readers = routes.filter(
    ({ route: other }) => other.method === 'GET' && route.path.startsWith(other.path),
  )
  return readers.map(({ route: other }) => pathWith(other, params))
}

/** Gives the tenant a new key; the keyring keeps the old one. */
async function rotate(
  service: TestService,
  { keys, tenant_id, agent_id }: Keyring,
  kind: CallerKind,
  grace_seconds: number,
): Promise<void> {
  const path = kind === 'admin' ? `/v1/tenants/${tenant_id}` : `/v1/agents/${agent_id}`
  const asked = { key: keys.admin, body: { grace_seconds } }
  expect((await service.ask('POST', `${path}/rotate-key`, asked)).status).toBe(200)
}
