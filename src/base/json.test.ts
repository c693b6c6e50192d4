import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { decodeUtf8, levels_max, type Members, quoted, scanObject } from './json.ts'

describe('a document', () => {
  test('is accepted and refused exactly as JSON.parse does, for generated documents', () => {
    fc.assert(fc.property(document, agreesWithParse), { numRuns: 2_000 })
  })

  test('is accepted and refused exactly as JSON.parse does, after one to three random edits', () => {
    const edits = fc.array(edit, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(document, edits, (text, list) => agreesWithParse(list.reduce(applyEdit, text))),
      { numRuns: 6_000 },
    )
  })

  test('is accepted and refused exactly as JSON.parse does, wherever it is cut', () => {
    fc.assert(
      fc.property(document, (text) => {
        for (let end = 0; end < Math.min(text.length, 60); end++) agreesWithParse(text.slice(0, end))
      }),
      { numRuns: 300 },
    )
  })

  test('is accepted and refused exactly as JSON.parse does, for every short value', () => {
    const wrong = words('01-+.eE', 5)
      .concat(words('{}[],:"\\ 1nu', 4))
      .filter((word) => {
        return disagrees(word) || disagrees(`{"a":${word}}`)
      })
    expect(wrong).toEqual([])
  })

  test('is accepted and refused exactly as JSON.parse does, for every code unit in every place', () => {
    const wrong: string[] = []
    for (let code = 0; code <= 0xffff; code++) {
      const c = String.fromCharCode(code)
      const text = [`{"a":"${c}"}`, `{"a":"\\${c}"}`, `{"a":"\\u00${c}0"}`, `{"a":${c}1}`].find(disagrees)
      if (text !== undefined) wrong.push(text)
    }
    expect(wrong).toEqual([])
  })

  test.each([
    ['empty', ''],
    ['white space alone', ' \n'],
    ['leading zero', '{"a":01}'],
    ['leading zero after minus', '{"a":-01}'],
    ['plus sign', '{"a":+1}'],
    ['no digit before the point', '{"a":.5}'],
    ['no digit between minus and point', '{"a":-.5}'],
    ['no digit after the point', '{"a":1.}'],
    ['no digit between point and exponent', '{"a":1.e3}'],
    ['no digit in the exponent', '{"a":1e}'],
    ['no digit after the sign of the exponent', '{"a":1e+}'],
    ['fraction in the exponent', '{"a":1e1.5}'],
    ['minus alone', '{"a":-}'],
    ['two minuses', '{"a":--1}'],
    ['two points', '{"a":1.2.3}'],
    ['hexadecimal', '{"a":0x1f}'],
    ['separator in a number', '{"a":1_000}'],
    ['BigInt', '{"a":1n}'],
    ['digits beyond ASCII', '{"a":\u0661}'],
    ['NaN', '{"a":NaN}'],
    ['Infinity', '{"a":Infinity}'],
    ['minus Infinity', '{"a":-Infinity}'],
    ['undefined', '{"a":undefined}'],
    ['capital literal', '{"a":True}'],
    ['literal cut short', '{"a":tru}'],
    ['literal too long', '{"a":nulll}'],
    ['trailing comma in an object', '{"a":1,}'],
    ['trailing comma in an array', '{"a":[1,]}'],
    ['leading comma in an object', '{,"a":1}'],
    ['leading comma in an array', '{"a":[,1]}'],
    ['comma alone in an array', '{"a":[,]}'],
    ['two commas', '{"a":1,,"b":2}'],
    ['missing comma in an object', '{"a":1 "b":2}'],
    ['missing comma in an array', '{"a":[1 2]}'],
    ['missing colon', '{"a" 1}'],
    ['two colons', '{"a"::1}'],
    ['colon in an array', '{"a":["b":1]}'],
    ['missing value', '{"a":}'],
    ['name alone', '{"a"}'],
    ['bare name', '{a:1}'],
    ['number as a name', '{1:1}'],
    ['array as a name', '{["a"]:1}'],
    ['single quotes', "{'a':1}"],
    ['single quotes around a value', '{"a":\'b\'}'],
    ['line comment', '{"a":1} // b'],
    ['block comment', '{"a":/* b */1}'],
    ['hash comment', '{"a":1} # b'],
    ['unterminated string', '{"a":"b'],
    ['unterminated string before the end', '{"a":"b}'],
    ['string that ends in a backslash', '{"a":"b\\'],
    ['escaped closing quote', '{"a":"b\\"}'],
    ['unterminated object', '{"a":1'],
    ['unterminated array', '{"a":[1}'],
    ['closer of the other kind', '{"a":{"b":1]}'],
    ['closer alone', '}'],
    ['closer too many', '{"a":1}}'],
    ['raw NUL in a string', '{"a":"\0"}'],
    ['raw tab in a string', '{"a":"\t"}'],
    ['raw line feed in a string', '{"a":"\n"}'],
    ['raw carriage return in a string', '{"a":"\r"}'],
    ['raw U+001F in a string', '{"a":"\x1f"}'],
    ['raw control character in a name', '{"a\n":1}'],
    ['escape that is none', '{"a":"\\x41"}'],
    ['escaped single quote', '{"a":"\\\'"}'],
    ['escape in capitals', '{"a":"\\N"}'],
    ['escaped line feed', '{"a":"\\\n"}'],
    ['\\u with three digits', '{"a":"\\u123"}'],
    ['\\u with a letter past f, first', '{"a":"\\ug234"}'],
    ['\\u with a letter past f, last', '{"a":"\\u123g"}'],
    ['\\U', '{"a":"\\U0041"}'],
    ['\\u with braces', '{"a":"\\u{41}"}'],
    ['bad escape in a name', '{"\\q":1}'],
    ['byte order mark', '\ufeff{"a":1}'],
    ['byte order mark at the end', '{"a":1}\ufeff'],
    ['trailing garbage', '{"a":1}x'],
    ['second document', '{"a":1}{"a":1}'],
    ['second document on its own line', '{"a":1}\n{"a":1}'],
    ['trailing NUL', '{"a":1}\0'],
    ['no-break space', '{"a":\u00a01}'],
    ['form feed', '{"a":\f1}'],
    ['vertical tab', '{"a":\v1}'],
    ['line separator', '{"a":\u20281}'],
    ['next line', '{"a":1}\u0085'],
    ['no-break space in front', '\u00a0{"a":1}'],
    ['form feed at the end', '{"a":1}\f'],
    ['word', 'hello'],
  ])('is not JSON: %s', (_, text) => {
    expect(isJson(text)).toBe(false)
    expect(scanObject(text)).toEqual({ ok: false, why: 'syntax' })
  })

  test.each(['[]', '[{"a":1}]', '"a"', '0', '-1.5e3', 'true', 'false', 'null', ' \r\n\t[1] '])(
    'is JSON but no object: %j',
    (text) => {
      expect(scanObject(text)).toEqual({ ok: false, why: 'not_an_object' })
    },
  )

  test('may stand in spaces, tabs, line feeds and carriage returns', () => {
    expect(membersOf('\r\n\t { "a"\t:\n1\r, "b" : [ ] \n} \t\r\n')).toEqual(
      new Map([
        ['a', '1'],
        ['b', '[ ]'],
      ]),
    )
  })

  test('may be the empty object', () => {
    expect(membersOf('{}')).toEqual(new Map())
    expect(membersOf(' { } ')).toEqual(new Map())
  })
})

