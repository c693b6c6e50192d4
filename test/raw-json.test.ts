// JSON that was stored comes back as the same bytes, with its numbers, key order, duplicates and white space.

import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { levels_max } from '../src/base/json.ts'
import { newKeyring } from './support/contract.ts'
import { type Answer, forEachService, served } from './support/service.ts'

const documents_min = 2_000
/** Requests under way at once. */
const lanes = 48
const logs_count = 8
/** For a machine that does other work beside. */
const patience_ms = 300_000
/** Of a document that did not pass. */
const shown_characters_max = 200

const space = fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n  ')
const digits = (least: number, most: number) =>
  fc
    .array(fc.constantFrom(...'0123456789'), { minLength: least, maxLength: most })
    .map((list) => list.join(''))
const number = fc.oneof(
  fc.constantFrom(
    '0',
    '-0',
    '-0.0',
    '1e400',
    '-1E+400',
    '1e-400',
    '0E0',
    '1.0',
    '100e-2',
    '9007199254740993',
  ),
  digits(29, 29).map((rest) => `9${rest}`),
  fc.tuple(digits(1, 6), digits(20, 40)).map(([whole, rest]) => `-1${whole}.${rest}`),
  fc
    .tuple(digits(1, 3), fc.constantFrom('e', 'E', 'e+', 'E-'), digits(1, 4))
    .map((parts) => `7${parts.join('')}`),
)
const piece = fc.oneof(
  fc.constantFrom(
    '\\u0000',
    '\\ud800',
    '\\uDFFF',
    '\\ude00\\ud83d',
    '\\ud83d\\ude00',
    '\\/',
    '\\"',
    '\\\\',
    '\\b\\f\\r',
  ),
  fc.constantFrom(
    'a',
    'é',
    'e\u0301',
    '😀',
    '\u2028',
    '\ufeff',
    '\u007f',
    '\ufffd',
    '\uffff',
    '/',
    '<script>',
    "'",
    '\\u0041',
  ),
  digits(1, 5),
)
const string = fc.array(piece, { maxLength: 8 }).map((pieces) => `"${pieces.join('')}"`)
const name = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '"a"',
      '"\\u0061"',
      '"__proto__"',
      '"constructor"',
      '"value"',
      '""',
      '"1"',
      '"0"',
    ),
  },
  { weight: 1, arbitrary: string },
)
const { tree, object } = fc.letrec<{ tree: string; object: string }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    fc.oneof(number, string, fc.constantFrom('true', 'false', 'null')),
    fc
      .tuple(fc.array(fc.tuple(space, tie('tree'), space), { maxLength: 4 }), space)
      .map(([items, inner]) =>
        items.length === 0 ? `[${inner}]` : `[${items.map((item) => item.join('')).join(',')}]`,
      ),
    tie('object'),
  ),
  object: fc
    .tuple(
      fc.array(fc.tuple(space, name, space, fc.constant(':'), space, tie('tree'), space), { maxLength: 5 }),
      space,
    )
    .map(([members, inner]) =>
      members.length === 0 ? `{${inner}}` : `{${members.map((member) => member.join('')).join(',')}}`,
    ),
}))
/** Deep ones, up to what the body around them leaves: 63 levels. */
const deep = fc
  .tuple(fc.integer({ min: 30, max: levels_max - 1 }), fc.boolean(), fc.oneof(number, string))
  .map(([levels, in_objects, core]) => nested(levels, in_objects, core))

const values = fc.sample(fc.oneof({ weight: 12, arbitrary: tree }, { weight: 1, arbitrary: deep }), {
  numRuns: documents_min,
  seed: 20_260_101,
})
const objects = fc.sample(
  fc.oneof(
    { weight: 12, arbitrary: object },
    { weight: 1, arbitrary: deep.map((text) => (text[0] === '{' ? text : '{}')) },
  ),
  { numRuns: documents_min, seed: 20_260_102 },
)

