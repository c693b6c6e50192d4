// One call of a tool: arguments, one request to the API, and its answer as a result of the protocol.

import type { CallToolResult } from '@modelcontextprotocol/server'
import { type Arguments, checkedArguments, requestOf } from './arguments.ts'
import type { ReadyTool } from './contract.ts'
import {
  type Failure,
  isOfGateway,
  local_errors,
  nextStep,
  own_next_steps,
  read_next_step,
} from './errors.ts'

/** Calls the API, which may hold the request for `held_seconds`; rejects when it cannot be reached. */
export type Api = (request: Request, held_seconds: number) => Promise<Response>

export interface Caller {
  api: Api
  /** Without a slash at its end. */
  base_url: string
  /** The key, and whatever else goes with every request. */
  headers: () => Headers
  /** The time in so many seconds, RFC 3339. */
  timeIn(seconds: number): string
}

/** `signal` ends a wait early; a call with an effect is not aborted. */
export async function call(
  ready: ReadyTool,
  sent: Arguments,
  caller: Caller,
  signal: AbortSignal,
): Promise<CallToolResult> {
  const { api, base_url, headers } = caller
  const given = await checkedArguments(ready, sent, caller)
  if (Array.isArray(given)) {
    const details = { issues: given }
    return failed(ready, 'VALIDATION_FAILED', 'The arguments break a rule.', {
      details,
      ...timeFor(ready, caller),
    })
  }
  const request = requestOf(ready, given, base_url, headers())
  let response: Response
  let text: string
  try {
    const { wait } = ready.tool
    response = await (wait
      ? api(new Request(request, { signal }), Number(given[wait] ?? 0))
      : api(request, 0))
    text = await response.text()
  } catch {
    return failed(ready, 'UNREACHABLE', local_errors.UNREACHABLE, unanswered(ready))
  }
  return resultOf(ready, response, text, timeFor(ready, caller))
}

function unanswered({ listed, errors }: ReadyTool): Pick<Failure, 'next_step'> {
  return { next_step: listed.annotations.readOnlyHint ? read_next_step : nextStep(errors, 'UNREACHABLE') }
}

/** For a tool that takes a time: a model does not know which it is. */
function timeFor({ tool }: ReadyTool, caller: Caller): Pick<Failure, 'now'> {
  return tool.delay ? { now: caller.timeIn(0) } : {}
}

function resultOf(
  ready: ReadyTool,
  { status, headers }: Response,
  text: string,
  time: Pick<Failure, 'now'>,
): CallToolResult {
  const { tool, wrapped } = ready
  if (status === 204 && tool.done !== undefined) return succeeded(`{"${tool.done}":true}`)
  if (status === 204 && tool.item) return succeeded('{"item":null}')
  const body = objectIn(text)
  const data = wrapped ? body?.data : body
  // A blocked rate check is an answer with data, whatever its status.
  const answers = status < 300 || (wrapped && data !== undefined)
  if (answers && isOf(ready, data)) {
    const data_text = wrapped ? unwrapped(text, data) : text
    if (tool.item) return succeeded(`{"item":${data_text}}`)
    if (!tool.next) return succeeded(data_text, data)
    const next_step = JSON.stringify(tool.next(data))
    return succeeded(`${data_text.slice(0, data_text.lastIndexOf('}'))},"next_step":${next_step}}`)
  }
  const { code, message, details, request_id } = (body?.error ?? {}) as Partial<Failure>
  const retry_after = headers.get('retry-after') ?? ''
  const when = /^\d+$/.test(retry_after) ? { retry_after_seconds: Number(retry_after) } : {}
  if (typeof code !== 'string' || typeof message !== 'string') {
    const said = `${local_errors.UNEXPECTED_ANSWER} Its status is ${status}.`
    return failed(ready, 'UNEXPECTED_ANSWER', said, { ...stepBefore(ready, status), ...when })
  }
  return failed(ready, code, message, {
    ...time,
    ...(isOwn(ready, status, code) ? {} : stepBefore(ready, status)),
    ...(details === undefined ? {} : { details: namingArguments(ready, details) }),
    ...(request_id === undefined ? {} : { request_id }),
    ...when,
  })
}

