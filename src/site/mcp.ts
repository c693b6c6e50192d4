// POST /mcp: the MCP server in process. Every tool is a call of the API with the key that came, so that limits,
// tenancy and audit are the API's.

import { ApiError, invalid } from '../base/errors.ts'
import { decodeUtf8 } from '../base/json.ts'
import { looksLikeKey } from '../base/keys.ts'
import type { Page } from '../http/pages.ts'

interface McpSources {
  public_url: () => string
  cors_origins: readonly string[]
}

export function mcpPage({ public_url, cors_origins }: McpSources): Page {
  return {
    path: '/mcp',
    methods: ['POST'],
    async answer(request, { api, bytes, mustBe, request_id }) {
      mustBeFriendly(request.headers, [new URL(public_url()).origin, ...cors_origins])
      const read_only = isReadOnly(request)
      const key_headers = keyOf(request.headers)
      const headers = () => new Headers([...key_headers, ['x-request-id', request_id]])
      await mustBe(['agent'], headers())
      const text = decodeUtf8(await bytes()) ?? ''
      // Loaded when first asked for: the start of the service does not wait for it.
      const { answerPost } = await import('../../mcp/http.ts')
      const caller = JSON.stringify(key_headers)
      return answerPost(request, text, { api, base_url: in_process, headers, read_only, caller })
    },
  }
}

/** Where the API is for calls without a connection: nothing is ever looked up under this name. */
const in_process = 'http://in.process'

/**
 * A page of another site, whose name may lead here by a trick of its DNS, must not use what a browser can reach.
 * Programs send no Origin.
 */
function mustBeFriendly(headers: Headers, origins: readonly string[]): void {
  const origin = headers.get('origin')
  if (origin === null || origins.includes(origin) || origins.includes('*')) return
  const issues = [{ path: 'header.Origin', message: 'is neither this service nor one of CORS_ORIGINS' }]
  throw new ApiError('FORBIDDEN', { details: { issues } })
}

/** A mode that is misspelled must not end in one that may write. */
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

type KeyHeaders = [name: string, value: string][]

/** The headers that say who asks. A key in x-api-key may come alone, as under /api: it is handed on as Bearer. */
function keyOf(headers: Headers): KeyHeaders {
  const sent = ['authorization', 'x-api-key', 'x-admin-key', 'x-approval-key', 'x-agent-id'].flatMap(
    (name): KeyHeaders => {
      const value = headers.get(name)
      return value === null ? [] : [[name, value]]
    },
  )
  const key = headers.get('x-api-key')
  const bearer = /^bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1]
  const alone = bearer === undefined || bearer === key || !looksLikeKey(bearer)
  if (key === null || !looksLikeKey(key) || !alone) return sent
  const others = sent.filter(([name]) => name !== 'authorization' && name !== 'x-api-key')
  return [['authorization', `Bearer ${key}`], ...others]
}
