// Bodies and queries, valid and invalid, generated from the schemas of every route that takes one.

import { beforeAll, describe, expect, test } from 'bun:test'
import type { ErrorCode, Issue } from '../src/base/errors.ts'
import { levels_max } from '../src/base/json.ts'
import type { NamedRoute } from '../src/contract/feature.ts'
import { type Route, successStatus } from '../src/contract/route.ts'
import { routes } from '../src/features.ts'
import { body_bytes_max } from '../src/http/body-stream.ts'
import {
  bytesButId,
  call,
  callersOf,
  errorBytes,
  type Keyring,
  newKeyring,
  type Ready,
  ready,
  readyToRefuse,
  titled,
} from './support/contract.ts'
import { proposed } from './support/contract-effects.ts'
import {
  bodyText,
  bytesOf,
  edges,
  example,
  fieldsOf,
  isRequired,
  type Json,
  withField,
  wrongValues,
} from './support/contract-examples.ts'
import { type Answer, forEachWholeService, type TestService } from './support/service.ts'

/** As a service without settings reads them. */
const configured = routes.map((named) => {
  const body = named.route.configuredBody?.({ plans_open: ['free', 'pro', 'unlimited'] })
  return body ? { ...named, route: { ...named.route, body } } : named
})
/** The clock is advanced by a year before the other routes leave work for it. */
const isFirst = ({ name }: { name: string }) => Number(name === 'advanceClock')
const with_body = titled(
  configured.filter(({ route }) => route.body).toSorted((a, b) => isFirst(b) - isFirst(a)),
)
/** Passes every `beside_ms` while the time of the tests stands still: it bounds how long an advance works. */
const passing_ms = 1_000
const beside_ms = 100
/** Positions that an earlier page returned: no example can be made up. */
const of_pages = ['cursor', 'after', 'before']
/** The workflow in the example of a wait. */
const waited_for = 'night-17'
const with_query = titled(routes.filter(({ route }) => fieldsOf(route.query).length > 0))

/** So that an address is taken where one may be given; nobody listens there. */
const with_mail = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'waystation@example.com' }