/** False for the error of something before the service, which may look like one of the API. Of those statuses the API has 503. */
function isOwn({ errors }: ReadyTool, status: number, code: string): boolean {
  return Object.hasOwn(errors, code) && (status === 503 || !isOfGateway(status))
}

/** The next step after an answer of something before the service, unless it is that of the code. */
function stepBefore(ready: ReadyTool, status: number): Partial<Failure> {
  // The call may have gone on to the service, whose answer was lost.
  if (isOfGateway(status)) return unanswered(ready)
  return status === 429 ? { next_step: own_next_steps.RATE_LIMITED! } : {}
}

/** True when the data has the fields of the operation's answer: another service may answer JSON, too. */
function isOf({ answer_fields }: ReadyTool, data: unknown): data is object {
  return typeof data === 'object' && data !== null && answer_fields.every((name) => Object.hasOwn(data, name))
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null
  } catch {
    return null
  }
}

/** The data as the exact text that came: numbers in it keep all their digits. */
function unwrapped(text: string, data: object): string {
  const exact = /^\{"success":(?:true|false),"data":([\s\S]*)\}$/.exec(text)
  return exact ? exact[1]! : JSON.stringify(data)
}

function succeeded(text: string, data: unknown = JSON.parse(text)): CallToolResult {
  const structuredContent = exactly(text, data) as Record<string, unknown>
  return { content: [{ type: 'text', text }], structuredContent }
}

/** As ES2026 has it; the types do not know it yet. */
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): object }

/**
 * The data, in which numbers that a double would change are kept as they are written: some clients, in other languages, show a model
 * this alone. One beyond every double is a string: for it clients in Go refuse the whole answer, and anybody may send it to an inbox.
 * To ask for each number of a large page would hold the event loop for 60 ms, so the text as a whole is compared first. There
 * JSON.stringify has an escape for each half of a character, and for no whole one.
 */
function exactly(text: string, data: unknown): unknown {
  const again = JSON.stringify(data)
  const has_half = /\\ud[89a-f]/.test(again)
  if (again === text && !has_half) return data
  const shown = has_half ? withoutHalves(text) : text
  return JSON.parse(shown, (_name, value: unknown, context?: { source?: string }) => {
    const source = context?.source
    if (typeof value !== 'number' || source === undefined || String(value) === source) return value
    return Number.isFinite(value) ? rawJSON(source) : source
  })
}

/** An escape of a string in JSON: the two halves of a character, one half alone, or any other. */
const escapes = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|(ud[89a-f][\da-f]{2})|.)/gi

/**
 * The same JSON without lone surrogates (RFC 8259 section 8.2), which decoded UTF-8 has as escapes alone: for one of them clients in
 * Python and Rust refuse the whole answer, or never see it, and anybody may send it to an inbox.
 */
function withoutHalves(text: string): string {
  return text.replace(escapes, (found: string, half?: string) => (half === undefined ? found : '\\ufffd'))
}

function failed(
  { errors }: ReadyTool,
  code: string,
  message: string,
  more: Partial<Failure> = {},
): CallToolResult {
  const failure: Failure = { code, message, next_step: nextStep(errors, code), ...more }
  return { content: [{ type: 'text', text: JSON.stringify(failure) }], isError: true }
}

/** The issues of the API name parts of the request, those of a tool name arguments: `/value`, `query.limit`, `header.If-Match`. */
function namingArguments({ places }: ReadyTool, details: unknown): unknown {
  const { issues } = details as { issues?: { path: string; message: string }[] }
  if (!Array.isArray(issues)) return details
  const by_path = new Map(
    [...places].map(([argument, { place, name }]) => [
      place === 'body' ? `/${name}` : `${place}.${name}`,
      argument,
    ]),
  )
  return {
    ...(details as object),
    issues: issues.map(({ path, message }) => ({ argument: by_path.get(path) ?? path, message })),
  }
}
