// Paths, methods and lists of every route, generated from the list of routes.

import { beforeAll, expect, test } from 'bun:test'
import { hour_ms } from '../src/base/clock.ts'
import { type Route, successStatus } from '../src/contract/route.ts'
import { routes } from '../src/features.ts'
import {
  bearer,
  bytesButId,
  call,
  callersOf,
  errorBytes,
  type Keyring,
  neverExisted,
  newKeyring,
  ownHeaders,
  pathWith,
  ready,
  titled,
} from './support/contract.ts'
import { exampleBody, exampleParam } from './support/contract-examples.ts'
import { happened } from './support/happened.ts'
import { cron_secret, forEachWholeService, type TestService } from './support/service.ts'

/** Its GET counts, and so does its HEAD: see its own tests. */
const counting = 'GET /api/rate-limit/check'
const readable = titled(routes.filter(({ route }) => route.method === 'GET'))
const readable_alike = readable.filter(([title]) => title !== counting)
const paths = [...new Set(routes.map(({ route }) => route.path))]

forEachWholeService('a path', (service) => {
  service.over_http = true
  let a: Keyring
  beforeAll(async () => {
    a = await newKeyring(service)
  })

  test.each(readable_alike)('%s: HEAD answers as GET does, without the body', async (_, named) => {
    const made = await ready(service, named, a)
    for (const headers of [{}, ...callersOf(named.route, a).map(([, own]) => own)]) {
      const sent = { headers: { ...headers, 'x-request-id': 'head-and-get' } }
      const got = await service.ask('GET', made.path, sent)
      const head = await service.ask('HEAD', made.path, sent)
      expect([head.status, head.text]).toEqual([got.status, ''])
      expect(headersButDate(head.headers)).toEqual(headersButDate(got.headers))
    }
  })

  test.each(paths)(
    '%s: OPTIONS is 204 with Allow, methods that it lacks are 405 with Allow',
    async (path) => {
      const allowed = allowedOn(path)
      const { route } = routes.find((named) => named.route.path === path)!
      const url = filled(path)
      const options = await service.ask('OPTIONS', url)
      expect([options.status, options.text, options.headers.get('allow')]).toEqual([
        204,
        '',
        allowed.join(', '),
      ])
      expect(options.headers.get('x-request-id')).toMatch(/^req_/)
      expect(options.headers.get('access-control-allow-origin')).toBeNull()
      const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PURGE'].filter(
        (m) => !allowed.includes(m),
      )
      for (const method of others) {
        for (const headers of [{}, ownHeaders(a, 'admin')]) {
          const answer = await service.ask(method, url, { headers })
          expect([method, answer.headers.get('allow')]).toEqual([method, allowed.join(', ')])
          expect(answer.status).toBe(405)
          if (method === 'HEAD') expect(answer.text).toBe('')
          else expect(bytesButId(answer)).toBe(errorBytes('METHOD_NOT_ALLOWED', route))
        }
      }
      expect(others.length).toBeGreaterThan(0)
    },
  )

  const unknown = [
    '/',
    '/v1',
    '/v1/',
    '/v2/tenants',
    '/V1/tenants',
    '/v1/kv//x',
    '/v1/nothing',
    '/v1/audit/x/y',
  ]
  /** A slash at the end leads nowhere, save below a path that takes any. */
  const closed = paths.filter((path) => !path.endsWith('*') && !paths.includes(`${path}/*`))
  test.each([...unknown, ...closed.map((path) => `${filled(path)}/`)])(
    '%s is unknown: 404 ROUTE_NOT_FOUND, for every method, with a key or without',
    async (path) => {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        for (const headers of [{}, ownHeaders(a, 'admin'), bearer('garbage')]) {
          const answer = await service.ask(method, path, { headers })
          expect([method, answer.status]).toEqual([method, 404])
          expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
          if (method !== 'HEAD') expect(bytesButId(answer)).toBe(errorBytes('ROUTE_NOT_FOUND'))
        }
      }
    },
  )
})