forEachWholeService(
  'a body',
  (service) => {
    let a: Keyring
    beforeAll(async () => {
      a = await newKeyring(service)
    })

    /** Ends a request that would take long: the advance by its time bound, a wait by an event. */
    const beside: Record<string, (keyring: Keyring) => unknown> = {
      advanceClock: () => service.clock.advance(passing_ms),
      waitForEvent: ({ keys }) =>
        service.ask('POST', '/v1/audit', {
          ...{ key: keys.agent, headers: { 'X-Workflow-Id': waited_for }, body: { action: 'a' } },
        }),
    }

    /** Sends these bytes, without a content type unless given, on an object of their own. */
    async function send(named: NamedRoute, made: Ready, body: unknown, headers: Record<string, string> = {}) {
      const [, own] = callersOf(named.route, made.keyring)[0]!
      const others: unknown[] = []
      const passing = setInterval(() => others.push(beside[named.name]?.(made.keyring)), beside_ms)
      try {
        const asked = { body, headers: { ...own, ...headers } }
        return await call(service, named, { path: made.path, body: undefined }, asked)
      } finally {
        clearInterval(passing)
        await Promise.all(others)
      }
    }

    /** Ready for every field: some are for the approval of an effect alone. */
    async function readyForAll(named: NamedRoute): Promise<Ready> {
      const made = await ready(service, named, a)
      return named.name === 'approveCheckpoint' ? proposed(service, named.route, made) : made
    }

    /** The same for a body that is to be taken, made from the example: whose names may not be used twice. */
    async function taken(
      named: NamedRoute,
      bytes: (body: Json) => Uint8Array,
      headers?: Record<string, string>,
    ) {
      const made = await readyForAll(named)
      const answer = await send(named, made, bytes(made.body!), headers)
      expect([answer.status, answer.status < 300 ? '' : answer.text]).toEqual([
        successStatus(named.route),
        '',
      ])
      return answer
    }

    test.each(with_body)('%s: what is not JSON, or not UTF-8, is INVALID_JSON', async (_, named) => {
      const made = await readyToRefuse(service, named, a)
      const good = bodyText(made.body!)
      const texts = [
        '{',
        '}',
        '{"a":}',
        '{"a":1,}',
        "{'a':1}",
        '{a:1}',
        'nope',
        `${good} x`,
        `${good}${good}`,
        ' ',
      ]
      const bytes = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc3]].map((odd) =>
        Buffer.concat([bytesOf('{"x":"'), Buffer.from(odd), bytesOf('"}')]),
      )
      const bom = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytesOf(good)])
      const rows = [...texts.map(bytesOf), ...bytes, bom, ...(required(named.route) ? [bytesOf('')] : [])]
      for (const row of rows)
        expectFault(named.route, await send(named, made, row), 'INVALID_JSON', String(row))
    })

    test.each(with_body)('%s: JSON that is not an object is VALIDATION_FAILED', async (_, named) => {
      const made = await readyToRefuse(service, named, a)
      const issues = [{ path: '', message: 'must be an object' }]
      for (const text of ['[]', `[${bodyText(made.body!)}]`, '"x"', '1', 'true', 'null', ' [] '])
        expectFault(named.route, await send(named, made, bytesOf(text)), 'VALIDATION_FAILED', text, issues)
    })

    test.each(with_body)('%s: 64 levels are taken, 65 are not', async (_, named) => {
      // The body itself is the first level.
      const nested = (levels: number) => `"deep":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}`
      await taken(named, (body) => bytesOf(bodyText(body, nested(levels_max))))
      const made = await readyToRefuse(service, named, a)
      const issues = [{ path: '', message: 'is nested deeper than 64 levels' }]
      for (const levels of [levels_max + 1, 10_000]) {
        const answer = await send(named, made, bytesOf(bodyText(made.body!, nested(levels))))
        expectFault(named.route, answer, 'VALIDATION_FAILED', `${levels} levels`, issues)
      }
    })

    test.each(with_body)('%s: a media type other than JSON, or an encoding, is 415', async (_, named) => {
      const types = [
        'application/json',
        'Application/JSON; charset=utf-8',
        'application/merge-patch+json',
        'text/plain',
      ]
      for (const type of types)
        await taken(named, (body) => bytesOf(bodyText(body)), { 'content-type': type })
      await taken(named, (body) => bytesOf(bodyText(body)), { 'content-encoding': 'identity' })
      const made = await readyToRefuse(service, named, a)
      const refused = [
        ...[
          'text/html',
          'application/x-www-form-urlencoded',
          'multipart/form-data; boundary=x',
          'application/jsonx',
        ],
        ...['application/octet-stream', 'application/json-seq', 'text/json', 'x', '+json'],
      ].map((type): Record<string, string> => ({ 'content-type': type }))
      const encoded = ['gzip', 'br', 'deflate', 'zstd', 'identity, gzip'].map((encoding) => ({
        'content-encoding': encoding,
        'content-type': 'application/json',
      }))
      for (const headers of [...refused, ...encoded]) {
        const answer = await send(named, made, bytesOf(bodyText(made.body!)), headers)
        expect([headers, answer.status, answer.body.error.code]).toEqual([
          headers,
          415,
          'UNSUPPORTED_MEDIA_TYPE',
        ])
      }
    })

    test.each(with_body)(
      '%s: 1 MiB is taken, one byte more is 413, with a length or in chunks',
      async (_, named) => {
        const { route } = named
        const padded = (body: Json, bytes: number) => bytesOf(bodyText(body).padEnd(bytes, ' '))
        await service.overHttp(() => taken(named, (body) => padded(body, body_bytes_max)))
        const made = await ready(service, named, a)
        const chunksTo = ({ keyring, path }: Ready) => ({
          url: service.url + path,
          method: route.method,
          headers: callersOf(route, keyring)[0]![1],
        })
        const whole = await sendChunked(chunksTo(made), padded(made.body!, body_bytes_max))
        expect(whole.status).toBe(successStatus(route))

        const other = await readyToRefuse(service, named, a)
        const over = padded(other.body!, body_bytes_max + 1)
        const with_length = await service.overHttp(() => send(named, other, over))
        expect(bytesButId(with_length)).toBe(errorBytes('PAYLOAD_TOO_LARGE', named.route))
        const refused = await sendChunked(chunksTo(other), over)
        expect([refused.status, ((await refused.json()) as Answer['body']).error.code]).toEqual([
          413,
          'PAYLOAD_TOO_LARGE',
        ])
        // The rest of a body without a length has no known end.
        expect(refused.headers.get('connection')).toBe('close')
      },
    )

    test.each(with_body)(
      '%s: unknown fields are ignored, and the first 20 harmless names told',
      async (_, named) => {
        const told = ['tenant_id', 'x', '__proto__', 'constructor', 'a.b-c_D9', 'x'.repeat(64)]
        const untold = ['', 'with space', 'ümlaut', 'x'.repeat(65), 'a,b', 'line\nfeed', 'x: y']
        const names = [...untold, ...told, ...Array.from({ length: 13 }, (_name, i) => `unknown_${i}`)]
        const members = (list: string[]) =>
          list.map((name) => `${JSON.stringify(name)}:{"a":[1,"ten_x",null]}`)
        const nineteen = await taken(named, (body) => bytesOf(bodyText(body, ...members(names))))
        expect(nineteen.headers.get('x-ignored-fields')?.split(', ')).toEqual(names.slice(untold.length))
        const more = [...names, 'twenty', 'one_too_many', 'two_too_many']
        const twenty = await taken(named, (body) => bytesOf(bodyText(body, ...members(more))))
        expect(twenty.headers.get('x-ignored-fields')?.split(', ')).toEqual([
          ...names.slice(untold.length),
          'twenty',
        ])
        const none_told = await taken(named, (body) => bytesOf(bodyText(body, ...members(untold))))
        expect(none_told.headers.get('x-ignored-fields')).toBeNull()
      },
    )

    test.each(with_body)(
      '%s: whatever is wrong with its fields is listed, all of it at once',
      async (_, named) => {
        const { route } = named
        const made = await readyToRefuse(service, named, a)
        const fields = fieldsOf(route.body)
        const wrong = fields.map(([name, schema]) => [name, wrongValues(name, schema)] as const)
        const refuse = async (body: Json, names: string[]) => {
          const answer = await send(named, made, bytesOf(bodyText(body)))
          expectFault(route, answer, 'VALIDATION_FAILED', bodyText(body).slice(0, 200), names.map(pointer))
        }
        for (const [name, values] of wrong) {
          for (const value of values) await refuse(withField(route, made.body!, name, value), [name])
        }
        const all = wrong.filter(([, values]) => values.length > 0)
        if (all.length > 0) {
          const body = Object.fromEntries(all.map(([name, values]) => [name, values[0]]))
          const missing = fields.flatMap(([name]) =>
            isRequired(route.body, name) && !(name in body) ? [name] : [],
          )
          await refuse(body, [...all.map(([name]) => name), ...missing])
        }
        const needed = fields.flatMap(([name]) => (isRequired(route.body, name) ? [name] : []))
        if (needed.length > 0) await refuse({}, needed)
        for (const name of needed) {
          const { [name]: _left_out, ...rest } = made.body!
          await refuse(rest, [name])
        }
      },
    )

    test.each(with_body)(
      '%s: text with NUL or a lone surrogate is refused, field by field',
      async (_, named) => {
        const made = await readyToRefuse(service, named, a)
        for (const [name, schema] of fieldsOf(named.route.body)) {
          if (schema.type !== 'string') continue
          for (const text of ['"a\\u0000b"', '"\\ud800"', '"\\udc00x"', '"\\ude00\\ud83d"']) {
            const { [name]: _other, ...rest } = made.body!
            const answer = await send(named, made, bytesOf(bodyText(rest, `"${name}":${text}`)))
            const issues = [{ path: `/${name}`, message: 'must be well-formed text without NUL' }]
            expectFault(named.route, answer, 'VALIDATION_FAILED', `${name} ${text}`, issues)
          }
        }
      },
    )

    test.each(with_body)(
      '%s: null is like nothing for a field, unless any JSON may stand there',
      async (_, named) => {
        const { route } = named
        for (const [name, schema] of fieldsOf(route.body)) {
          const nulled = (body: Json) => bytesOf(bodyText(withField(route, body, name, null)))
          if (schema['x-any-json'] === 'any' || schema['x-null'] || !isRequired(route.body, name)) {
            await taken(named, nulled)
            continue
          }
          const made = await readyToRefuse(service, named, a)
          const answer = await send(named, made, nulled(made.body!))
          expectFault(route, answer, 'VALIDATION_FAILED', name, [
            { path: `/${name}`, message: 'is required' },
          ])
        }
      },
    )

    test.each(with_body)(
      '%s: each field is taken up to its edges, and 1.0 is an integer',
      async (_, named) => {
        for (const [name, schema] of fieldsOf(named.route.body)) {
          for (const value of edges(name, schema))
            await taken(named, (body) => bytesOf(bodyText(withField(named.route, body, name, value))))
          if (schema.type !== 'integer') continue
          const least = String(schema.minimum ?? 1)
          for (const text of [`${least}.0`, `${least}e0`])
            await taken(named, ({ [name]: _other, ...rest }) => bytesOf(bodyText(rest, `"${name}":${text}`)))
        }
      },
    )

    test.each(with_body)(
      '%s: of a field given twice the last one counts, escaped or not',
      async (_, named) => {
        const { route } = named
        for (const [name, schema] of fieldsOf(route.body)) {
          const [wrong] = wrongValues(name, schema)
          if (wrong === undefined) continue
          const good = JSON.stringify(isRequired(route.body, name) ? undefined : example(route, name, schema))
          const escaped = `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`
          const made = await readyToRefuse(service, named, a)
          const { [name]: given, ...rest } = made.body!
          const value = given === undefined ? good : JSON.stringify(given)
          const twice = bodyText(rest, `"${name}":${value}`, `"${escaped}":${JSON.stringify(wrong)}`)
          expectFault(route, await send(named, made, bytesOf(twice)), 'VALIDATION_FAILED', twice, [
            pointer(name),
          ])
          if (given === undefined) continue
          await taken(named, ({ [name]: mine, ...others }) =>
            bytesOf(
              bodyText(others, `"${escaped}":${JSON.stringify(wrong)}`, `"${name}":${JSON.stringify(mine)}`),
            ),
          )
        }
      },
    )

    describe('a member that has members of its own', () => {
      const issuesOf = async (text: string) => {
        const { status, body } = await service.ask('POST', '/v1/dlq/redrive', {
          key: a.keys.admin,
          body: text,
        })
        expect([status, body.error.code]).toEqual([400, 'VALIDATION_FAILED'])
        return body.error.details.issues as Issue[]
      }
      const too_many = { path: '/filter/ids', message: 'must not have more than 5000 items' }

      // Each of these has some hundred thousand parts: an answer of one issue shows that none was listed, or looked for.
      test.each([
        ['numbers', '1'],
        ['objects', '{}'],
        ['texts with NUL', '"\\u0000"'],
        ['arrays', '[[[]]]'],
      ])('far too many %s in an array are one issue', async (_, item) => {
        const items = Array.from({ length: Math.floor(1_000_000 / (item.length + 1)) }, () => item)
        expect(await issuesOf(`{"filter":{"ids":[${items}]}}`)).toEqual([too_many])
      })

      test('one too many is the same issue, beside the others', async () => {
        const ids = JSON.stringify(Array(5_001).fill('x'))
        expect(await issuesOf(`{"filter":{"ids":${ids}}}`)).toEqual([too_many])
        const all = await issuesOf(`{"filter":{"ids":${ids},"status":"x","other":1},"max":0}`)
        expect(all.map(({ path }) => path).toSorted()).toEqual([
          ...['/filter/ids', '/filter/other', '/filter/status', '/max'],
        ])
      })

      test('far too many members are one issue, and a few unknown ones are each an issue', async () => {
        const members = (count: number) => Array.from({ length: count }, (_, i) => `"k${i}":"\\u0000"`)
        expect(await issuesOf(`{"filter":{${members(40_000)}}}`)).toEqual([
          { path: '/filter', message: 'must not have more than 8 members' },
        ])
        expect(await issuesOf('{"filter":{"k1":1,"k2":null,"k3":3}}')).toEqual([
          { path: '/filter/k1', message: 'is not known' },
          { path: '/filter/k3', message: 'is not known' },
        ])
      })

      test('each text that cannot be stored is an issue with its path', async () => {
        const message = 'must be well-formed text without NUL'
        expect(await issuesOf(`{"filter":{"cause":"\\ud800","ids":["a","\\u0000","b","\\udc00"]}}`)).toEqual([
          ...['/filter/cause', '/filter/ids/1', '/filter/ids/3'].map((path) => ({ path, message })),
        ])
        const odd = await issuesOf(`{"filter":{"ids":[${Array(5_000).fill('"\\u0000"')}]}}`)
        expect(odd).toEqual(Array.from(odd, (_, i) => ({ path: `/filter/ids/${i}`, message })))
        expect(odd.length).toBe(5_000)
        const elsewhere = await issuesOf(`{"filter":{},"max":[${Array(100_000).fill('"\\u0000"')}]}`)
        expect(elsewhere.length).toBe(10_001)
      })
    })

    const all_optional = with_body.filter(([, { route }]) => !required(route))
    test.each(all_optional)('%s: since every field may be left out, so may the body', async (_, named) => {
      for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/html' }]) {
        await taken(named, () => bytesOf(''), headers)
        const made = await ready(service, named, a)
        const answer = await send(named, made, undefined, headers)
        expect(answer.status).toBe(successStatus(named.route))
      }
    })
  },
  with_mail,
)

