import { describe, expect, test } from 'bun:test'
import { difference, jsonLines } from '../console/text/difference.ts'

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

  test('of very long values is given at once', () => {
    const long = (n: number) => JSON.stringify(Array.from({ length: 5_000 }, (_, i) => i * n))
    expect(difference(long(1), long(2)).length).toBeGreaterThan(5_000)
  })
})