describe('a member', () => {
  test('has a text that is part of the document and parses to what JSON.parse finds in the document', () => {
    fc.assert(
      fc.property(objectText, (text) => {
        const members = membersOf(text)
        const parsed: object = JSON.parse(text)
        expect([...members.keys()].sort()).toEqual(Object.getOwnPropertyNames(parsed).sort())
        for (const [name, raw] of members) {
          expect(text.includes(raw)).toBe(true)
          expect(isSame(JSON.parse(raw), own(parsed, name))).toBe(true)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('has the text that came in, byte for byte, whatever the white space around it', () => {
    const parts = fc.array(fc.tuple(stringText, valueText, space, space, space, space), { maxLength: 6 })
    fc.assert(
      fc.property(parts, (list) => {
        const text = `{${list.map(([name, raw, a, b, c, d]) => `${a}${name}${b}:${c}${raw}${d}`).join(',')}}`
        const decoded = decodeUtf8(Buffer.from(text))
        const expected = new Map(list.map(([name, raw]) => [JSON.parse(name) as string, raw]))
        expect(decoded).toBe(text)
        expect(membersOf(text)).toEqual(expected)
        for (const [name, raw] of membersOf(decoded ?? '')) {
          expect(Buffer.from(raw).equals(Buffer.from(expected.get(name) ?? ''))).toBe(true)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    '123456789012345678901234567890',
    '-123456789012345678901234567890.000',
    '0.1000000000000000055511151231257827021181583404541015625',
    '1e400',
    '-1E-400',
    '1e+00400',
    '-0',
    '-0.0',
    '0e0',
    '60.0',
    'null',
    'true',
    'false',
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\uD83D\\uDE00"',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9"',
    '"\x7f\u0080\u2028\u2029\ufeff"',
    '"é€😀"',
    '{}',
    '[]',
    '{ "b" : 1 , "b" : 2 , "a" : [ 1 , 2 ] }',
    '[\t1,\r\n[ ] ]',
    '{"__proto__":{"__proto__":null}}',
    '"}"',
    '["]","[","{",","]',
  ])('keeps its value as it was written: %j', (raw) => {
    expect(membersOf(`{"value":${raw}}`).get('value')).toBe(raw)
    expect(membersOf(`{ "a":0, "value" : ${raw}\n, "z":0 }`).get('value')).toBe(raw)
  })

  test('may be a number or a string of any length', () => {
    const digits = `-${'9'.repeat(300_000)}.${'0'.repeat(300_000)}e-${'9'.repeat(300_000)}`
    const string = `"${'é\\n€ '.repeat(200_000)}"`
    expect(membersOf(`{"a":${digits},"b":${string}}`)).toEqual(
      new Map([
        ['a', digits],
        ['b', string],
      ]),
    )
  })

  test('that is repeated counts as its last value', () => {
    expect(membersOf('{"a":1,"b":2,"a":{"c":3},"a": 4 }')).toEqual(
      new Map([
        ['a', '4'],
        ['b', '2'],
      ]),
    )
  })

  test('of a nested object is not a member of the document', () => {
    expect(membersOf('{"a":{"b":1},"c":[{"a":2}]}')).toEqual(
      new Map([
        ['a', '{"b":1}'],
        ['c', '[{"a":2}]'],
      ]),
    )
  })

  test('may be called __proto__, constructor or nothing at all', () => {
    const members = membersOf('{"__proto__":{"x":1},"constructor":2,"":3}')
    expect(members).toEqual(
      new Map([
        ['__proto__', '{"x":1}'],
        ['constructor', '2'],
        ['', '3'],
      ]),
    )
    expect(membersOf('{}').get('__proto__')).toBeUndefined()
  })

  test('has the same name with and without escapes', () => {
    expect(membersOf('{"value":1,"\\u0076alue":2}')).toEqual(new Map([['value', '2']]))
    expect(membersOf('{"\\u005f\\u005fproto\\u005f\\u005f":1}')).toEqual(new Map([['__proto__', '1']]))
    expect(membersOf('{"a\\/b\\n\\"":1}')).toEqual(new Map([['a/b\n"', '1']]))
    expect(membersOf('{"\\ud83d\\ude00":1,"😀":2}')).toEqual(new Map([['😀', '2']]))
  })

  test('may have an escaped NUL or a lone surrogate in its name', () => {
    expect(membersOf('{"a\\u0000":1,"\\ud800":2}')).toEqual(
      new Map([
        ['a\0', '1'],
        ['\ud800', '2'],
      ]),
    )
  })
})

describe('the level limit', () => {
  test('is 64', () => {
    expect(levels_max).toBe(64)
  })

  test.each([
    ['arrays', nestArrays],
    ['objects', nestObjects],
    ['arrays and objects in turn', nestBoth],
  ])('allows 64 levels, the body among them, and refuses 65, of %s', (_, nest) => {
    for (const inner of ['', '{}', '[]']) {
      const added = inner === '' ? 1 : 2
      expect(membersOf(`{"a":${nest(64 - added, inner)}}`).get('a')).toBe(nest(64 - added, inner))
      expect(scanObject(`{"a":${nest(65 - added, inner)}}`)).toEqual({ ok: false, why: 'depth' })
      expect(scanObject(`{"a":${nest(65 - added, inner)},"b":[]}`)).toEqual({ ok: false, why: 'depth' })
    }
  })

  test('counts levels, not containers', () => {
    expect(membersOf(`{"a":[${'[[]],'.repeat(100)}{}],"b":{}}`).size).toBe(2)
  })

  test('comes after syntax, however deep the document', () => {
    for (const nest of [nestArrays, nestObjects, nestBoth]) {
      expect(scanObject(`{"a":${nest(100, '')}`)).toEqual({ ok: false, why: 'syntax' })
      expect(scanObject(`{"a":${nest(100, '1,')}}`)).toEqual({ ok: false, why: 'syntax' })
      expect(scanObject(`{"a":${nest(100, '')},}`)).toEqual({ ok: false, why: 'syntax' })
    }
  })

  test('comes after the rule that a body is an object', () => {
    expect(scanObject(nestArrays(100, ''))).toEqual({ ok: false, why: 'not_an_object' })
  })

  test('holds for a million levels', () => {
    const million = 1_000_000
    expect(scanObject('['.repeat(million))).toEqual({ ok: false, why: 'syntax' })
    expect(scanObject('{"a":'.repeat(million))).toEqual({ ok: false, why: 'syntax' })
    expect(scanObject(nestArrays(million, ''))).toEqual({ ok: false, why: 'not_an_object' })
    for (const nest of [nestArrays, nestObjects, nestBoth]) {
      const deep = nest(million, '')
      expect(scanObject(`{"a":${deep}}`)).toEqual({ ok: false, why: 'depth' })
      expect(scanObject(`{"a":${deep}`)).toEqual({ ok: false, why: 'syntax' })
    }
  })
})

describe('decodeUtf8', () => {
  test.each([
    ['nothing', '', ''],
    ['ASCII', '7b7d', '{}'],
    ['NUL', '00', '\0'],
    ['the first and last of two bytes', 'c280dfbf', '\u0080\u07ff'],
    ['the first and last of three bytes', 'e0a080efbfbf', '\u0800\uffff'],
    ['both neighbours of the surrogates', 'ed9fbfee8080', '\ud7ff\ue000'],
    ['the first and last of four bytes', 'f0908080f48fbfbf', '\u{10000}\u{10ffff}'],
    ['a byte order mark, which it keeps', 'efbbbf7b7d', '\ufeff{}'],
    ['two byte order marks', 'efbbbfefbbbf', '\ufeff\ufeff'],
  ])('gives the text of %s', (_, hex, text) => {
    expect(decodeUtf8(Buffer.from(hex, 'hex'))).toBe(text)
  })

  test.each([
    ['two bytes, overlong', 'c080'],
    ['two bytes, overlong, last', 'c1bf'],
    ['three bytes, overlong', 'e08080'],
    ['three bytes, overlong, last', 'e09fbf'],
    ['four bytes, overlong', 'f0808080'],
    ['four bytes, overlong, last', 'f08fbfbf'],
    ['first surrogate', 'eda080'],
    ['last surrogate', 'edbfbf'],
    ['surrogate pair (CESU-8)', 'eda0bdedb880'],
    ['past U+10FFFF', 'f4908080'],
    ['lead byte F5', 'f5808080'],
    ['five bytes', 'f888808080'],
    ['six bytes', 'fc8480808080'],
    ['byte FE', 'fe'],
    ['byte FF', 'ff'],
    ['continuation alone', '80'],
    ['last continuation alone', 'bf'],
    ['continuation too many', 'c3a980'],
    ['two bytes, cut', 'c3'],
    ['three bytes, cut', 'e282'],
    ['four bytes, cut', 'f09f98'],
    ['two bytes, cut by ASCII', 'c328'],
    ['three bytes, cut by ASCII', 'e28228'],
    ['four bytes, cut by ASCII', 'f09f9828'],
    ['Latin-1', 'e9'],
    ['UTF-16, big endian', 'feff007b'],
    ['UTF-16, little endian', 'fffe7b00'],
  ])('gives null for %s, in front, between and behind', (_, hex) => {
    for (const [before, after] of [
      ['', ''],
      ['{"a":"', ''],
      ['', '"}'],
      ['{"a":"', '"}'],
      ['€', 'é'],
    ]) {
      const bytes = Buffer.concat([
        Buffer.from(before ?? ''),
        Buffer.from(hex, 'hex'),
        Buffer.from(after ?? ''),
      ])
      expect(decodeUtf8(bytes)).toBeNull()
      // One decoder serves every call: what it refused must leave nothing behind.
      expect(decodeUtf8(Buffer.from('{"a":"é"}'))).toBe('{"a":"é"}')
    }
  })

  test('reads only the bytes of its view', () => {
    expect(decodeUtf8(Buffer.from('ff7b7dff', 'hex').subarray(1, 3))).toBe('{}')
  })

  test('is the inverse of encoding, for any text without lone surrogates', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => decodeUtf8(Buffer.from(text)) === text),
      { numRuns: 1_000 },
    )
  })

  test('gives null or the inverse of encoding, for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 8 }), (bytes) => {
        const text = decodeUtf8(bytes)
        return text === null
          ? !Buffer.from(Buffer.from(bytes).toString()).equals(bytes)
          : Buffer.from(text).equals(bytes)
      }),
      { numRuns: 5_000 },
    )
  })
})

// Documents are generated as text, not as values, so that they hold what JSON.stringify never writes.

const space = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 }) },
)

