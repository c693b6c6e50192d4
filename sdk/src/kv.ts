// client.kv and client.namespaces: values with a type, exact values, and updates.

import { hasCode } from './errors.ts'
import { checkRuns } from './functions.ts'
import * as generated from './generated-resources.ts'
import { memberText } from './json.ts'
import { ifMatch } from './options.ts'
import { type CallOptions, limited } from './transport.ts'
import type { Entry as AnyEntry, PutResult } from './types.ts'

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
  /** The number of tries when other writers are faster; default 10. */
  tries?: number | undefined
}

/** Makes the next value of the one that is stored. */
type Next<T, R> = (value: T | undefined, entry: Entry<T> | null) => R | Promise<R>

/** The wait after the first conflict of an update is at most this, and at most twice as long after each further one. */
const contention_ms_first = 100
const contention_ms_max = 3_000

type IfVersion = CallOptions & { if_version?: number | undefined }

export class Kv extends generated.Kv {
  /** Throws KEY_NOT_FOUND; with `if_version`, VERSION_MISMATCH when the stored version is another one. */
  override get<T = unknown>(namespace: string, key: string, options: IfVersion = {}): Promise<Entry<T>> {
    return super.get(namespace, key, options) as Promise<Entry<T>>
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
    const answer = await this.transport.send('getValue', input, options)
    return answer.status === 304 ? null : (this.transport.parse('getValue', answer) as Entry<T>)
  }

  /** As `get`, with the value as the exact JSON text that was put: no digit of a long number is lost. */
  async getText(
    namespace: string,
    key: string,
    { if_version, ...options }: IfVersion = {},
  ): Promise<Entry<string>> {
    const input = { params: { namespace, key }, headers: ifMatch(if_version) }
    return withText(await this.transport.send('getValue', input, options))
  }

  /** `value` is any JSON; RawJson and bigints keep all digits. Throws VERSION_MISMATCH, NAMESPACE_FORBIDDEN. */
  override async put(
    namespace: string,
    key: string,
    value: unknown,
    given: PutOptions = {},
  ): Promise<PutResult> {
    if (value === undefined) throw new TypeError('undefined is not a value; delete the key, or put null')
    return super.put(namespace, key, value, given)
  }

  /**
   * Puts what `next` makes of the value, unless another writer was faster: then `next` is called again with the
   * new value. It gets undefined for a key that is absent. When it returns undefined, nothing is written, and the result
   * is the entry as it was, null when there is none. Throws VERSION_MISMATCH after `tries`.
   *
   * The type of the value follows from the default of the parameter, as in `(runs = 0) => runs + 1`, or is given, as in
   * `update<string[]>(…, (names = []) => …)`.
   */
  update<T, R extends T | undefined>(
    namespace: string,
    key: string,
    next: Next<T, R> | (() => R | Promise<R>),
    options?: UpdateOptions,
  ): Promise<PutResult | Entry<T> | null>
  update<T = unknown>(
    namespace: string,
    key: string,
    next: Next<T, T | undefined>,
    options?: UpdateOptions,
  ): Promise<PutResult | Entry<T> | null>
  async update<T>(
    namespace: string,
    key: string,
    next: Next<T, T | undefined>,
    { ttl_seconds, tries = 10, ...options }: UpdateOptions = {},
  ): Promise<PutResult | Entry<T> | null> {
    checkRuns('next', next)
    const { sleep, random } = this.transport.platform
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

/** With the admin key: every agent's keys and values, to be read. */
export class Namespaces extends generated.Namespaces {
  /** Throws KEY_NOT_FOUND. */
  override get<T = unknown>(namespace: string, key: string, options: IfVersion = {}): Promise<Entry<T>> {
    return super.get(namespace, key, options) as Promise<Entry<T>>
  }

  /** As `get`, with the value as the exact JSON text that was put. */
  async getText(namespace: string, key: string, options: CallOptions = {}): Promise<Entry<string>> {
    return withText(await this.transport.send('getNamespaceKey', { params: { namespace, key } }, options))
  }
}

function withText({ text }: { text: string }): Entry<string> {
  return { ...(JSON.parse(text) as AnyEntry), value: memberText(text, 'value')! }
}
