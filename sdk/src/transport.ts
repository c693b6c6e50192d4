// One call: the request, its tries and its answer.

import { onAbort, throwIfAborted } from './abort.ts'
import { hasCode, WaystationError, WaystationNetworkError, WaystationTimeoutError } from './errors.ts'
import { encodeJson, isNotFinite } from './json.ts'
import {
  type Answer,
  afterwards,
  answerOf,
  type FailedTry,
  isFailedTry,
  isOutcomeUnknown,
  isTransient,
  wasRefused,
} from './outcome.ts'
import { NoFetch, type Platform, refusedSignal, timer_ms_max, uncached } from './platform.ts'
import { type Done, repeats } from './repeats.ts'
import { type OperationSpec, type Operations, operations } from './types.ts'

export interface CallOptions {
  /** Ends the call, its waits between tries included, with the signal's reason. */
  signal?: AbortSignal | undefined
  /** How long each try may take; default that of the client. */
  timeout_ms?: number | undefined
  /** How often a try that failed is followed by another one; default that of the client. */
  retries?: number | undefined
  /** Sent as X-Request-Id, to find the call in the service's log: 8 to 64 of `A-Za-z0-9_.-`. */
  request_id?: string | undefined
}

export interface CreateOptions extends CallOptions {
  /** One is made for each call unless given. Give your own to be safe over restarts of your program, too. */
  idempotency_key?: string | undefined
}

/** The wait before a second try is between 0 and this, before each further one twice as much. */
const backoff_ms_first = 250
const backoff_ms_max = 8_000
/** When Retry-After is longer than this, the error is thrown instead of waiting. */
const retry_after_seconds_max = 60
/** Also the default of methods that wait for hours: enough for about a minute without the service. */
export const retries_max = 20
const idempotency_key_characters_max = 255

export interface Settings {
  url: string
  key: string | undefined
  agent_id: string | undefined
  /** As a header carries it. */
  workflow_id: string | undefined
  timeout_ms: number
  retries: number
  parse_json: (text: string) => unknown
  platform: Platform
}

export interface Input<K extends keyof Operations> {
  params?: Operations[K]['params']
  query?: Operations[K]['query'] | undefined
  body?: Operations[K]['body']
  headers?: Record<string, string> | undefined
  /** The service holds the answer back for up to this long. */
  held_ms?: number
}

interface Request {
  operation: OperationSpec
  url: string
  headers: Record<string, string>
  body: string | undefined
  timeout_ms: number
  signal: AbortSignal | undefined
  /** May be sent again although it may have had its effect. */
  repeatable: boolean
  /** A repeat changes nothing at all. */
  harmless: boolean
}

export class Transport {
  readonly #settings: Settings
  readonly #uncached = uncached()

  constructor(settings: Settings) {
    this.#settings = settings
  }

  get platform(): Platform {
    return this.#settings.platform
  }

  /** The parsed answer of one operation. */
  async call<K extends keyof Operations>(
    name: K,
    input: Input<K>,
    options: CreateOptions = {},
  ): Promise<Operations[K]['answer']> {
    return this.parse(name, await this.send(name, input, options)) as Operations[K]['answer']
  }

  parse(name: keyof Operations, { text }: Answer): unknown {
    if (text === '') return undefined
    const body = this.#settings.parse_json(text)
    return operations[name].wrapped ? (body as { data: unknown }).data : body
  }

