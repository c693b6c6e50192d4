// The command that sends a message of an inbox again.

import type { Message } from '../../sdk/src/types.ts'
import { command, quoted } from '../text/curl.ts'
import { shown } from '../text/words.ts'
import type { Body } from './body.ts'

/** Headers of one connection, and those that curl writes itself. */
const not_repeated =
  /^(host|content-length|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|proxy-.*)$/

/** Longer bodies, and those with more than plain text, come as base64: no shell and no terminal changes them. */
const literal_characters_max = 8_192

/** Sends the same bytes again, to the same inbox, in bash, zsh or ksh. */
export function messageCurl(url: string, message: Message, { bytes, text }: Body): string {
  const headers = Object.entries(message.headers as Record<string, string>).filter(
    ([name]) => !not_repeated.test(name),
  )
  const has_body = bytes.length > 0
  const named = headers.some(([name]) => name === 'content-type')
  const query = queryOf(message.query as Record<string, string | string[]>)
  const literal =
    text !== null && text.length <= literal_characters_max && !/[\t\r]/.test(text) && shown(text) === text
  const sent = command(quoted(message.method), url + message.path + query, [
    ...headers.map(([name, value]) => `-H ${headerWord(name, value)}`),
    // Without it curl would call the body a form.
    ...(has_body && !named ? ["-H 'content-type:'"] : []),
    ...(has_body ? [literal ? `--data-raw ${quoted(text)}` : '--data-binary @-'] : []),
  ])
  if (!has_body || literal) return sent
  return `base64 -d <<'END' | ${sent}\n${wrapped(message.bodyBase64)}\nEND`
}

/** An empty value ends in a semicolon: with a colon curl would leave the header out. */
function headerWord(name: string, value: string): string {
  if (value === '') return quoted(`${name};`)
  const line = `${name}: ${value}`
  // Each character of a header is one byte, and a shell would make UTF-8 of those beyond ASCII.
  if (!/[^\x20-\x7e]/.test(line)) return quoted(line)
  const bytes = line.replace(
    /[^\x20-\x7e]|['\\]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
  return `$'${bytes}'`
}

function queryOf(query: Record<string, string | string[]>): string {
  const search = new URLSearchParams()
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values].flat()) search.append(name, value)
  }
  const text = String(search)
  return text === '' ? '' : `?${text}`
}

function wrapped(base64: string): string {
  return (base64.match(/.{1,76}/g) ?? []).join('\n')
}
