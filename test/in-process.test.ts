// An answer is the same in process as over HTTP: so tests ask in process where they are not about connections.

import { beforeAll, expect, spyOn, test } from 'bun:test'
import { type Route, successStatus } from '../src/contract/route.ts'
import { routes } from '../src/features.ts'
import { body_bytes_max } from '../src/http/body-stream.ts'
import {
  bearer,
  callersOf,
  idParams,
  type Keyring,
  neverExisted,
  newKeyring,
  pathWith,
  ready,
  readyToRefuse,
  titled,
} from './support/contract.ts'
import { exampleQuery, type Json } from './support/contract-examples.ts'
import { type Answer, forEachWholeService } from './support/service.ts'

const request_id = 'the-same-for-both'
/** Of the connection, not of the answer. */
const of_connections = ['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding']

function headersOf({ headers }: Answer): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !of_connections.includes(name)))
}

/** Refused before the values in it are looked at. */
const unread = [
  ...['{', '[]', '"ä"', '{"a":'.repeat(100)],
  ...[Buffer.from([0xff]), Buffer.alloc(body_bytes_max + 1, ' ')],
]

function unservedMethods({ path }: Route): string[] {
  const served = routes.flatMap(({ route }) => (route.path === path ? [route.method as string] : []))
  return ['OPTIONS', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => !served.includes(method))
}

/** The members of a body, and the kind of value that each has. */
function shapeOf(value: Json): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (value === null || typeof value !== 'object') return typeof value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member as Json)]))
}

forEachWholeService('in process', (service) => {
  let a: Keyring
  beforeAll(async () => {
    a = await newKeyring(service)
  })

  test.each(titled(routes))('%s succeeds as it does over HTTP', async (_, named) => {
    const { route } = named
    for (const method of route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]) {
      const succeed = async () => {
        const made = await ready(service, named, a)
        const [, own] = callersOf(route, made.keyring)[0]!
        const asked = { headers: { ...own, 'x-request-id': request_id }, body: made.body }
        return service.ask(method, made.path, asked)
      }
      const in_process = await succeed()
      const over_http = await service.overHttp(succeed)
      expect(over_http.status).toBe(successStatus(route))
      expect(in_process.status).toBe(over_http.status)
      expect(Object.keys(headersOf(in_process))).toEqual(Object.keys(headersOf(over_http)))
      expect(in_process.headers.get('x-request-id')).toBe(request_id)
      expect(shapeOf(in_process.body ?? in_process.text)).toEqual(shapeOf(over_http.body ?? over_http.text))
    }
  })

  test.each(titled(routes))('%s refuses byte for byte as it does over HTTP', async (_, named) => {
    const { route } = named
    const made = await readyToRefuse(service, named, a)
    const [, own] = callersOf(route, made.keyring)[0]!
    const asked = {
      method: route.method as string,
      path: made.path,
      headers: own,
      body: undefined as unknown,
    }
    const nowhere = `${pathWith(route, neverExisted(route))}${exampleQuery(route)}`
    const rows = [
      { ...asked, headers: bearer('unknown') },
      { ...asked, headers: { ...own, 'x-admin-key': 'one', 'x-api-key': 'another' } },
      { ...asked, headers: { ...own, host: 'elsewhere.example' } },
      { ...asked, path: `${made.path.split('?')[0]}/beyond` },
      ...(idParams(route).length > 0 ? [{ ...asked, path: nowhere, body: made.body }] : []),
      ...unservedMethods(route).map((method) => ({ ...asked, method })),
      ...(route.body ? unread.map((body) => ({ ...asked, body })) : []),
    ]
    for (const { method, path, headers, body } of rows) {
      const send = () =>
        service.ask(method, path, { headers: { ...headers, 'x-request-id': request_id }, body })
      const in_process = await send()
      const over_http = await service.overHttp(send)
      const seen = (answer: Answer) => ({
        asked: `${method} ${path}`,
        bytes: answer.text,
        headers: headersOf(answer),
      })
      expect([in_process.status, seen(in_process)]).toEqual([over_http.status, seen(over_http)])
    }
  })

  test.each([
    ['a dot segment', 'GET', '/v1/kv/./in-process/odd'],
    ['two dots', 'GET', '/v1/nothing/../kv/in-process/odd'],
    ['escaped dots', 'GET', '/v1/kv/%2e%2e/agents'],
    ['an escaped dot', 'PUT', '/v1/kv/%2e/odd'],
    ['an escape that is not needed', 'GET', '/v1/%6Bv/in-process/odd'],
    ['escapes in names', 'GET', '/v1/kv/in%2Dprocess/%6Fdd'],
    ['an escaped slash', 'GET', '/v1/kv/in-process/odd%2Fodder'],
    ['what must be escaped', 'GET', '/v1/kv/in-process/ä "'],
    ['half an escape', 'GET', '/v1/kv/in-process/%E'],
    ['an escape of a byte that is not UTF-8', 'GET', '/v1/kv/in-process/%FF%EF%BF%BD'],
    ['an empty segment', 'GET', '/v1/kv//odd'],
    ['a slash at its end', 'GET', '/v1/kv/in-process/odd/'],
    ['capitals', 'GET', '/V1/kv/in-process/odd'],
    ['a fragment', 'GET', '/v1/kv/in-process/odd#there'],
    ['a query that is empty', 'GET', '/v1/kv/in-process/odd?'],
    ['a query with a question mark', 'GET', '/v1/kv/in-process?prefix=?'],
    ['a fixed segment where others have a parameter', 'GET', '/v1/dlq/claim'],
    ['a method in small letters', 'get', '/v1/kv/in-process/odd'],
    ['a method that no path has', 'PROPFIND', '/v1/kv/in-process/odd'],
    ['the root', 'GET', '/'],
    ['a page that is sent compressed', 'GET', '/docs'],
  ])('%s is answered as it is over HTTP', async (_, method, path) => {
    await service.ask('PUT', '/v1/kv/in-process/odd', { key: a.keys.agent, body: { value: 1 } })
    const send = () =>
      service.ask(method, path, { key: a.keys.agent, headers: { 'x-request-id': request_id } })
    const seen = (answer: Answer) => [answer.status, answer.text, headersOf(answer)]
    expect(seen(await send())).toEqual(seen(await service.overHttp(send)))
  })

  test('what asks over HTTP at once connects until each is done, and nothing does after', async () => {
    const connected = spyOn(globalThis, 'fetch')
    const ask = () => service.ask('GET', '/livez')
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    try {
      const [one, other] = gates.map(({ promise }) => service.overHttp(() => promise.then(ask)))
      gates[0].resolve()
      await one
      gates[1].resolve()
      await other
      expect(connected).toHaveBeenCalledTimes(2)
      await ask()
      expect(connected).toHaveBeenCalledTimes(2)
    } finally {
      connected.mockRestore()
    }
  })
})