  /** Tries until there is an answer, or it makes no sense or is not safe to try again. */
  async send<K extends keyof Operations>(
    name: K,
    input: Input<K>,
    options: CreateOptions = {},
  ): Promise<Answer> {
    const { sleep } = this.#settings.platform
    const request = await this.#request(name, input, options)
    const { repeatable } = request
    const retries = limited('retries', options.retries ?? this.#settings.retries, 0, retries_max)
    let unknown: FailedTry | undefined
    for (let tried = 0; ; tried += 1) {
      const outcome = await this.#try(request)
      if (!(outcome instanceof Error)) return outcome
      const settled = unknown && this.#settled(name, input, options, outcome, unknown)
      if (settled) return settled
      const is_unknown = isOutcomeUnknown(outcome)
      if (is_unknown) unknown = outcome
      const wait_ms = this.#waitAfter(outcome, tried)
      if (tried >= retries || wait_ms === undefined || (is_unknown && !repeatable)) {
        // The last try had no effect, but an earlier one may have had it: its error counts.
        throw request.operation.method === 'GET' || !unknown ? outcome : afterwards(unknown, outcome)
      }
      await sleep(wait_ms, options.signal)
    }
  }

  async #request<K extends keyof Operations>(
    name: K,
    { params, query, body, headers, held_ms = 0 }: Input<K>,
    { signal, timeout_ms = this.#settings.timeout_ms, request_id, idempotency_key }: CreateOptions,
  ): Promise<Request> {
    const { url, key, agent_id, workflow_id, platform } = this.#settings
    const operation = operations[name]
    const { method, path, creates } = operation
    requireNumbers({ ...query, ...body })
    const rule = repeats[name]
    const sent = { headers, body: body as Record<string, unknown> | undefined }
    const repeatable = method === 'GET' || creates === true || (rule?.repeat(sent) ?? false)
    const own_headers: Record<string, string> = { accept: 'application/json', ...headers }
    if (key !== undefined) own_headers.authorization = `Bearer ${key}`
    if (agent_id !== undefined && key !== undefined) own_headers['x-agent-id'] = agent_id
    if (workflow_id !== undefined) own_headers['x-workflow-id'] = workflow_id
    if (request_id !== undefined) own_headers['x-request-id'] = visible('request_id', request_id, 64)
    if (creates) {
      own_headers['idempotency-key'] =
        idempotency_key === undefined
          ? await platform.uuid()
          : visible('idempotency_key', idempotency_key, idempotency_key_characters_max)
    }
    if (body !== undefined) own_headers['content-type'] = 'application/json'
    return {
      operation,
      url: `${url}${pathOf(path, params ?? {})}${queryOf(query ?? {})}`,
      headers: own_headers,
      body: body === undefined ? undefined : encodeJson(body),
      timeout_ms: Math.min(limited('timeout_ms', timeout_ms, 1, timer_ms_max) + held_ms, timer_ms_max),
      signal,
      repeatable,
      harmless: repeatable && !rule?.done,
    }
  }

  /** Returns the error of a failed try; an aborted call throws. */
  async #try(request: Request): Promise<Answer | FailedTry> {
    const { timeout_ms, signal } = request
    throwIfAborted(signal)
    const { platform } = this.#settings
    const controller = new AbortController()
    const stopListening = onAbort(signal, () => controller.abort(signal?.reason))
    let timed_out = false
    const stopTimer = platform.timer(timeout_ms, () => {
      timed_out = true
      controller.abort()
    })
    try {
      // Not every fetch, and not every body of its answer, ends with the signal.
      return await Promise.race([this.#ask(request, controller.signal), endOf(controller.signal)])
    } catch (error) {
      throwIfAborted(signal)
      if (isControlFlow(error) || error instanceof NoFetch) throw error
      const refused = refusedSignal(error)
      if (refused) throw refused
      if (timed_out) return new WaystationTimeoutError(timeout_ms)
      return new WaystationNetworkError(error, !wasRefused(error), this.#settings.url)
    } finally {
      stopTimer()
      stopListening()
    }
  }

  async #ask(request: Request, signal: AbortSignal): Promise<Answer | WaystationError> {
    const { operation, url, headers, body, harmless } = request
    const { method } = operation
    // The fetch of a browser must not be called as a method.
    const { fetch, now } = this.#settings.platform
    const response = await fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal,
      ...this.#uncached,
      // The service never redirects, and the key must not be sent elsewhere.
      redirect: 'manual',
      // Bun sends a PUT or DELETE again by itself when a connection that it kept turns out to be closed. On one of its
      // own it does not; elsewhere this is the default and says something else.
      ...(harmless || method === 'POST' ? {} : { keepalive: false }),
    })
    return answerOf(response, await response.text(), request, now())
  }

