// One call: the request, its tries, and what its answer means.

import { WaystationError, WaystationNetworkError, WaystationTimeoutError } from './errors.ts'
import { encodeJson } from './json.ts'
import type { Platform } from './platform.ts'
import { repeats } from './repeats.ts'
import { type ErrorCode, type Operations, operations } from './types.ts'

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
/** Whoever is asked to wait for longer gets the error instead. */
const retry_after_seconds_max = 60
const retries_max = 20

export interface Settings {
  url: string
  key: string | undefined
  agent_id: string | undefined
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
  /** The answer is held back for up to this long, on purpose. */
  held_ms?: number
}

/** A success. */
export interface Answer {
  status: number
  /** Empty when there is no body. */
  text: string
}

interface Request {
  method: string
  url: string
  headers: Record<string, string>
  body: string | undefined
  timeout_ms: number
  signal: AbortSignal | undefined
  /** Whether it may be sent again when it may have had its effect. */
  repeatable: boolean
  /** Whether a repeat would not even be noticed. */
  harmless: boolean
}

export class Transport {
  readonly #settings: Settings

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
    let unknown_outcome = false
    for (let tried = 0; ; tried += 1) {
      const outcome = await this.#try(request)
      if (!(outcome instanceof Error)) return outcome
      const settled = unknown_outcome ? this.#settled(name, input, options, outcome) : undefined
      if (settled) return settled
      const lost = mayHaveHappened(outcome)
      unknown_outcome ||= lost
      const wait_ms = this.#waitAfter(outcome, tried)
      if (tried >= retries || wait_ms === undefined || (lost && !repeatable)) throw outcome
      await sleep(wait_ms, options.signal)
    }
  }

  async #request<K extends keyof Operations>(
    name: K,
    { params, query, body, headers, held_ms = 0 }: Input<K>,
    { signal, timeout_ms = this.#settings.timeout_ms, request_id, idempotency_key }: CreateOptions,
  ): Promise<Request> {
    const { url, key, agent_id, platform } = this.#settings
    const { method, path, creates } = operations[name]
    const rule = repeats[name]
    const sent = { headers, body: body as Record<string, unknown> | undefined }
    const repeatable = method === 'GET' || creates === true || (rule?.repeat(sent) ?? false)
    const own_headers: Record<string, string> = { accept: 'application/json', ...headers }
    if (key !== undefined) own_headers.authorization = `Bearer ${key}`
    if (agent_id !== undefined && key !== undefined) own_headers['x-agent-id'] = agent_id
    if (request_id !== undefined) own_headers['x-request-id'] = request_id
    if (creates) own_headers['idempotency-key'] = idempotency_key ?? (await platform.uuid())
    if (body !== undefined) own_headers['content-type'] = 'application/json'
    return {
      method,
      url: `${url}${pathOf(path, params ?? {})}${queryOf(query ?? {})}`,
      headers: own_headers,
      body: body === undefined ? undefined : encodeJson(body),
      timeout_ms: limited('timeout_ms', timeout_ms, 1, 2 ** 31 - 1) + held_ms,
      signal,
      repeatable,
      harmless: repeatable && !rule?.done,
    }
  }

  /** What failed is answered as its error, except that an aborted call throws. */
  async #try(request: Request): Promise<Answer | FailedTry> {
    const { method, url, headers, body, timeout_ms, signal, harmless } = request
    signal?.throwIfAborted()
    const { platform } = this.#settings
    const controller = new AbortController()
    const onAbort = () => controller.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    let timed_out = false
    const stopTimer = platform.timer(timeout_ms, () => {
      timed_out = true
      controller.abort()
    })
    try {
      const response = await platform.fetch(url, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        signal: controller.signal,
        // The service never redirects, and a key is not to be carried elsewhere.
        redirect: 'manual',
        // Bun sends a PUT or DELETE again by itself when a connection that it kept turns out to be closed. On one of its
        // own it does not; elsewhere this is the default and says something else.
        ...(harmless || method === 'POST' ? {} : { keepalive: false }),
      })
      return this.#read(response, await response.text())
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (timed_out) return new WaystationTimeoutError(timeout_ms)
      return new WaystationNetworkError(error, !wasRefused(error))
    } finally {
      stopTimer()
      signal?.removeEventListener('abort', onAbort)
    }
  }

  #read(response: Response, text: string): Answer | WaystationError {
    const { status } = response
    if (status === 204 || status === 304) return { status, text: '' }
    const body = parsed(text)
    if (isObject(body) && isObject(body.error) && typeof body.error.code === 'string') {
      return refusal(response, body.error)
    }
    // A blocked rate check is a result, although its status is 429.
    const is_success = (status >= 200 && status < 300) || (isObject(body) && isObject(body.data))
    if (is_success && isObject(body)) return { status, text }
    return refusal(response, {
      code: 'UNEXPECTED_ANSWER',
      message: `Status ${status}, not from the service.`,
    })
  }

  /** Ms; undefined when another try makes no sense. Full jitter, never earlier than Retry-After. */
  #waitAfter(error: FailedTry, tried: number): number | undefined {
    if (!isPassing(error)) return undefined
    const asked = error instanceof WaystationError ? (error.retry_after_seconds ?? 0) : 0
    if (asked > retry_after_seconds_max) return undefined
    const backoff_ms = Math.min(backoff_ms_max, backoff_ms_first * 2 ** tried)
    return asked * 1_000 + Math.floor(this.#settings.platform.random() * backoff_ms)
  }

  /** The answer that an earlier try would have given, when the repeat's refusal says that it had its effect. */
  #settled<K extends keyof Operations>(
    name: K,
    { params }: Input<K>,
    { idempotency_key: _, ...options }: CreateOptions,
    error: FailedTry,
  ): Promise<Answer> | undefined {
    const done = repeats[name]?.done
    if (!done || !(error instanceof WaystationError) || error.code !== done.code) return undefined
    if (done.status !== undefined && error.details?.status !== done.status) return undefined
    if (done.read) return this.send(done.read, { params: params as { id: string } }, options)
    const text = done.answer === undefined ? '' : JSON.stringify({ success: true, data: done.answer })
    return Promise.resolve({ status: 200, text })
  }
}