/** Features of the documents; at least `floor_min` documents have each. */
const floors: [what: string, shows: (text: string) => boolean][] = [
  ['30 digits', (text) => /[0-9]{30}/.test(text)],
  ['1e400', (text) => text.includes('1e400')],
  ['__proto__', (text) => text.includes('"__proto__"')],
  ['a key twice', (text) => /"a"\s*:.*"a"\s*:/s.test(text)],
  ['a key twice, once escaped', (text) => /"a"\s*:.*"\\u0061"\s*:/s.test(text)],
  ['escaped NUL', (text) => text.includes('\\u0000')],
  ['a lone surrogate', (text) => /\\uDFFF|\\ud800"/.test(text)],
  ['white space', (text) => /[[{,:][ \n\t\r]/.test(text)],
  ['30 levels and more', (text) => /[\]}]{30}/.test(text)],
]
const floor_min = 25

test('the documents hold what numbers and maps in memory would lose', () => {
  for (const texts of [values, objects]) {
    expect(texts.length).toBeGreaterThanOrEqual(documents_min)
    expect(new Set(texts).size).toBeGreaterThan(documents_min / 2)
    for (const [what, shows] of floors) {
      const found = texts.filter(shows).length
      expect([what, found >= floor_min, found]).toEqual([what, true, found])
    }
  }
  // They are JSON, and most of them would not survive being parsed and written again.
  const changed = [...values, ...objects].filter((text) => JSON.stringify(JSON.parse(text)) !== text)
  expect(changed.length).toBeGreaterThan(documents_min)
})

forEachService('raw JSON', (service) => {
  service.over_http = true
  let key: string
  beforeAll(async () => {
    key = (await newKeyring(service)).keys.agent
  })

  test(
    'a KV value comes back as the text that was put, whatever stood around it',
    async () => {
      const wrong = await eachOf(values, async (text, i) => {
        const path = `/v1/kv/raw/k${i}`
        const around = i % 3 === 0 ? ['\n\t ', ' \r\n'] : ['', '']
        const body = `{"value":${around.join(text)},"ttl_seconds":null}`
        const put = await served(() => service.ask('PUT', path, { key, body }))
        const got = await served(() => service.ask('GET', path, { key }))
        const shown = `{"namespace":"raw","key":"k${i}","value":${text},"version":1,"expires_at":null,"updated_at":"2026-`
        const is_same = put.status === 200 && got.status === 200 && got.text.startsWith(shown)
        return is_same ? null : [put.status, got.status]
      })
      expect(wrong).toEqual([])
    },
    patience_ms,
  )

  test(
    'the metadata of an audit entry does so too, when appended, repeated, read and listed',
    async () => {
      // One log is written one entry after the other: several of them let the requests run side by side.
      const logs = await Promise.all(
        Array.from({ length: logs_count }, async () => {
          return { key: (await newKeyring(service)).keys.agent, shown: new Map<number, string>() }
        }),
      )
      const wrong = await eachOf(objects, async (text, i) => {
        const { key, shown } = logs[i % logs_count]!
        const body = `{"action":"a${i}","metadata":${text}}`
        const sent = { key, body, headers: { 'idempotency-key': `raw-${i}` } }
        const append = () => served(() => service.ask('POST', '/v1/audit', sent), { repeatable: true })
        const appended = await append()
        const answers = [appended]
        if (i % 10 === 0) answers.push(await append())
        answers.push(await served(() => service.ask('GET', `/v1/audit/${appended.body.id}`, { key })))
        shown.set(appended.body.seq, appended.text)
        const is_same = answers.every((answer) => answer.status < 300 && metadataOf(answer) === text)
        return is_same ? null : answers.map(({ status }) => status)
      })
      expect(wrong).toEqual([])

      for (const { key, shown } of logs) {
        const listed: string[] = []
        for (let cursor: string | null = ''; cursor !== null; ) {
          const page = await service.ask('GET', `/v1/audit?limit=200${cursor && `&cursor=${cursor}`}`, {
            key,
          })
          cursor = page.body.next_cursor as string | null
          listed.push(page.text.slice('{"items":['.length, page.text.lastIndexOf('],"next_cursor":')))
        }
        const newest_first = [...shown].toSorted(([one], [two]) => two - one).map(([, text]) => text)
        expect(listed.join(',') === newest_first.join(',')).toBe(true)
        expect(newest_first.length).toBe(objects.length / logs_count)
      }
    },
    patience_ms,
  )

  test.each([
    ['arrays', false],
    ['objects', true],
  ])('a value of 63 levels of %s, 64 with the body, is taken, one more is refused', async (_, in_objects) => {
    for (const [levels, status] of [
      [levels_max - 1, 200],
      [levels_max, 400],
      [5_000, 400],
    ] as const) {
      const text = nested(levels, in_objects, '1e400')
      const put = await service.ask('PUT', `/v1/kv/deep/${levels}`, { key, body: `{"value":${text}}` })
      expect([levels, put.status]).toEqual([levels, status])
      const metadata = in_objects ? text : `{"a":${nested(levels - 1, false, '1e400')}}`
      const appended = await service.ask('POST', '/v1/audit', {
        key,
        body: `{"action":"deep","metadata":${metadata}}`,
      })
      expect([levels, appended.status]).toEqual([levels, status === 200 ? 201 : 400])
      const got = await service.ask('GET', `/v1/kv/deep/${levels}`, { key })
      expect(got.text.includes(`"value":${text},`)).toBe(status === 200)
    }
  })
})

function nested(levels: number, in_objects: boolean, core: string): string {
  const [open, close] = in_objects ? ['{"a":', '}'] : ['[', ']']
  return open.repeat(levels) + core + close.repeat(levels)
}

/** The text between the fields that stand around it in every entry. */
function metadataOf({ text }: Answer): string {
  return text.slice(text.indexOf('"metadata":') + '"metadata":'.length, text.lastIndexOf(',"agent_id":'))
}

/** Runs the check over all, some at a time; answers the documents that did not pass, and with which statuses. */
async function eachOf(
  texts: string[],
  check: (text: string, i: number) => Promise<number[] | null>,
): Promise<[statuses: number[], text: string][]> {
  const wrong: [statuses: number[], text: string][] = []
  let next = 0
  const lane = async () => {
    for (let i = next++; i < texts.length; i = next++) {
      const statuses = await check(texts[i]!, i)
      if (statuses) wrong.push([statuses, texts[i]!.slice(0, shown_characters_max)])
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return wrong
}
