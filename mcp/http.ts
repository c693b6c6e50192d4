// Streamable HTTP without sessions: each POST is answered by a server of its own, so that any node can answer.

import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { mcpServer, type ServerOptions } from './server.ts'

/** Calls in progress on this node by caller and request id, so that a cancellation, which is a POST of its own, finds them. */
const running = new Map<string, Set<AbortController>>()

export interface HttpOptions extends Omit<ServerOptions, 'signal'> {
  /** Separates the request ids of callers. */
  caller: string
}

/** A message whose ids were checked. */
export interface Message {
  method?: unknown
  id?: string | number
  params?: { requestId?: string | number; [name: string]: unknown }
}

/** Answers one POST of this message. The caller was authenticated before. */
export async function answerPost(
  request: Request,
  message: Message,
  { caller, ...options }: HttpOptions,
): Promise<Response> {
  const takes = accepted(request.headers)
  if (!takes) return notAcceptable()

  const { method, id, params } = message
  if (method === 'notifications/cancelled') {
    for (const wait of running.get(nameOf(caller, params?.requestId)) ?? []) wait.abort()
    return new Response(null, { status: 202 })
  }
  const ending = new AbortController()
  // Also when the client disconnected while its request was read.
  const signal = AbortSignal.any([request.signal, ending.signal])
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: takes === 'json' })
  await mcpServer({ ...options, signal }).connect(transport as never)
  const named = nameOf(caller, id)
  const end = remember(named, ending)
  // The transport calls this when the answer is complete, in either form.
  const send = transport.send.bind(transport)
  transport.send = async (answer, ...options) => {
    try {
      await send(shortened(answer), ...options)
    } finally {
      end()
    }
  }
  const headers = new Headers(request.headers)
  headers.set('accept', 'application/json, text/event-stream')
  const response = await transport.handleRequest(
    new Request('http://in.process/mcp', { method: 'POST', headers }),
    { parsedBody: message },
  )
  // A notification has no answer: it is complete once it was accepted.
  if (response.status !== 200) end()
  return response
}

/** The library of the protocol words an error at a length of its own, a few lines for each fault. */
const error_characters_max = 2_000

function shortened(answer: JSONRPCMessage): JSONRPCMessage {
  if (!('error' in answer) || answer.error.message.length <= error_characters_max) return answer
  const message = `${answer.error.message.slice(0, error_characters_max).toWellFormed()}…`
  return { ...answer, error: { ...answer.error, message } }
}

/** The form that the client accepts; JSON when it accepts both. */
function accepted(headers: Headers): 'json' | 'stream' | null {
  const accept = headers.get('accept')?.toLowerCase() ?? '*/*'
  if (/application\/(json|\*)|\*\/\*/.test(accept)) return 'json'
  return /text\/(event-stream|\*)/.test(accept) ? 'stream' : null
}

/** The request id 7 is another than "7". */
function nameOf(caller: string, id: string | number | undefined): string {
  return `${caller} ${JSON.stringify(id)}`
}

function remember(name: string, controller: AbortController): () => void {
  const all = running.get(name) ?? new Set()
  running.set(name, all.add(controller))
  return () => {
    all.delete(controller)
    if (all.size === 0 && running.get(name) === all) running.delete(name)
  }
}

function notAcceptable(): Response {
  const error = { code: -32_000, message: 'Accept application/json or text/event-stream.' }
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 406 })
}