const numberText = fc.oneof(
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$/),
  fc.integer().map(String),
)

const hexUnit = fc.integer({ min: 0, max: 0xffff }).map((code) => `\\u${code.toString(16).padStart(4, '0')}`)

const stringUnit = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).map((c) => JSON.stringify(c).slice(1, -1)),
  fc.constantFrom('a', 'b', 'z', ' ', '{', '}', '[', ']', ',', ':', '/', '\x7f', '\u2028', '\ufeff'),
  fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0000', '\\ud800', '\\uDFFF'),
  hexUnit,
)

// Few names, so that many repeat.
const nameText = fc.oneof(
  fc.constantFrom('"a"', '"\\u0061"', '"b"', '""', '"__proto__"', '"\\u005f_proto__"', '"toString"', '"0"'),
  fc.array(stringUnit, { maxLength: 3 }).map((units) => `"${units.join('')}"`),
)

const stringText = fc.oneof(
  nameText,
  fc.array(stringUnit, { maxLength: 12 }).map((units) => `"${units.join('')}"`),
)

const { valueText, objectText } = fc.letrec<{ valueText: string; arrayText: string; objectText: string }>(
  (tie) => ({
    valueText: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom('null', 'true', 'false'),
      numberText,
      stringText,
      tie('arrayText'),
      tie('objectText'),
    ),
    arrayText: fc
      .tuple(space, fc.array(fc.tuple(space, tie('valueText'), space), { maxLength: 4 }))
      .map(([empty, items]) => `[${items.length ? items.map((item) => item.join('')).join(',') : empty}]`),
    objectText: fc
      .tuple(
        space,
        fc.array(fc.tuple(space, nameText, space, space, tie('valueText'), space), { maxLength: 5 }),
      )
      .map(([empty, items]) => {
        const members = items.map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`)
        return `{${members.length ? members.join(',') : empty}}`
      }),
  }),
)

const document = fc
  .tuple(space, fc.oneof({ weight: 4, arbitrary: objectText }, { weight: 1, arbitrary: valueText }), space)
  .map((parts) => parts.join(''))

type Edit = { kind: 'insert' | 'delete' | 'replace' | 'cut'; place: number; with: string }

const edit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom('insert', 'delete', 'replace', 'cut'),
  place: fc.double({ min: 0, max: 1, noNaN: true }),
  with: fc.oneof(
    fc.constantFrom(...'{}[],:"\\/01-+.eEtrufalsn \t\n\r\f\v\0\x1f\'\u00a0\ufeff'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
})

function applyEdit(text: string, { kind, place, with: c }: Edit): string {
  const at = Math.floor(place * text.length)
  if (kind === 'cut') return text.slice(0, at)
  return text.slice(0, at) + (kind === 'delete' ? '' : c) + text.slice(kind === 'insert' ? at : at + 1)
}

function agreesWithParse(text: string): void {
  expect(outcome(text)).toBe(expectedOutcome(text))
}

function disagrees(text: string): boolean {
  return outcome(text) !== expectedOutcome(text)
}

function outcome(text: string): string {
  const scan = scanObject(text)
  return scan.ok ? 'ok' : scan.why
}

/** For documents of at most 64 levels. */
function expectedOutcome(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? 'ok' : 'not_an_object'
  } catch {
    return 'syntax'
  }
}

function isJson(text: string): boolean {
  return expectedOutcome(text) !== 'syntax'
}

function membersOf(text: string): Members {
  const scan = scanObject(text)
  if (!scan.ok) throw new Error(`${scan.why}: ${text.slice(0, 200)}`)
  return scan.members
}

/** Deep equality that tells -0 from 0 and takes `__proto__` for a name like any other. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b)
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const names = Object.getOwnPropertyNames(a)
  if (names.length !== Object.getOwnPropertyNames(b).length) return false
  return names.every((name) => Object.hasOwn(b, name) && isSame(own(a, name), own(b, name)))
}

function own(object: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(object, name)?.value
}

/** Every word of at most `length` letters. */
function words(letters: string, length: number): string[] {
  if (length === 0) return ['']
  const shorter = words(letters, length - 1)
  const longest = shorter.filter((word) => word.length === length - 1)
  return shorter.concat(longest.flatMap((word) => [...letters].map((letter) => word + letter)))
}

function nestArrays(levels: number, inner: string): string {
  return '['.repeat(levels) + inner + ']'.repeat(levels)
}

function nestObjects(levels: number, inner: string): string {
  return '{"a":'.repeat(levels - 1) + (inner === '' ? '{}' : `{"a":${inner}}`) + '}'.repeat(levels - 1)
}

function nestBoth(levels: number, inner: string): string {
  const pairs = Math.floor(levels / 2)
  const core = levels % 2 ? `[${inner}]` : inner || '0'
  return '[{"a":'.repeat(pairs) + core + '}]'.repeat(pairs)
}

describe('a string', () => {
  test.each([
    '',
    'plain',
    'a"b',
    'a\\b',
    'tab\t',
    'nul\0',
    'é',
    '€',
    '\u2028',
    '\ud800',
    '\u007f',
    'x'.repeat(200),
  ])('%j is written as JSON.stringify writes it', (text) => expect(quoted(text)).toBe(JSON.stringify(text)))

  test('of any characters is written as JSON.stringify writes it', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => quoted(text) === JSON.stringify(text)))
  })
})
