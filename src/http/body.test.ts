import { describe, expect, test } from 'bun:test'
import { Type } from 'typebox'
import { ApiError } from '../base/errors.ts'
import { AnyJson, AnyJsonObject, RawJson } from '../contract/schemas.ts'
import { Reader, requireJson } from './body.ts'
import { IgnoredNames } from './ignored.ts'

/** The code of what was thrown; what was answered when nothing was. */
async function codeOf(action: () => unknown): Promise<unknown> {
  try {
    return await action()
  } catch (error) {
    return error instanceof ApiError ? error.code : error
  }
}

describe('A content type', () => {
  test.each([
    null,
    '',
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    ' application/json ;charset=utf-8',
    'text/plain',
    'text/plain;charset=UTF-8',
    'application/cloudevents+json',
    'application/vnd.api+json; version=1',
  ])('%j is taken for JSON', (type) => {
    expect(() => requireJson(headersOf({ 'content-type': type }))).not.toThrow()
  })

  test.each([
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/html',
    'text/json',
    'application/jsonp',
    'application/json+xml',
    'application/xml',
    'json',
    '+json',
    'application/octet-stream',
    'application/json, text/html',
    '*/*',
  ])('%j is UNSUPPORTED_MEDIA_TYPE', async (type) => {
    expect(await codeOf(() => requireJson(headersOf({ 'content-type': type })))).toBe(
      'UNSUPPORTED_MEDIA_TYPE',
    )
  })

  test.each([
    [null, undefined],
    ['identity', undefined],
    [' Identity ', undefined],
    ['gzip', 'UNSUPPORTED_MEDIA_TYPE'],
    ['br', 'UNSUPPORTED_MEDIA_TYPE'],
    ['identity, gzip', 'UNSUPPORTED_MEDIA_TYPE'],
  ])('beside Content-Encoding %j answers %p', async (encoding, expected) => {
    const headers = headersOf({ 'content-type': 'application/json', 'content-encoding': encoding })
    expect(await codeOf(() => requireJson(headers))).toBe(expected)
  })
})

function headersOf(entries: Record<string, string | null>): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(entries)) if (value !== null) headers.set(name, value)
  return headers
}

