// POST /mcp: the MCP server in process. Every tool is a call of the API with the key that came, so that limits,
// tenancy and audit are the API's.

import { iso, second_ms } from '../base/clock.ts'
import { ApiError, errors, invalid } from '../base/errors.ts'
import { looksLikeKey } from '../base/keys.ts'
import { in_process } from '../http/internal-calls.ts'
import { requireAllowedOrigin } from '../http/origin.ts'
import { LargeAnswer, type Outgoing, outgoing } from '../http/outgoing.ts'
import type { Page } from '../http/pages.ts'
import { workflowOf } from '../http/workflow.ts'
import { messageIn } from './mcp-message.ts'

export interface McpSources {
  public_url: () => string
  cors_origins: readonly string[]
}

export function mcpPage({ public_url, cors_origins }: McpSources): Page {
  return {
    path: '/mcp',
    methods: ['POST'],
    takes_key: true,
    async answer(request, { api, bytes, requireKey, turn, reserve, request_id, now }) {
      requireAllowedOrigin(request.headers, public_url, cors_origins)
      const read_only = isReadOnly(request)
      const key_headers = keyOf(request.headers)
      const own: Sent = [...key_headers, ['x-request-id', request_id]]
      await requireKey(['agent'], new Headers(own))
      const headers = callHeaders(own, request.headers)
      const body = await bytes()
      await turn(body)
      if (request.signal.aborted) throw new ApiError('REQUEST_TIMEOUT')
      const message = messageIn(body, reserve)
      if (message instanceof Response) return message
      // Loaded at the first request: the start of the service does not wait for it.
      const { answerPost } = await import('../../mcp/http.ts')
      const caller = JSON.stringify(key_headers)
      const timeIn = (seconds: number) => iso(Math.trunc(now + seconds * second_ms))
      let was_answered = false
      const noting = async (call: Request) => {
        const answer = await api(call)
        was_answered = answer.status !== errors.REQUEST_TIMEOUT.status
        return answer
      }
      const options = { api: noting, base_url: in_process, headers, timeIn, read_only, caller }
      const answer = await answerPost(request, message, options)
      if (!request.signal.aborted) return inPieces(answer)
      // Nobody reads it. As of any route, the log has 408 for what was given up with the client, and not for what was done.
      if (!was_answered) throw new ApiError('REQUEST_TIMEOUT')
      return new Response()
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
