// Pages, served beside the API: documents, files, protocol endpoints. Each page makes its own responses.

import type { BunRequest } from 'bun'
import type { Millis } from '../base/clock.ts'
import type { CallerKind } from '../contract/caller.ts'
import type { Route } from '../contract/route.ts'
import type { Outgoing } from './outgoing.ts'

export interface Page {
  /** As in a route: `/docs/:file`, or open-ended, `/console/*`. */
  path: string
  methods: readonly Route['method'][]
  /** To OPTIONS and to other methods its path names nothing. */
  unlisted?: boolean
  /** It calls `requireKey` first, and then waits for a turn of the event loop in the queue of the tenant, not of the address. */
  takes_key?: boolean
  /** Headers that it sets win over those that every page has. */
  answer(request: BunRequest, visit: Visit): Outgoing | Promise<Outgoing>
}

export interface Visit {
  request_id: string
  /** When the request came. */
  now: Millis
  /** Throws what the API answers when a route for these kinds of key is called with these headers. It is not counted as a call. */
  requireKey(kinds: readonly CallerKind[], headers: Headers): Promise<void>
  /** The body, within its limits. Throws PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT, UNAVAILABLE. To be called once. */
  bytes(): Promise<Uint8Array>
  /** A call of the API by the client of this page, without a connection: same keys, limits and answers. */
  api(request: Request): Promise<Response>
  /** Resolves when a page that takes long for this body may begin, in a later turn of the event loop, tenant by tenant. Throws UNAVAILABLE when that takes too long. */
  turn(body: Uint8Array): Promise<void>
  /** Counts bytes that are made of a large body against MEMORY_BUDGET, until the answer. Throws UNAVAILABLE when there is no room. */
  reserve(bytes: number): void
  /** Keeps the connection open while nothing is sent. */
  extendTimeout(ms: number): void
}

/** The defaults; a page that needs more sets it itself. */
const page_headers = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const

export function withPageHeaders(response: Response, request_id: string): void {
  for (const [name, value] of Object.entries(page_headers)) {
    if (!response.headers.has(name)) response.headers.set(name, value)
  }
  response.headers.set('x-request-id', request_id)
}