type FailedTry = WaystationError | WaystationNetworkError | WaystationTimeoutError

/** Whether it may be otherwise in a moment. */
function isPassing(error: FailedTry): boolean {
  if (!(error instanceof WaystationError)) return true
  const { code, status } = error
  if (code === 'UNEXPECTED_ANSWER') return status === 429 || isGatewayTrouble(status)
  return ['RATE_LIMITED', 'UNAVAILABLE', 'OUTCOME_UNKNOWN', 'IDEMPOTENCY_IN_PROGRESS'].includes(code)
}

/** Whether the request may have had its effect although nobody said so. */
function mayHaveHappened(error: FailedTry): boolean {
  if (error instanceof WaystationNetworkError) return error.may_have_arrived
  if (error instanceof WaystationTimeoutError) return true
  if (error.code === 'UNEXPECTED_ANSWER') return isGatewayTrouble(error.status)
  return error.code === 'OUTCOME_UNKNOWN'
}

/** 502, 503, 504: of something between here and the service. */
function isGatewayTrouble(status: number): boolean {
  return status >= 502 && status <= 504
}

/** Runtimes name a connection that was never made in their own ways. */
function wasRefused(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } }
  return ['ECONNREFUSED', 'ConnectionRefused', 'ENOTFOUND', 'EAI_AGAIN'].some((known) =>
    [code, cause?.code].includes(known),
  )
}

function refusal({ status, headers }: Response, error: Record<string, unknown>): WaystationError {
  const retry_after = Number(headers.get('retry-after') ?? Number.NaN)
  return new WaystationError(
    error.code as ErrorCode,
    `${error.message}${issuesOf(error.details)}`,
    status,
    isObject(error.details) ? error.details : undefined,
    typeof error.request_id === 'string' ? error.request_id : headers.get('x-request-id'),
    Number.isFinite(retry_after) && retry_after >= 0 ? retry_after : undefined,
  )
}

/** The first broken rules of VALIDATION_FAILED, for whoever reads the message. */
function issuesOf(details: unknown): string {
  const issues = isObject(details) && Array.isArray(details.issues) ? details.issues : []
  const told = issues.slice(0, 3).map(({ path, message }) => `${path} ${message}`)
  return told.length > 0 ? ` (${told.join('; ')})` : ''
}

function pathOf(path: string, params: object): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = (params as Record<string, unknown>)[name]
    if (typeof value !== 'string' || value === '')
      throw new TypeError(`${name} must be a text that is not empty`)
    // A dot segment would be resolved away, also when it is percent-encoded (URL Standard, 4.4).
    if (/^(\.|%2e){1,2}$/i.test(value)) throw new TypeError(`${name} must not be ${value}`)
    return encodeURIComponent(value)
  })
}

function queryOf(query: object): string {
  const entries = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(String(value))}`],
  )
  return entries.length > 0 ? `?${entries.join('&')}` : ''
}

function limited(name: string, value: number, min: number, max: number): number {
  if (value >= min && value <= max) return value
  throw new TypeError(`${name} must be from ${min} to ${max}`)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
