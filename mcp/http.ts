// Streamable HTTP without sessions: each POST is answered by a server of its own, so that any node can answer.

import {
  createMcpHandler,
  isLegacyRequest,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { shortened } from './errors.ts'
import { mcpServer, type ServerOptions } from './server.ts'

/** Calls in progress on this node by caller and request id, so that a cancellation, which is a POST of its own, finds them. */
const running = new Map<string, Set<AbortController>>()

/** Names of calls in progress. For tests. */
export function callsRunning(): number {
  return running.size
}

export interface HttpOptions extends Omit<ServerOptions, 'signal' | 'onCall'> {
  /** Separates the request ids of callers. */
  caller: string
}

/** A message whose ids were checked. */
export interface Message {
  method?: unknown
  id?: string | number
  params?: { requestId?: string | number; [name: string]: unknown }
}

/**
 * Answers one POST of this message. The caller was authenticated before. The answer to a client that has disconnected means
 * nothing; it comes when the call has ended, which goes on unless it waits.
 */
export async function answerPost(
  request: Request,
  message: Message,
  { caller, ...options }: HttpOptions,
): Promise<Response> {
  const form = accepted(request.headers)
  if (!form) return notAcceptable()

  const { method, id, params } = message
  if (method === 'notifications/cancelled') {
    for (const wait of running.get(nameOf(caller, params?.requestId)) ?? []) wait.abort()
    return new Response(null, { status: 202 })
  }
  const ending = new AbortController()
  let called: Promise<unknown> | undefined
  const server = () =>
    mcpServer({
      ...options,
      // Also when the client disconnected while its request was read.
      signal: AbortSignal.any([request.signal, ending.signal]),
      onCall(result) {
        const end = remember(nameOf(caller, id), ending)
        called = result.then(end, end)
      },
    })
  if (await isLegacyRequest(request, message)) {
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: form === 'json' })
    await server().connect(transport)
    return transport.handleRequest(accepting(request.headers), { parsedBody: message })
  }
  const responseMode = form === 'json' ? 'auto' : 'sse'
  const { fetch: serve } = createMcpHandler(server, { legacy: 'reject', responseMode })
  const answer = await serve(request, { parsedBody: message })
  if (request.signal.aborted) await called
  return answer.status === 400 ? brief(answer) : answer
}

/** A refusal repeats names and versions as they were sent. */
async function brief(refusal: Response): Promise<Response> {
  const body = JSON.parse(await refusal.text(), (_, value) =>
    typeof value === 'string' ? shortened(value) : value,
  )
  return Response.json(body, { status: refusal.status })
}

/** The form that the client accepts; JSON when it accepts both. */
function accepted(headers: Headers): 'json' | 'stream' | null {
  const accept = headers.get('accept')?.toLowerCase() ?? '*/*'
  if (/application\/(json|\*)|\*\/\*/.test(accept)) return 'json'
  return /text\/(event-stream|\*)/.test(accept) ? 'stream' : null
}

/** A request with these headers that accepts both forms, as the library demands of a client. */
function accepting(sent: Headers): Request {
  const headers = new Headers(sent)
  headers.set('accept', 'application/json, text/event-stream')
  return new Request('http://in.process/mcp', { method: 'POST', headers })
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
