// The cause of a dead letter: what failures that belong together have in common. No imports from db or http.

import { limit } from '../base/limit.ts'

const cause_characters_max = limit(
  'dlq.cause',
  160,
  'characters',
  'The cause of a dead letter, which is made from the first line of its error.',
)

const line_characters_max = limit(
  'dlq.cause_line',
  1_000,
  'characters',
  'The part of the first line of an error from which its cause is made.',
)

/** Kept as they are: HTTP statuses, reply codes and enhanced status codes of mail (RFC 3463), codes that are named so. */
const kept = [
  // status 503, HTTP/1.1 502, status code: 404, answered with 500
  /\b(?:https?(?:\/\d(?:\.\d)?)?|status(?:[ _-]?code)?|responded|answered|response|error)(?: with)?[\s:=(#"']{0,3}[1-5]\d\d\b(?![.,]\d)/,
  // got 502, returned (502): a number of something would have a word behind it
  /\b(?:got|returned) [1-5]\d\d\b(?=$|[.;)\]])|(?<=\()[1-5]\d\d(?=\))/,
  // exit code 137, errno 104, SQLSTATE 23505
  /\b(?:code|errno|sqlstate)[\s:=(#"']{0,3}\d{1,5}\b(?![.,]\d)/,
  // 503 Service Unavailable
  /\b[1-5]\d\d (?=(?:[Bb]ad|[Uu]nauth|[Pp]ayment|[Ff]orbidden|[Nn]ot|[Mm]ethod|[Rr]equest|[Cc]onflict|[Gg]one|[Pp]ayload|[Uu]nsup|[Uu]nproc|[Tt]oo [Mm]any|[Ii]nternal|[Ss]ervice|[Gg]ateway)\w*)/,
  // 421 4.7.0, 550-5.1.1, 5.7.1
  /\b(?:[245]\d\d[ -])?[245]\.\d{1,3}\.\d{1,3}\b(?!\.\d)/,
  // 550 mailbox unavailable, at the beginning
  /^[1-5]\d\d\b(?![.,:/-]?\d)/,
]

/** Masked: what differs from one failure to the next. */
const masked = [
  // someone@example.com: an address of mail
  /(?<![^\s<@])[^\s<@]+@[^\s>]+/,
  // 2026-01-31T12:00:00.000Z
  /\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?/,
  // a UUID
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/,
  // cus_8003: the part before the last _ stays
  /(?<=\b[a-z][a-z0-9]*(?:_[a-z0-9]+){0,4}_)(?=[a-z]*\d)[a-z0-9]+\b/,
  // a hash, a token
  /\b(?:0x)?(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\b(?=[a-z]*\d)[a-z0-9]{16,}\b/,
  // 7, 1,523, 10.0.0.7:5432, 12 ms as one word
  /\b\d+(?:[.,:]\d+)*(?=(?:[munµ]?s|min|m|h|d|[kmg]i?b|b|x)?\b)/,
]

const sourceOf = (patterns: RegExp[]) => patterns.map(({ source }) => source).join('|')
const parts = new RegExp(`(${sourceOf(kept)})|${sourceOf(masked)}`, 'gi')

/**
 * Failures of one cause have one text: the first line of the error, ids and numbers masked by `…`. Codes stay, so that
 * `status 503` and `status 404` are two. At most `cause_characters_max` characters, never empty.
 */
export function causeOf(error: string): string {
  const line = firstLine(error)
  const text = line.replace(parts, (_, keep: string | undefined) => keep ?? '…')
  return cut(text, cause_characters_max)
}

function firstLine(text: string): string {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from)
    const line = text.slice(from, end === -1 ? undefined : end).trim()
    if (line !== '') return cut(line, line_characters_max)
    if (end === -1) break
    from = end + 1
  }
  return '(no text)'
}

/** No pair of surrogates is cut in two. */
function cut(text: string, characters_max: number): string {
  if (text.length <= characters_max) return text
  return text
    .slice(0, characters_max)
    .replace(/[\ud800-\udbff]$/, '')
    .trimEnd()
}
