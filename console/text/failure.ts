// Failures in words: the cause, and what it happened to.

import { urlOf } from './links.ts'
import { reasonOf } from './reason.ts'
import { firstLine } from './words.ts'

/** The service writes this before the reason for which it gave up. */
const given_up = /^the callback of (?:schedule|checkpoint) \S+ failed: /

/** An approval that nobody decided, or that was refused. */
const ended = /^checkpoint \S+ was (expired|rejected)$/
const endings: Record<string, string> = {
  expired: 'Nobody decided in time',
  rejected: 'The request was rejected',
}

/** The cause of a failure of the service in words, of one of an agent in its own. Both may hold what the service masked. */
export function causeInWords(cause: string): string {
  const line = firstLine(cause)
  const [, ending] = ended.exec(line) ?? []
  if (ending !== undefined) return endings[ending]!
  return given_up.test(line) ? callFailure(line.replace(given_up, ''), null) : line
}

/** Without the full stop: it is a title. */
export function callFailure(error: string, status_code: number | null): string {
  return reasonOf(error, status_code).what.replace(/\.$/, '')
}

/** `api.example.com/v1/charges`: the host and the path of a URL; text that is not a URL stays as it is. */
export function placeOf(url: string): string {
  const read = urlOf(url)
  if (read === null) return url
  const { host, pathname } = read
  return `${host}${pathname === '/' ? '' : pathname}`
}

/** `nightly report · api.example.com/report`: what a schedule calls, by its name when it has one. */
export function callText({ name, callback_url }: { name: string | null; callback_url: string }): string {
  return name === null ? placeOf(callback_url) : `${name} · ${placeOf(callback_url)}`
}