describe('A body', () => {
  const required = new Reader(
    Type.Object({
      value: AnyJson(16, 'Any JSON.'),
      name: Type.String({ minLength: 2, maxLength: 4, 'x-trim': true }),
      count: Type.Optional(Type.Integer({ minimum: 0 })),
      kind: Type.Optional(Type.Enum(['a', 'b'])),
      when: Type.Optional(Type.String({ format: 'date-time' })),
    }),
  )
  const optional = new Reader(
    Type.Object({
      object: Type.Optional(AnyJsonObject(16, 'An object.')),
      value: Type.Optional(AnyJson(16, 'Any JSON.')),
      label: Type.Optional(Type.String()),
    }),
  )

  async function read(reader: Reader<never>, text: string | Uint8Array) {
    const names = new IgnoredNames()
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    const value = (await (reader as Reader<ReturnType<typeof Type.Object>>).body(bytes, names)) as object
    return { value: value as Record<string, unknown>, ignored: names.header?.split(', ') ?? [] }
  }
  const readRequired = (text: string | Uint8Array) => read(required as never, text)
  const readOptional = (text: string | Uint8Array) => read(optional as never, text)

  /** Code and paths of what was thrown. */
  async function refusal(action: () => Promise<unknown>): Promise<unknown[]> {
    try {
      return ['nothing was refused', await action()]
    } catch (error) {
      const { code, details } = error as ApiError
      const issues = (details?.issues ?? []) as { path: string }[]
      return [code, ...issues.map(({ path }) => path)]
    }
  }

  test('gives its typed members, and any-JSON members as their text', async () => {
    const { value, ignored } = await readRequired(
      '{"value": [1 ,2], "name": " abc ", "count": 60.0, "kind": "b"}',
    )
    expect(value).toEqual({ value: new RawJson('[1 ,2]'), name: 'abc', count: 60, kind: 'b' })
    expect(ignored).toEqual([])
  })

  test('names what the schema does not know, in their order, prototype names too', async () => {
    const { value, ignored } = await readOptional(
      '{"b": 1, "label": "x", "__proto__": {"label": "y"}, "toString": 2}',
    )
    expect(ignored).toEqual(['b', '__proto__', 'toString'])
    expect(value).toEqual({ label: 'x' })
  })

  test('that is absent is accepted where every field is optional', async () => {
    expect((await readOptional('')).value).toEqual({})
    expect(await refusal(() => readRequired(''))).toEqual(['INVALID_JSON'])
  })

  test('lists every broken rule', async () => {
    const refused = await refusal(() =>
      readRequired('{"name": "x", "count": -1, "kind": "c", "when": "now"}'),
    )
    expect([refused[0], ...refused.slice(1).toSorted()]).toEqual([
      'VALIDATION_FAILED',
      '/count',
      '/kind',
      '/name',
      '/value',
      '/when',
    ])
  })

  test('takes null for an absent field, save where null is a JSON value', async () => {
    const { value } = await readOptional('{"object": null, "value": null, "label": null}')
    expect(value).toEqual({ value: new RawJson('null') })
    expect(await refusal(() => readRequired('{"value": null, "name": null}'))).toEqual([
      'VALIDATION_FAILED',
      '/name',
    ])
  })

  test.each(['[]', '"x"', '1', 'true'])('%s is not an object', async (text) => {
    expect(await refusal(() => readOptional(`{"object": ${text}}`))).toEqual(['VALIDATION_FAILED', '/object'])
  })

  test.each([
    ['"12345678901234"', true],
    ['"123456789012345"', false],
    ['"éééé56"', true],
    ['"ééééééé"', true],
    ['"éééééééx"', false],
    ['"語語語語xx"', true],
    ['"語語語語xxx"', false],
  ] as const)('counts bytes: an any-JSON member %s of at most 16 is taken: %p', async (text, taken) => {
    const refused = await refusal(() => readOptional(`{"value": ${text}}`))
    expect(refused[0]).toBe(taken ? 'nothing was refused' : 'PAYLOAD_TOO_LARGE')
  })

  describe('of a member within members', () => {
    const limited = Type.Object({
      text: Type.Optional(Type.String({ 'x-bytes-max': 16 })),
      tree: Type.Optional(
        Type.Unsafe<object>({
          ...{ type: 'object', 'x-bytes-max': 16 },
          properties: { deep: { type: 'string', 'x-bytes-max': 4 } },
        }),
      ),
      free: Type.Optional(Type.String()),
    })
    const nested = new Reader(Type.Object({ of: Type.Optional(Type.Object({ in: Type.Optional(limited) })) }))

    const readNested = async (text: string) =>
      nested.body(new TextEncoder().encode(`{"of": ${text}}`), new IgnoredNames())

    test.each([
      ['{"text": "1234567890123456"}', true],
      ['{"text": "12345678901234567"}', false],
      ['{"text": "éééééééé"}', true],
      ['{"text": "ééééééééx"}', false],
      ['{"text": "\\u006fnce, escaped 1"}', true],
      ['{"text": "\\u006fnce, escaped 12x"}', false],
      ['{"text": "x", "te\\u0078t": "12345678901234567"}', false],
      ['{"text": "12345678901234567", "text": "x"}', true],
      ['{"tree": {"a": 12345678}}', true],
      ['{"tree": {"a": 123456789}}', true],
      ['{"tree": {"a": 1234567890}}', false],
      ['{"tree": {"a":         1}}', true],
      ['{"tree": {"a":          1}}', false],
      ['{"tree": {"deep":"1234"}}', true],
      ['{"tree": {"deep":"12345"}}', false],
      ['{"free": "no limit of its own, and none of another"}', true],
      ['null', true],
    ] as const)('its limit is in bytes as well: %s is taken: %p', async (text, taken) => {
      const refused = await refusal(() => readNested(`{"in": ${text}}`))
      expect(refused[0]).toBe(taken ? 'nothing was refused' : 'PAYLOAD_TOO_LARGE')
    })

    test.each([
      ['[1, 2, 3, 4, 5, 6, 7]', '/of'],
      ['{"in": "far longer than any limit"}', '/of/in'],
      ['{"in": {"text": [1, 2, 3, 4, 5, 6, 7]}}', '/of/in/text'],
      ['{"in": {"tree": "far longer than its limit"}}', '/of/in/tree'],
    ])('a value of another type is refused for its type: %s', async (text, path) => {
      expect(await refusal(() => readNested(text))).toEqual(['VALIDATION_FAILED', path])
    })

    test.each([
      ['a list', Type.Array(Type.String({ 'x-bytes-max': 16 }))],
      ['a choice', Type.Union([Type.String({ 'x-bytes-max': 16 }), Type.Null()])],
      ['an object of the body', Type.Object({}, { 'x-bytes-max': 16 })],
    ])('cannot be declared for %s, where nobody would judge it', (_, member) => {
      expect(() => new Reader(Type.Object({ member }))).toThrow('x-bytes-max')
    })
  })

  test.each(['{"label": "a\\u0000b"}', '{"label": "\\ud800"}', '{"label": "\\udc00\\ud800"}'])(
    '%s is not plain text',
    async (text) => {
      expect(await refusal(() => readOptional(text))).toEqual(['VALIDATION_FAILED', '/label'])
    },
  )

  describe('whose texts are not plain, behind long names', () => {
    const within = (name: string, texts: number) =>
      refusal(() => readOptional(`{"label": {"${name}": [${Array(texts).fill('"\\u0000"')}]}}`))

    test('lists them while their places have 262,144 characters, and one more', async () => {
      const name = 'n'.repeat(1_000)
      const listed = Math.ceil(262_145 / `/label/${name}/100`.length) // the first hundred are a little shorter
      const refused = await within(name, 10_000)
      expect(refused.length).toBeGreaterThan(listed)
      expect(refused.length).toBeLessThan(listed + 3)
      expect(refused.slice(0, 3)).toEqual(['VALIDATION_FAILED', `/label/${name}/0`, `/label/${name}/1`])
    })

    test('lists the first whatever it is, and shows 1,024 characters of its place', async () => {
      for (const name of ['n'.repeat(500_000), `${'n'.repeat(1_016)}\u{1f600}`]) {
        const [code, first, ...others] = (await within(name, 10_000)) as string[]
        expect([code, first, others.length < 300]).toEqual(['VALIDATION_FAILED', expect.any(String), true])
        expect([first!.length, first!.isWellFormed()]).toEqual([1_024, true])
      }
    })
  })

  describe('with a list of objects that name all their members', () => {
    const reader = new Reader(
      Type.Object({
        any: Type.Array(
          Type.Object({ type: Type.Optional(Type.String()) }, { additionalProperties: false }),
          { maxItems: 4 },
        ),
      }),
    )
    const unknown = (members: number) =>
      `{${Array.from({ length: members }, (_, i) => `"${i}": "\\u0000"`).join(', ')}}`
    const refused = async (...items: string[]) => {
      const text = Buffer.from(`{"any": [${items.join(', ')}]}`)
      return refusal(async () => reader.body(text, new IgnoredNames()))
    }

    test('refuses one with more than 100 unknown members as a whole, once', async () => {
      const [code, ...paths] = (await refused('{"type": "a"}', unknown(102), '{"type": 1}')) as string[]
      expect([code, paths]).toEqual(['VALIDATION_FAILED', ['/any/1', '/any/2/type']])
    })

    test('names up to 100 unknown members one by one', async () => {
      const [code, ...paths] = (await refused(unknown(101))) as string[]
      expect([code, paths]).toEqual([
        'VALIDATION_FAILED',
        Array.from({ length: 101 }, (_, i) => `/any/0/${i}`),
      ])
    })
  })

  test('tells one issue of a field, not two', async () => {
    expect(await refusal(() => readRequired('{"value": 1, "name": "a\\u0000"}'))).toEqual([
      'VALIDATION_FAILED',
      '/name',
    ])
  })

  test.each([
    ['[]', ['VALIDATION_FAILED', '']],
    ['null', ['VALIDATION_FAILED', '']],
    ['7', ['VALIDATION_FAILED', '']],
    ['{', ['INVALID_JSON']],
    ['{}x', ['INVALID_JSON']],
    ["{'label': 1}", ['INVALID_JSON']],
    ['\ufeff{}', ['INVALID_JSON']],
    [' ', ['INVALID_JSON']],
  ])('%j is refused as %j', async (text, expected) => {
    expect(await refusal(() => readOptional(text))).toEqual(expected)
  })

  test('that is not UTF-8 is INVALID_JSON', async () => {
    const bytes = Buffer.concat([Buffer.from('{"label": "'), Buffer.from([0xe9]), Buffer.from('"}')])
    expect(await refusal(() => readOptional(bytes))).toEqual(['INVALID_JSON'])
  })
})