forEachWholeService('a query', (service) => {
  let a: Keyring
  beforeAll(async () => {
    a = await newKeyring(service)
  })

  test.each(with_query)('%s: whatever is wrong with it is listed, all of it at once', async (_, named) => {
    const { route } = named
    const refuse = async (query: string, names: string[]) => {
      const answer = await ask(service, named, a, query)
      expectFault(route, answer, 'VALIDATION_FAILED', query, names.map(inQuery))
    }
    const fields = fieldsOf(route.query)
    for (const [name, schema] of fields) {
      const odd = ['%ff', '%C0%80', '%', '%zz', 'a%00b', '%ED%A0%80']
      const typed = schema.type === 'integer' ? ['', 'x', '1.5', '1e1', '0x1', ' 1', '1,2'] : []
      const past = schema.minimum === undefined ? [] : [String(schema.minimum - 1)]
      const times =
        schema.format === 'date-time' ? ['', 'yesterday', '2026-01-01', '2026-01-01T00:00:00'] : []
      const long = schema.maxLength === undefined ? [] : ['x'.repeat(schema.maxLength + 1)]
      for (const text of [...odd, ...typed, ...past, ...times, ...long])
        await refuse(`${name}=${text}`, [name])
    }
    const all = fields.map(([name]) => `${name}=%ff`).join('&')
    await refuse(
      all,
      fields.map(([name]) => name),
    )
  })

  test.each(with_query)(
    '%s: a limit is 1 or more, above 200 it counts as 200; other names are ignored',
    async (_, named) => {
      const limits = fieldsOf(named.route.query).some(([name]) => name === 'limit')
        ? ['1', '200', '201', '1000000', '9'.repeat(30)]
        : []
      for (const query of [
        '',
        'unknown=1',
        '%ff=1',
        '&&=&',
        'a%00=%zz',
        ...limits.map((limit) => `limit=${limit}`),
      ]) {
        const answer = await ask(service, named, a, query)
        expect([query, answer.status]).toEqual([query, 200])
      }
    },
  )

  test.each(with_query)('%s: of a name given twice the last one counts', async (_, named) => {
    for (const [name, schema] of fieldsOf(named.route.query)) {
      if (of_pages.includes(name)) continue
      const good = encodeURIComponent(String(example(named.route, name, schema)))
      expect((await ask(service, named, a, `${name}=${good}`)).status).toBe(200)
      const answer = await ask(service, named, a, `${name}=${good}&${name}=%00`)
      expectFault(named.route, answer, 'VALIDATION_FAILED', name, [inQuery(name)])
    }
  })
})