forEachWholeService('a cursor', (service) => {
  service.over_http = true
  /** Filled by the worker, not by a caller, or with an item for many: their pages are tested with their features. */
  const filled_by_us = [
    '/v1/schedules/:id/attempts',
    '/v1/checkpoints/:id/attempts',
    '/v1/checkpoints/:id/votes',
    '/v1/checkpoints/:id/comments',
    '/v1/subscriptions/:id/attempts',
    '/v1/audit/suggestions/:field',
    '/v1/dlq/operations/:id/items',
  ]
  const lists = titled(
    routes.filter(({ route }) => route.query?.properties.cursor && !filled_by_us.includes(route.path)),
  )

  test('there is a list for each exception', () => {
    expect(routes.map(({ route }) => route.path)).toEqual(expect.arrayContaining(filled_by_us))
  })

  test.each(lists)(
    '%s: leads through all of the list, and is worth nothing anywhere else',
    async (_, named) => {
      const { route } = named
      const [a, b] = [await newKeyring(service), await newKeyring(service)]
      const params = Object.fromEntries(
        Object.entries(route.params ?? {}).map(([name, param]) => [name, exampleParam(route, name, param)]),
      )
      const path = pathWith(route, params)
      for (let i = 0; i < 3; i++) await addItem(service, route, a, params)
      for (let i = 0; i < 3; i++) await addItem(service, route, b, params)
      const [kind] = route.auth
      const page = (keyring: Keyring, at: string, query: string) =>
        service.ask('GET', `${at}?limit=1${query}`, { headers: ownHeaders(keyring, kind!) })

      const whole = await service.ask('GET', path, { headers: ownHeaders(a, kind!) })
      const items: unknown[] = []
      const cursors: string[] = []
      for (let next: string | null = ''; next !== null; next = cursors.at(-1) ?? null) {
        const { body } = await page(a, path, next && `&cursor=${next}`)
        items.push(...body.items)
        if (body.next_cursor === null) break
        cursors.push(body.next_cursor)
      }
      expect(items).toEqual(whole.body.items)
      expect([items.length, whole.body.next_cursor]).toEqual([cursors.length + 1, null])
      expect(cursors.length).toBeGreaterThanOrEqual(2)

      const cursor = cursors[0]!
      const flipped = (at: number) =>
        cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1)
      const elsewhere = lists.filter(([, other]) => other.route !== route && other.route.auth.includes(kind!))
      const refused: [Keyring, string, string][] = [
        [b, path, cursor],
        ...['', 'x', cursor.slice(0, -1), `${cursor}A`, `${cursor}=`, `${cursor}%00`, '%ff'].map(
          (text): [Keyring, string, string] => [a, path, text],
        ),
        ...Array.from(cursor, (_char, at): [Keyring, string, string] => [a, path, flipped(at)]),
        ...elsewhere.map(([, other]): [Keyring, string, string] => [a, examplePath(other.route), cursor]),
        ...(Object.keys(params).length > 0
          ? [[a, examplePath(route), cursor] as [Keyring, string, string]]
          : []),
      ]
      for (const [keyring, at, text] of refused) {
        const answer = await page(keyring, at, `&cursor=${text}`)
        expect([at, text, answer.status]).toEqual([at, text, 400])
        expect(answer.body.error.details.issues.map((issue: { path: string }) => issue.path)).toEqual([
          'query.cursor',
        ])
      }
    },
  )
})

function examplePath(route: Route): string {
  return pathWith(route, neverExisted(route))
}

function filled(path: string): string {
  return path.replace(/:\w+/g, 'x-1').replace(/\*$/, 'x-2')
}

interface Named {
  'x-name'?: string
  properties?: { items?: { items?: Named } }
}

/** The name of what a route answers. */
function shapeOf(route: Route): string | undefined {
  return (route.replies[successStatus(route)]!.body as Named | null)?.['x-name']
}

/** The name of the items of a list. */
function itemShapeOf(list: Route): string | undefined {
  return (list.replies[successStatus(list)]!.body as Named).properties?.items?.items?.['x-name']
}

function allowedOn(path: string): string[] {
  const methods: string[] = routes.flatMap(({ route }) => (route.path === path ? [route.method] : []))
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort()
}

function headersButDate(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => name !== 'date').sort()
}

/** One more item of a list, by the POST on its path, the PUT below it, a POST that answers such an item, or the PUT that fills what is read here. */
async function addItem(service: TestService, list: Route, keyring: Keyring, params: Record<string, string>) {
  if (list.path === '/v1/workflows') {
    // A workflow begins with its first event.
    await happened(service, keyring.tenant_id, `wf-${crypto.randomUUID()}`)
    service.clock.advance(1)
    return
  }
  if (list.path === '/v1/seal/checkpoints') {
    // One is kept an hour after something was sealed.
    await happened(service, keyring.tenant_id, 'sealed')
    for (const advance_ms of [0, hour_ms]) {
      service.clock.advance(advance_ms)
      expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
    }
    return
  }
  const maker =
    routes.find(({ route }) => route.path === list.path && (route.create ?? route.replies[201])) ??
    routes.find(({ route }) => route.path.startsWith(`${list.path}/:`) && route.method === 'PUT') ??
    routes.find(({ route }) => route.create && itemShapeOf(list) && shapeOf(route) === itemShapeOf(list)) ??
    routes.find(({ route }) => route.tag === list.tag && route.method === 'PUT')
  if (!maker) throw new Error(`nothing makes an item of GET ${list.path}`)
  const { route } = maker
  const all = Object.entries(route.params ?? {}).map(([name, param]) => [
    name,
    params[name] ?? exampleParam(route, name, param),
  ])
  const path = pathWith(route, Object.fromEntries(all))
  const [, headers] = callersOf(route, keyring)[0]!
  const answer = await call(service, maker, { path, body: exampleBody(route) }, { headers })
  expect(answer.status).toBe(successStatus(route))
  service.clock.advance(1)
}
