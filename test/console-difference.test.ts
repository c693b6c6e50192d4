import { describe, expect, test } from 'bun:test'
import { type DifferenceLine, difference, jsonLines, partsOf } from '../console/text/difference.ts'

describe('The difference of two JSON values', () => {
  const seen = (before: string, after: string) =>
    difference(before, after).map(
      ({ kind, text }) => `${{ same: ' ', removed: '-', added: '+' }[kind]}${text}`,
    )

  test('is by member, with what is around it', () => {
    expect(seen('{"to":"kim","amount":40,"note":"a"}', '{"to":"kim","amount":30,"note":"a"}')).toEqual([
      ...[
        ' {',
        '   "to":"kim",'.replace('":"', '": "'),
        '-  "amount": 40,',
        '+  "amount": 30,',
        '   "note": "a"',
        ' }',
      ],
    ])
  })

  test('of equal values is none, whatever their white space', () => {
    expect(difference('{"a": 1}', '{ "a":1 }').every(({ kind }) => kind === 'same')).toBe(true)
  })

  test('keeps numbers and texts as they are written', () => {
    expect(jsonLines('{"a":1e400,"b":"x, {y}: \\"z\\"","a":[1.0,2]}')).toEqual([
      ...['{', '  "a": 1e400,', '  "b": "x, {y}: \\"z\\"",', '  "a": [', '    1.0,', '    2', '  ]', '}'],
    ])
  })

  test('of lines that were added and removed apart shows each in its place', () => {
    expect(seen('[1,2,3,4]', '[2,3,5,4]')).toEqual([' [', '-  1,', '   2,', '   3,', '+  5,', '   4', ' ]'])
  })

  const textsOf = (lines: DifferenceLine[], without: DifferenceLine['kind']) =>
    lines.filter(({ kind }) => kind !== without).map(({ text }) => text)

  test('has every line of both in its order, and as few changed ones as can be', () => {
    const lists = [[]] as number[][]
    for (const list of lists) if (list.length < 4) lists.push([...list, 0], [...list, 1])
    for (const before of lists)
      for (const after of lists) {
        const [one, other] = [before, after].map((list) => JSON.stringify([...list, 2]))
        const lines = difference(one!, other!)
        expect([one, other, textsOf(lines, 'added')]).toEqual([one, other, jsonLines(one!)])
        expect([one, other, textsOf(lines, 'removed')]).toEqual([one, other, jsonLines(other!)])
        const same = lines.filter(({ kind }) => kind === 'same').length
        expect([one, other, same]).toEqual([one, other, 3 + longestCommon(before, after)])
      }
  })

  const long = (value: (i: number) => unknown) =>
    JSON.stringify(Array.from({ length: 20_000 }, (_, i) => value(i)))
  const changedIn = (before: string, after: string) =>
    difference(before, after).filter(({ kind }) => kind !== 'same')

  test('of two edits far apart in a long value is these alone', () => {
    const after = long((i) => (i === 5 || i === 19_990 ? 77 : i % 10))
    expect(
      changedIn(
        long((i) => i % 10),
        after,
      ),
    ).toEqual([
      { kind: 'removed', text: '  5,' },
      { kind: 'added', text: '  77,' },
      { kind: 'removed', text: '  0,' },
      { kind: 'added', text: '  77,' },
    ])
  })

  const paid = (changed: number) => long((id) => ({ id, paid: id > 10 && id <= 10 + changed ? 2 : 1 }))
  const kindsOf = (before: string, after: string) => difference(before, after).map(({ kind }) => kind)
  const times = <T>(count: number, part: T[]) => Array.from({ length: count }, () => part).flat()
  const record = ['same', 'same', 'same', 'same'] as const
  const around = (changed: number, lines: string[]) => [
    ...['same', ...times(11, [...record])],
    ...lines,
    ...[...times(20_000 - 11 - changed, [...record]), 'same'],
  ]

  test('of records that changed is by record, up to 500 lines', () => {
    const by_record = ['same', 'same', 'removed', 'added', 'same']
    expect(Bun.deepEquals(kindsOf(paid(0), paid(250)), around(250, times(250, by_record)))).toBe(true)
  })

  test('of more is the replacement of all from the first change to the last', () => {
    const lines = 250 * 4 + 1
    const whole = [...['same', 'same'], ...times(lines, ['removed']), ...times(lines, ['added']), 'same']
    expect(Bun.deepEquals(kindsOf(paid(0), paid(251)), around(251, whole))).toBe(true)
  })

  test('of long values that have little in common is whole, and given at once', () => {
    const pairs: [before: string, after: string][] = [
      [long((i) => i), long((i) => -i)],
      [long((i) => i), long((i) => 20_000 - i)],
      [long((i) => i % 2), long((i) => (i * i) % 3)],
    ]
    for (const [before, after] of pairs) {
      const lines = difference(before, after)
      expect(Bun.deepEquals(textsOf(lines, 'added'), jsonLines(before))).toBe(true)
      expect(Bun.deepEquals(textsOf(lines, 'removed'), jsonLines(after))).toBe(true)
    }
  })
})

describe('The parts of a difference', () => {
  const partsIn = (kinds: string) => {
    const kind = { ' ': 'same', '-': 'removed', '+': 'added' } as const
    const lines = [...kinds].map((sign) => ({ kind: kind[sign as ' '], text: '' }))
    return partsOf(lines).map(({ is_folded, lines: part }) =>
      is_folded ? `${part.length} folded` : part.length,
    )
  }

  test('fold equal lines, except three on each side of a change', () => {
    expect(partsIn(`${' '.repeat(10)}-+${' '.repeat(20)}+${' '.repeat(9)}`)).toEqual([
      ...['7 folded', 3, 2, 3, '14 folded', 3, 1, 3, '6 folded'],
    ])
  })

  test('show three equal lines or fewer that would be folded', () => {
    expect(partsIn(`${' '.repeat(6)}-${' '.repeat(9)}+${' '.repeat(6)}`)).toEqual([6, 1, 9, 1, 6])
    expect(partsIn(`${' '.repeat(7)}-${' '.repeat(10)}+${' '.repeat(7)}`)).toEqual([
      ...['4 folded', 3, 1, 3, '4 folded', 3, 1, 3, '4 folded'],
    ])
  })

  test('never fold a changed line', () => {
    expect(partsIn('-'.repeat(2_000))).toEqual([2_000])
  })
})

function longestCommon([first, ...rest]: number[], other: number[]): number {
  if (first === undefined) return 0
  const at = other.indexOf(first)
  const without = longestCommon(rest, other)
  return at === -1 ? without : Math.max(without, 1 + longestCommon(rest, other.slice(at + 1)))
}
