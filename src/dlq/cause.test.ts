import { describe, expect, test } from 'bun:test'
import { limits } from '../base/limit.ts'
import { causeOf } from './cause.ts'

const line_characters_max = limits.get('dlq.cause_line')!.value
const characters_max = limits.get('dlq.cause')!.value

describe('the cause of an error', () => {
  test.each([
    ['no customer cus_8003', 'no customer cus_…'],
    ['no customer cus_8007', 'no customer cus_…'],
    [
      'the callback of schedule sch_01m7yjrz37hxnv52px0106nehd failed: timeout',
      'the callback of schedule sch_… failed: timeout',
    ],
    ['user 550e8400-e29b-41d4-a716-446655440000 is gone', 'user … is gone'],
    ['row 8f14e45fceea167a5a36dedd4bea2543 is missing', 'row … is missing'],
    ['timeout after 1523ms', 'timeout after …ms'],
    ['order 66 is 1,523.50 over', 'order … is … over'],
    ['connect ECONNREFUSED 10.0.0.7:5432', 'connect ECONNREFUSED …'],
    ['2026-01-31T12:00:00.123Z: boom', '…: boom'],
    ['550 5.1.1 <ada@example.com> unknown', '550 5.1.1 <…> unknown'],
    ['550 5.1.1 <b.7+x@mail.example.org> unknown', '550 5.1.1 <…> unknown'],
    ['no mailbox for ada@example.com', 'no mailbox for …'],
    ['421 4.7.0 550@example.com: status 503', '421 4.7.0 … status 503'],
    ['status 503 for 10.0.0.7@7', 'status 503 for …'],
  ])('of %p masks what differs: %p', (error, cause) => {
    expect(causeOf(error)).toBe(cause)
  })

  test.each([
    'status 503',
    'the callback failed: status 404',
    'HTTP/1.1 502 Bad Gateway',
    '503 Service Unavailable',
    'Request failed with status code 429',
    '421 4.7.0 try again later',
    '550-5.1.1 user unknown',
    'rejected with 5.7.1 by the receiver',
    '550 mailbox unavailable',
    'exit code 137',
    'duplicate key (SQLSTATE 23505)',
    'E11000 duplicate key',
    'http2 stream closed',
  ])('keeps the codes of %p', (error) => {
    expect(causeOf(error)).toBe(error)
  })

  test('differs by status code, and by enhanced mail code', () => {
    expect(causeOf('status 503')).not.toBe(causeOf('status 404'))
    expect(causeOf('421 4.7.0 later')).not.toBe(causeOf('421 4.7.1 later'))
  })

  test.each([
    ['', '(no text)'],
    [' \n\t\n', '(no text)'],
    ['\n\n  first  \nsecond', 'first'],
  ])('of %p is its first line with text: %p', (error, cause) => {
    expect(causeOf(error)).toBe(cause)
  })

  test(`has ${characters_max} characters at most, and no half of a character`, () => {
    expect(causeOf('x'.repeat(characters_max))).toBe('x'.repeat(characters_max))
    expect(causeOf('x'.repeat(characters_max + 1))).toBe('x'.repeat(characters_max))
    expect(causeOf(`${'x'.repeat(characters_max - 1)}\u{1f600}`)).toBe('x'.repeat(characters_max - 1))
    expect(causeOf('\u{1f600}'.repeat(characters_max)).isWellFormed()).toBe(true)
  })

  test(`is made of the first ${line_characters_max} characters of the line`, () => {
    const id = `row_${'7'.repeat(line_characters_max - 6)}`
    expect(causeOf(`${id} a`)).toBe('row_… a')
    expect(causeOf(`${id}7 a`)).toBe('row_…')
  })

  test('is its own cause', () => {
    for (const error of ['no customer cus_8003', 'status 503', '421 4.7.0 later', 'order 7 of 9'])
      expect(causeOf(causeOf(error))).toBe(causeOf(error))
  })
})
