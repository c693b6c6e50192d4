// The same tools over standard input and output, for clients that start their servers. The API is called over HTTP.
// Standard output belongs to the protocol: nothing else may be written there.

import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { STDIO_DEFAULT_MAX_BUFFER_SIZE } from '@modelcontextprotocol/sdk/shared/stdio.js'
import { ErrorCode, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { mcpServer } from './server.ts'

export interface StdioOptions {
  /** Where the service is, without /v1. */
  url: string
  /** An agent key. */
  key: string
  /** Of the workflow that every call belongs to: the bytes of its UTF-8, a character each. */
  workflow_header?: string | undefined
  read_only?: boolean
}

const answer_ms_max = 30_000

/** Of a message; one that is longer ends the server, since nothing behind it can be read. */
export const message_bytes_max = STDIO_DEFAULT_MAX_BUFFER_SIZE

/**
 * Serves until standard input ends; calls under way are answered first, waits at once. False when a message was longer than
 * `message_bytes_max`.
 */
export async function serveStdio({
  url,
  key,
  workflow_header,
  read_only = false,
}: StdioOptions): Promise<boolean> {
  const sent = {
    authorization: `Bearer ${key}`,
    ...(workflow_header && { 'x-workflow-id': workflow_header }),
  }
  const ending = new AbortController()
  const under_way = new Set<Promise<unknown>>()
  const server = mcpServer({
    api: fetchAnswer,
    base_url: url.replace(/\/+$/, ''),
    headers: () => new Headers(sent),
    timeIn: (seconds) => new Date(Date.now() + seconds * 1_000).toISOString(),
    read_only,
    signal: ending.signal,
    onCall(result) {
      const forget = () => under_way.delete(result)
      under_way.add(result)
      result.then(forget, forget)
    },
  })
  // The library waits once for each answer that the client has not read yet; past ten of them standard error would have a warning.
  process.stdout.setMaxListeners(0)
  const transport = new StdioServerTransport()
  const input_was_read = new Promise<boolean>((resolve) => {
    const ended = () => resolve(true)
    process.stdin.once('end', ended).once('close', ended)
    // The reader of the answers has disconnected.
    process.stdout.once('error', ended)
    // The transport closes itself at a message that is too long, and reads no further.
    server.onclose = () => resolve(false)
  })
  transport.onerror = (error) => void refuse(transport, error)
  await server.connect(transport)
  const was_read = await input_was_read
  ending.abort()
  await Promise.allSettled(under_way)
  // The protocol writes an answer after the call that made it.
  await new Promise((resolve) => setTimeout(resolve, 0))
  await server.close()
  return was_read
}

/** Answers a line that is not a message of the protocol, as over HTTP without its id: that was not read. */
async function refuse(transport: StdioServerTransport, { name }: Error): Promise<void> {
  const error = refusals[name]
  if (error) await transport.send({ jsonrpc: '2.0', id: null, error } as unknown as JSONRPCMessage)
}

/** By the name of the error that the library of the protocol finds in a line. */
const refusals: Readonly<Record<string, { code: ErrorCode; message: string }>> = {
  SyntaxError: { code: ErrorCode.ParseError, message: 'The line is not valid JSON.' },
  ZodError: { code: ErrorCode.InvalidRequest, message: 'Send one JSON-RPC message a line, an object.' },
}

async function fetchAnswer(request: Request, held_seconds: number): Promise<Response> {
  const late = AbortSignal.timeout(answer_ms_max + held_seconds * 1_000)
  const answer = await fetch(request, {
    signal: AbortSignal.any([request.signal, late]),
    // The service never redirects: the answer of something before it is named as such.
    redirect: 'manual',
    // On a kept connection that was closed meanwhile Bun sends a PUT or DELETE again by itself.
    ...(request.method === 'GET' ? {} : { keepalive: false }),
  })
  return inSeconds(answer)
}

/** A proxy may give Retry-After as a date (RFC 9110 section 10.2.3): by its own clock, which Date has. */
function inSeconds(answer: Response): Response {
  const { status, headers } = answer
  const after = headers.get('retry-after') ?? ''
  const seconds = Math.ceil((Date.parse(after) - Date.parse(headers.get('date') ?? '')) / 1_000)
  if (/^\d*$/.test(after) || Number.isNaN(seconds)) return answer
  return new Response(answer.body, {
    status,
    headers: { ...Object.fromEntries(headers), 'retry-after': String(Math.max(0, seconds)) },
  })
}
