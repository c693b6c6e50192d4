// Commands for a terminal. Stored text may hold anything: every word of it is quoted.

import { base } from '../api/address.ts'
import { plainJson } from './words.ts'

/** One word for any shell, with nothing in it that the shell would interpret. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

interface Sent {
  headers?: string[]
  /** JSON text. */
  json?: string | undefined
}

/** A call that only agents may make. The key of the agent comes from the environment of the shell. */
export function agentCurl(method: string, path: string, sent: Sent = {}): string {
  return curlWith('AGENT_KEY', method, path, sent)
}

/** A call with the key in this variable of the shell. */
export function curlWith(
  key: 'AGENT_KEY' | 'ADMIN_KEY',
  method: string,
  path: string,
  { headers = [], json }: Sent = {},
): string {
  return command(method, `${location.origin}${base}${path}`, [
    `-H "authorization: Bearer $${key}"`,
    ...(json === undefined ? headers : [...headers, 'content-type: application/json']).map(
      (header) => `-H ${quoted(header)}`,
    ),
    ...(json === undefined ? [] : [`--data-raw ${quoted(plainJson(json))}`]),
  ])
}

/** `method` and `options` are shell words already. */
export function command(method: string, url: string, options: string[]): string {
  return [`curl -g -X ${method} ${quoted(url)}`, ...options].join(' \\\n  ')
}
