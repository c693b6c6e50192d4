// POST /mcp: the MCP server in process. Every tool is a call of the API with the key that came, so that limits,
// tenancy and audit are the API's.

import { iso, second_ms } from '../base/clock.ts'
import { ApiError, invalid } from '../base/errors.ts'
import { decodeUtf8, levels_max, type Members, scanObject } from '../base/json.ts'
import { looksLikeKey } from '../base/keys.ts'
import { limit } from '../base/limit.ts'
import { in_process } from '../http/internal-calls.ts'
import { requireAllowedOrigin } from '../http/origin.ts'
import { LargeAnswer, type Outgoing, outgoing } from '../http/outgoing.ts'
import type { Page } from '../http/pages.ts'
import { workflowOf } from '../http/workflow.ts'

interface McpSources {
  public_url: () => string
  cors_origins: readonly string[]
}

export function mcpPage({ public_url, cors_origins }: McpSources): Page {
  return {
    path: '/mcp',
    methods: ['POST'],
    takes_key: true,
    async answer(request, { api, bytes, requireKey, turn, request_id, now }) {
      requireAllowedOrigin(request.headers, public_url, cors_origins)
      const read_only = isReadOnly(request)
      const key_headers = keyOf(request.headers)
      const own: Sent = [...key_headers, ['x-request-id', request_id]]
      await requireKey(['agent'], new Headers(own))
      const headers = callHeaders(own, request.headers)
      const body = await bytes()
      await turn()
      if (request.signal.aborted) throw new ApiError('REQUEST_TIMEOUT')
      const message = messageIn(body)
      if (message instanceof Response) return message
      // Loaded at the first request: the start of the service does not wait for it.
      const { answerPost } = await import('../../mcp/http.ts')
      const caller = JSON.stringify(key_headers)
      const timeIn = (seconds: number) => iso(Math.trunc(now + seconds * second_ms))
      return inPieces(
        await answerPost(request, message, { api, base_url: in_process, headers, timeIn, read_only, caller }),
      )
    },
  }
}

/** The result of a tool may be large, in either form of an answer. */
async function inPieces(response: Response): Promise<Outgoing> {
  const { status, headers, body } = response
  if (body === null) return response
  if (headers.get('content-type') === 'text/event-stream') {
    return new LargeAnswer(
      status,
      headers,
      body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array<ArrayBuffer>>,
    )
  }
  return outgoing(status, Object.fromEntries(headers), await response.text())
}

/** Above the limit of the API, so that the answer to a call with a nested argument names the argument. */
const message_levels_max = limit(
  'mcp.levels',
  2 * levels_max,
  'levels',
  'Bounds how deep a message to /mcp may nest; a deeper one is answered with an Invalid Request error.',
)
const id_characters_max = limit(
  'mcp.id_characters',
  256,
  'characters',
  'Bounds the id of a JSON-RPC message, which is kept while its call runs; a longer one is an Invalid Request.',
)

// JSON-RPC 2.0 section 5.1.
const parse_error = -32_700
const invalid_request = -32_600

/**
 * The message, or the answer that refuses it. The whole text is scanned first, without recursion, and ids are judged
 * by their text: nothing that nests deeper than `message_levels_max` is ever parsed.
 */
function messageIn(bytes: Uint8Array): object | Response {
  const text = decodeUtf8(bytes)
  const scan = text === null ? null : scanObject(text, isOfEnvelope, message_levels_max)
  if (text === null || !scan || (!scan.ok && scan.why === 'syntax')) {
    return refused(parse_error, 'The body is not valid JSON in UTF-8.')
  }
  const fault = scan.ok ? faultIn(scan.members) : faults[scan.why as keyof typeof faults]
  return fault === null ? JSON.parse(text) : refused(invalid_request, fault)
}

const faults = {
  depth: `The message is nested deeper than ${message_levels_max} levels.`,
  // The protocol has had no batches since 2025-06-18.
  not_an_object: 'Send one message a request, an object.',
} as const

const envelope = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])

function isOfEnvelope(name: string): boolean {
  return envelope.has(name)
}

/** The fault of the envelope of a message (JSON-RPC 2.0 sections 4 and 5), or null. */
function faultIn(message: Members): string | null {
  if (message.get('jsonrpc') !== '"2.0"') return 'The member jsonrpc must be "2.0".'
  const is_answer = message.has('result') || message.has('error')
  const method = message.get('method')
  if (!(is_answer || method?.startsWith('"'))) return 'The member method must be a string.'
  const id = message.get('id')
  if (id !== undefined && !isId(id)) return `The member id ${id_rule}.`
  const params = message.get('params')
  if (params === undefined) return null
  const scan = scanObject(params, (name) => name === 'requestId', message_levels_max)
  if (!scan.ok) return 'The member params must be an object.'
  const request_id = scan.members.get('requestId')
  return request_id === undefined || isId(request_id) ? null : `The member params.requestId ${id_rule}.`
}

const id_rule = `must be a whole number or a string of at most ${id_characters_max} characters`

/** JSON-RPC 2.0 section 4; MCP takes no null (2025-06-18, "Requests"). `text` is valid JSON. */
function isId(text: string): boolean {
  // An escaped character is six at most.
  if (text.length > 6 * id_characters_max + 2 || !/^["\d-]/.test(text)) return false
  const id: unknown = JSON.parse(text)
  return typeof id === 'string' ? id.length <= id_characters_max : Number.isSafeInteger(id)
}

function refused(code: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status: 400 })
}

/** A misspelled mode must not become one that may write. */
function isReadOnly(request: Request): boolean {
  const query = new URLSearchParams(request.url.split('?')[1] ?? '')
  const asked = [
    ['query.mode', query.get('mode')],
    ['header.X-Waystation-Mode', request.headers.get('x-waystation-mode')],
  ] as const
  for (const [path, mode] of asked) {
    if (mode !== null && mode !== 'read-only') throw invalid({ path, message: 'may only be read-only' })
  }
  return asked.some(([, mode]) => mode !== null)
}

type Sent = [name: string, value: string][]

/** Of every call: `own`, and the workflow that the request names. Throws VALIDATION_FAILED for one that cannot be. */
function callHeaders(own: Sent, sent: Headers): () => Headers {
  const workflow = workflowOf(sent) === null ? [] : sentOf(sent, ['x-workflow-id'])
  return () => new Headers([...own, ...workflow])
}

/** The headers that identify the caller. A key in x-api-key may come alone, as under /api: it is passed on as Bearer. */
function keyOf(headers: Headers): Sent {
  const sent = sentOf(headers, key_names)
  const key = headers.get('x-api-key')
  const bearer = /^bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  const alone = bearer === undefined || bearer === key || !looksLikeKey(bearer)
  if (key === null || !looksLikeKey(key) || !alone) return sent
  const others = sent.filter(([name]) => name !== 'authorization' && name !== 'x-api-key')
  return [['authorization', `Bearer ${key}`], ...others]
}

const key_names = ['authorization', 'x-api-key', 'x-admin-key', 'x-approval-key', 'x-agent-id']

/** Those of these headers that were sent. */
function sentOf(headers: Headers, names: readonly string[]): Sent {
  return names.flatMap((name): Sent => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value]]
  })
}
