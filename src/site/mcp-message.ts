// A message to /mcp: judged by its text before it is parsed.

import { decodeUtf8, levels_max, type Members, scanObject } from '../base/json.ts'
import { limit } from '../base/limit.ts'

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

const arguments_max = limit(
  'mcp.arguments',
  256,
  'entries',
  'The time that others wait: arguments of one call, each of which is checked by its name; with more it is an Invalid Request.',
)

// JSON-RPC 2.0 section 5.1.
const parse_error = -32_700
const invalid_request = -32_600

/**
 * The message, or the answer that refuses it. The whole text is scanned first, without recursion, and ids are judged
 * by their text: nothing that nests deeper than `message_levels_max` is ever parsed.
 */
export function messageIn(bytes: Uint8Array): object | Response {
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
  const scan = scanObject(params, (name) => name === 'requestId' || name === 'arguments', message_levels_max)
  if (!scan.ok) return 'The member params must be an object.'
  if (membersOf(scan.members.get('arguments') ?? '{}') > arguments_max)
    return `The member params.arguments has more than ${arguments_max} members.`
  const request_id = scan.members.get('requestId')
  return request_id === undefined || isId(request_id) ? null : `The member params.requestId ${id_rule}.`
}

/** How many members an object has; 0 for another value. */
function membersOf(text: string): number {
  let members = 0
  scanObject(
    text,
    () => {
      members += 1
      return false
    },
    message_levels_max,
  )
  return members
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