  /** Ms; undefined when another try makes no sense. Full jitter, never earlier than Retry-After. */
  #waitAfter(error: FailedTry, tried: number): number | undefined {
    if (!isTransient(error)) return undefined
    const least_seconds = error instanceof WaystationError ? (error.retry_after_seconds ?? 0) : 0
    if (least_seconds > retry_after_seconds_max) return undefined
    const backoff_ms = Math.min(backoff_ms_max, backoff_ms_first * 2 ** tried)
    return least_seconds * 1_000 + Math.floor(this.#settings.platform.random() * backoff_ms)
  }

  /** Returns the answer of the earlier try when the refusal of the repeat shows that it had its effect. */
  #settled<K extends keyof Operations>(
    name: K,
    { params }: Input<K>,
    { idempotency_key: _, ...options }: CreateOptions,
    error: FailedTry,
    unknown: FailedTry,
  ): Promise<Answer> | undefined {
    if (!(error instanceof WaystationError)) return undefined
    const { code, details } = error
    const isSaid = (done: Done) =>
      done.code === code &&
      (done.status === undefined || done.status === details?.status) &&
      (done.decision === undefined || done.decision === details?.decision)
    const done = repeats[name]?.done?.find(isSaid)
    if (!done) return undefined
    if (done.read) {
      return this.send(done.read, { params: params as { id: string } }, options).catch((failed) => {
        // An approval key may settle a checkpoint that it may not read; the refusal has its status.
        if (hasCode(failed, 'FORBIDDEN')) throw error
        throw isFailedTry(failed) ? afterwards(unknown, failed) : failed
      })
    }
    const text = done.answer === undefined ? '' : JSON.stringify({ success: true, data: done.answer })
    return Promise.resolve({ status: 200, text })
  }
}

/** Rejects once the signal, which is not aborted yet, is. */
function endOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}

/**
 * True for an error by which the fetch of Next.js ends a render, as when a page turns out to be dynamic. Next.js knows it by its
 * digest or code, and must get it as it is.
 */
function isControlFlow(error: unknown): boolean {
  const { digest, code } = (error ?? {}) as { digest?: unknown; code?: unknown }
  return typeof digest === 'string' || code === 'NEXT_STATIC_GEN_BAILOUT'
}

function pathOf(path: string, params: object): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = (params as Record<string, unknown>)[name]
    if (typeof value !== 'string' || value === '')
      throw new TypeError(`${name} must be a text that is not empty`)
    // A dot segment would be resolved away (URL Standard, 4.4). %2e is none here: its percent sign is escaped.
    if (value === '.' || value === '..') throw new TypeError(`${name} must not be ${value}`)
    return encodeURIComponent(value)
  })
}

function queryOf(query: object): string {
  const entries = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(String(value))}`],
  )
  return entries.length > 0 ? `?${entries.join('&')}` : ''
}

/** As JSON, NaN would be null, which the service takes for nothing: a put without its condition. */
function requireNumbers(sent: object): void {
  for (const [name, value] of Object.entries(sent)) {
    if (isNotFinite(value)) throw new TypeError(`${name} must be a finite number`)
  }
}

/** Visible ASCII: anything else would fail inside fetch, whose error looks like that of a lost connection. */
function visible(name: string, value: string, characters_max: number): string {
  if (/^[\x21-\x7e]+$/.test(value) && value.length <= characters_max) return value
  throw new TypeError(`${name} must be 1 to ${characters_max} characters of visible ASCII`)
}

export function limited(name: string, value: number, min: number, max: number): number {
  if (value >= min && value <= max) return value
  throw new TypeError(`${name} must be from ${min} to ${max}`)
}
