// client.kv

import { hasCode } from './errors.ts'
import { memberText } from './json.ts'
import { listOf, split } from './options.ts'
import type { Pages } from './pages.ts'
import { type CallOptions, limited, type Transport } from './transport.ts'
import type { Entry as AnyEntry, ListedKey, Operations, PutResult } from './types.ts'

export interface Entry<T = unknown> extends AnyEntry {
  value: T
}

export interface PutOptions extends CallOptions {
  /** At least 1. Without it the key does not expire, also when it did before. */
  ttl_seconds?: number | undefined
  /** The version that must be stored; 0: only if absent. Otherwise VERSION_MISMATCH. */
  cas_version?: number | undefined
}

export interface UpdateOptions extends CallOptions {
  ttl_seconds?: number | undefined
  /** How often it begins anew because somebody else was faster; default 10. */
  tries?: number | undefined
}

/** The wait after a try of an update that came too late is at most this, after each further one twice as much. */
const contention_ms_first = 100
const contention_ms_max = 3_000

export class Kv {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Throws KEY_NOT_FOUND; with `if_version`, VERSION_MISMATCH when the stored version is another one. */
  async get<T = unknown>(
    namespace: string,
    key: string,
    { if_version, ...options }: CallOptions & { if_version?: number | undefined } = {},
  ): Promise<Entry<T>> {
    const input = { params: { namespace, key }, headers: ifMatch(if_version) }
    return (await this.#transport.call('getValue', input, options)) as Entry<T>
  }

  /** Null when there is no such key. */
  async find<T = unknown>(
    namespace: string,
    key: string,
    options: CallOptions = {},
  ): Promise<Entry<T> | null> {
    try {
      return await this.get<T>(namespace, key, options)
    } catch (error) {
      if (hasCode(error, 'KEY_NOT_FOUND')) return null
      throw error
    }
  }

  /** Null as long as `version` is still the stored one; nothing is transferred then. */
  async getIfChanged<T = unknown>(
    namespace: string,
    key: string,
    version: number,
    options: CallOptions = {},
  ): Promise<Entry<T> | null> {
    const input = { params: { namespace, key }, headers: { 'if-none-match': `"${version}"` } }
    const answer = await this.#transport.send('getValue', input, options)
    return answer.status === 304 ? null : (this.#transport.parse('getValue', answer) as Entry<T>)
  }

  /** As `get`, with the value as the exact JSON text that was put: no digit of a long number is lost. */
  async getText(
    namespace: string,
    key: string,
    { if_version, ...options }: CallOptions & { if_version?: number | undefined } = {},
  ): Promise<Entry<string>> {
    const input = { params: { namespace, key }, headers: ifMatch(if_version) }
    const { text } = await this.#transport.send('getValue', input, options)
    return { ...(JSON.parse(text) as AnyEntry), value: memberText(text, 'value')! }
  }

  /** `value` is any JSON; RawJson and bigints keep all digits. Throws VERSION_MISMATCH, NAMESPACE_FORBIDDEN. */
  async put(namespace: string, key: string, value: unknown, given: PutOptions = {}): Promise<PutResult> {
    if (value === undefined) throw new TypeError('undefined is no value; delete the key, or put null')
    const [fields, options] = split(given)
    const input = { params: { namespace, key }, body: { ...fields, value } }
    return this.#transport.call('putValue', input, options)
  }

  /** Throws KEY_NOT_FOUND; with `if_version`, VERSION_MISMATCH. */
  delete(
    namespace: string,
    key: string,
    { if_version, ...options }: CallOptions & { if_version?: number | undefined } = {},
  ): Promise<undefined> {
    const input = { params: { namespace, key }, headers: ifMatch(if_version) }
    return this.#transport.call('deleteValue', input, options)
  }

  /** Keys in the order of their bytes, without values. */
  list(namespace: string, query: Operations['listKeys']['query'] & CallOptions = {}): Pages<ListedKey> {
    return listOf(this.#transport, 'listKeys', { namespace }, query)
  }

  /**
   * Puts what `next` makes of the value, unless somebody else wrote meanwhile: then `next` is asked again with the
   * new value. It gets undefined for a key that is absent; when it answers undefined, nothing is written and the
   * entry as it was is answered, null when there is none. Throws VERSION_MISMATCH after `tries`.
   */
  async update<T = unknown>(
    namespace: string,
    key: string,
    next: (value: T | undefined, entry: Entry<T> | null) => T | undefined | Promise<T | undefined>,
    { ttl_seconds, tries = 10, ...options }: UpdateOptions = {},
  ): Promise<PutResult | Entry<T> | null> {
    const { sleep, random } = this.#transport.platform
    limited('tries', tries, 1, Number.POSITIVE_INFINITY)
    for (let tried = 1; ; tried += 1) {
      const entry = await this.find<T>(namespace, key, options)
      const value = await next(entry?.value, entry)
      if (value === undefined) return entry
      try {
        const cas_version = entry?.version ?? 0
        return await this.put(namespace, key, value, { ...options, ttl_seconds, cas_version })
      } catch (error) {
        if (!hasCode(error, 'VERSION_MISMATCH') || tried >= tries) throw error
      }
      const most_ms = Math.min(contention_ms_max, contention_ms_first * 2 ** (tried - 1))
      await sleep(Math.floor(random() * most_ms), options.signal)
    }
  }
}

function ifMatch(version: number | undefined): Record<string, string> | undefined {
  return version === undefined ? undefined : { 'if-match': `"${version}"` }
}
