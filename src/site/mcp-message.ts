// A message to /mcp as it came: judged by its text, before anything of it is parsed.

import { decodeUtf8, levels_max, type Members, scanObject } from '../base/json.ts'
import { limit } from '../base/limit.ts'

/** Above the limit of the API, so that the answer to a call with a nested argument names the argument. */
const message_levels_max = limit(
  'mcp.levels',
  2 * levels_max,
  'levels',
  'Bounds how deeply a message to /mcp may be nested; a deeper one is answered with an Invalid Request error.',
)
const values_max = limit(
  'mcp.values',
  500,
  'entries',
  'Bounds the values of a message to /mcp outside `params.arguments`, which the library of the protocol checks and reports one by one; one with more is an Invalid Request.',
)
const arguments_max = limit(
  'mcp.arguments',
  100,
  'entries',
  'Bounds the arguments of a call of a tool, each of which may be reported; one with more is an Invalid Request.',
)
/** An object takes twenty times the memory of its text, and a member a microsecond. */
const argument_parts_max = limit(
  'mcp.argument_parts',
  10_000,
  'entries',
  'Bounds memory, and how long others wait: objects, lists and members of objects within `params.arguments` of a message to /mcp, at every level; one with more is an Invalid Request.',
)
const argument_values_max = limit(
  'mcp.argument_values',
  50_000,
  'entries',
  'Bounds how long others wait: numbers, texts and other values within `params.arguments` of a message to /mcp, at every level; one with more is an Invalid Request.',
)
const id_characters_max = limit(
  'mcp.id_characters',
  256,
  'characters',
  'Bounds the id of a JSON-RPC message, which is kept while its call runs; a longer one is an Invalid Request.',
)

/** Counted while a call is under way, in which they are parsed, checked and passed on. The largest call has room in the smallest share of a tenant. */
const bytes_of = { part: 400, value: 32 }

// JSON-RPC 2.0 section 5.1.
const parse_error = -32_700
const invalid_request = -32_600

/**
 * The message, or the answer that refuses it. The whole text is scanned first, without recursion, and ids are judged
 * by their text: nothing that nests deeper than `message_levels_max` is ever parsed. `reserve` is called with the bytes that
 * the arguments will take; what it throws is thrown on.
 */
export function messageIn(bytes: Uint8Array, reserve: Reserve): object | Response {
  const text = decodeUtf8(bytes)
  const scan = text === null ? null : scanObject(text, isOfEnvelope, message_levels_max)
  if (text === null || !scan || (!scan.ok && scan.why === 'syntax')) {
    return refused(parse_error, 'The body is not valid JSON in UTF-8.')
  }
  const fault = scan.ok ? faultIn(text, scan.members, reserve) : faults[scan.why as keyof typeof faults]
  return fault === null ? JSON.parse(text) : refused(invalid_request, fault)
}

const faults = {
  depth: `The message is nested deeper than ${message_levels_max} levels.`,
  // The protocol has had no batches since 2025-06-18.
  not_an_object: 'Send one message per request, as an object.',
} as const

type Reserve = (bytes: number) => void

const envelope = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])

function isOfEnvelope(name: string): boolean {
  return envelope.has(name)
}

/** The fault of the envelope of a message (JSON-RPC 2.0 sections 4 and 5), or null. */
function faultIn(text: string, message: Members, reserve: Reserve): string | null {
  if (message.get('jsonrpc') !== '"2.0"') return 'The member jsonrpc must be "2.0".'
  const is_answer = message.has('result') || message.has('error')
  const method = message.get('method')
  if (!(is_answer || method?.startsWith('"'))) return 'The member method must be a string.'
  const id = message.get('id')
  if (id !== undefined && !isId(id)) return `The member id ${id_rule}.`
  const params = message.get('params')
  if (params === undefined) return hasFewValues(text) ? null : too_many_values
  const scan = scanObject(params, isJudgedParam, message_levels_max)
  if (!scan.ok) return 'The member params must be an object.'
  const request_id = scan.members.get('requestId')
  if (request_id !== undefined && !isId(request_id)) return `The member params.requestId ${id_rule}.`
  const sent = scan.members.get('arguments') ?? ''
  const given = sent.startsWith('{') ? sent : '{}' // what is none is refused by the library of the protocol, at once
  const size = sizeOf(given)
  if (size.members > arguments_max) return too_many_arguments
  if (size.parts > argument_parts_max) return too_many_parts
  if (size.commas >= argument_values_max) return too_many_argument_values
  reserve(size.parts * bytes_of.part + size.commas * bytes_of.value)
  return hasFewValues(text, given, size) ? null : too_many_values
}

function isJudgedParam(name: string): boolean {
  return name === 'requestId' || name === 'arguments'
}

const too_many_values = `The message has more than ${values_max} values outside params.arguments.`
const too_many_arguments = `The member params.arguments has more than ${arguments_max} members.`

const too_many_parts = `The member params.arguments has more than ${argument_parts_max} objects, lists and members of objects.`

const too_many_argument_values = `The member params.arguments has more than ${argument_values_max} values.`

/** Beside these arguments, which are a part of the text. A value has a comma at least, but the first of a container. */
function hasFewValues(text: string, given = '', { commas }: Size = nothing): boolean {
  return text.length - given.length <= values_max || sizeOf(text).commas - commas <= values_max
}

interface Size {
  /** Of the outermost object. */
  members: number
  /** Objects, lists and members of objects. */
  parts: number
  commas: number
}

const nothing: Size = { members: 0, parts: 0, commas: 0 }

/** `text` is valid JSON. By code units: a megabyte takes a millisecond. */
function sizeOf(text: string): Size {
  let [level, members, parts, commas] = [0, 0, 0, 0]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = closingQuote(text, at)
    else if (code === COMMA) commas += 1
    else if (code === COLON) {
      parts += 1
      if (level === 1) members += 1
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      parts += 1
      level += 1
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) level -= 1
  }
  return { members, parts, commas }
}

/** Of the string that begins at `from`. */
function closingQuote(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) return at
    if (code === BACKSLASH) at += 1
  }
  return text.length
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

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