describe('A query', () => {
  const reader = new Reader(
    Type.Object({
      limit: Type.Optional(Type.Integer({ minimum: 1 })),
      name: Type.Optional(Type.String()),
      at: Type.Optional(Type.String({ format: 'date-time' })),
    }),
  )

  test.each([
    ['', {}],
    ['limit=5', { limit: 5 }],
    ['name=a+b%20c', { name: 'a b c' }],
    ['name=%C3%A9', { name: 'é' }],
    ['name', { name: '' }],
    ['name=', { name: '' }],
    ['name=a=b', { name: 'a=b' }],
    ['n%61me=x', { name: 'x' }],
    ['name=x&name=y', { name: 'y' }],
    ['name=%00&limit=x&name=y&limit=5', { name: 'y', limit: 5 }],
    ['other=1&toString=2&__proto__=3', {}],
    ['other=%ZZ&name=x', { name: 'x' }],
    ['&&name=x&', { name: 'x' }],
    ['at=2026-01-01T00:00:00%2B02:00', { at: '2026-01-01T00:00:00+02:00' }],
  ] as [string, object][])('%s gives %j', async (text, expected) => {
    expect((await reader.query(text)) as object).toEqual(expected)
  })

  test.each([
    ['limit=x', 'query.limit'],
    ['limit=', 'query.limit'],
    ['limit=0', 'query.limit'],
    ['limit=1.5', 'query.limit'],
    ['limit=%FF', 'query.limit'],
    ['name=%ZZ', 'query.name'],
    ['name=%', 'query.name'],
    ['name=%00', 'query.name'],
    ['name=%&name=%', 'query.name'],
    ['name=%ED%A0%80', 'query.name'],
    ['at=2026-01-01T00:00:00+02:00', 'query.at'],
  ])('%s is refused at %s', async (text, path) => {
    const error = (await codeOfIssues(async () => reader.query(text))) as unknown[]
    expect(error).toEqual(['VALIDATION_FAILED', path])
  })

  async function codeOfIssues(action: () => Promise<unknown>): Promise<unknown> {
    try {
      return await action()
    } catch (error) {
      const { code, details } = error as ApiError
      return [code, ...(details!.issues as { path: string }[]).map(({ path }) => path)]
    }
  }
})