async function ask(
  service: TestService,
  named: NamedRoute,
  keyring: Keyring,
  query: string,
): Promise<Answer> {
  const made = await ready(service, named, keyring)
  const [, headers] = callersOf(named.route, made.keyring)[0]!
  const path = `${made.path}${made.path.includes('?') ? '&' : '?'}${query}`
  return call(service, named, { path, body: undefined }, { headers })
}

function required(route: Route): boolean {
  return fieldsOf(route.body).some(([name]) => isRequired(route.body, name))
}

function pointer(name: string): Issue {
  return { path: `/${name}`, message: expect.stringMatching(/./) }
}

function inQuery(name: string): Issue {
  return { path: `query.${name}`, message: expect.stringMatching(/./) }
}

/** This code with these issues, or the one code that the route has for every fault of its body. */
function expectFault(route: Route, answer: Answer, code: ErrorCode, what: string, issues?: Issue[]): void {
  const { error } = answer.body ?? {}
  expect([what, answer.status, error?.code]).toEqual([what, 400, route.body_error ?? code])
  const told = error.details?.issues?.toSorted((one: Issue, two: Issue) => (one.path < two.path ? -1 : 1))
  const expected = route.body_error
    ? undefined
    : issues?.toSorted((one, two) => (one.path < two.path ? -1 : 1))
  expect([what, told]).toEqual([what, expected])
}

/** Without a length, in pieces of 64 KiB. */
function sendChunked(to: { url: string } & RequestInit, bytes: Uint8Array<ArrayBuffer>): Promise<Response> {
  const { url, ...request } = to
  let at = 0
  const body = new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.subarray(at, at + 65_536))
      at += 65_536
    },
  })
  return fetch(url, { ...request, body })
}
