// A request for a page.

import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import type { Method } from '../contract/route.ts'
import { no_bytes } from './body-stream.ts'
import type { Exchange } from './exchange.ts'
import type { Served } from './frame.ts'
import { identify } from './identify.ts'
import type { InProcess } from './internal-calls.ts'
import type { RouteMeasures } from './measures.ts'
import type { Outgoing } from './outgoing.ts'
import { type Page, withPageHeaders } from './pages.ts'
import { readError, small_bytes_max } from './upload.ts'

export const pages_a_turn_max = limit(
  'http.pages_a_turn',
  4,
  'requests',
  'Calls of MCP that begin in one turn of the event loop, and none after one of more than http.small_body_bytes; the others wait for another, tenant by tenant.',
)

/** A page as the frame of a request sees it. `api` calls the API in process. */
export function servedPage(
  page: Page,
  method: Method,
  { api, measures }: { api: InProcess; measures: RouteMeasures | null },
): Served {
  return {
    method,
    path: page.path,
    measures,
    group: null,
    answer: (exchange) => answerPage(page, api, exchange),
    finish: (exchange, response) => withPageHeaders(response, exchange.request_id),
  }
}

async function bytesOf({ upload, caller }: Exchange): Promise<Uint8Array> {
  try {
    return (await upload?.read(caller?.tenant_id ?? null)) ?? no_bytes
  } catch (error) {
    throw readError(error)
  }
}

/** A large message may be a million values: to parse and to check them takes the rest of the turn. */
function weightOf(bytes: Uint8Array): number {
  return bytes.length > small_bytes_max ? pages_a_turn_max : 1
}

async function answerPage(page: Page, api: InProcess, exchange: Exchange): Promise<Outgoing> {
  const { options, request, request_id } = exchange
  if (request.method === 'POST') exchange.expectBody()
  if (!page.takes_key && !options.turn_budget.begin()) await exchange.turn()
  return page.answer(request, {
    request_id,
    now: exchange.now,
    async requireKey(kinds, headers) {
      await identify(exchange, { group: v1, method: 'GET', auth: kinds }, headers)
      if (page.takes_key && !options.turn_budget.begin()) await exchange.turn()
    },
    bytes: () => bytesOf(exchange),
    api: (inner) => api(inner, exchange),
    turn: (bytes) =>
      options.page_turns.next(exchange.line, exchange.caller ? 'tenant' : 'stranger', weightOf(bytes)),
    reserve: (bytes) => exchange.upload?.reserve(bytes),
    extendTimeout: (ms) => exchange.extendTimeout(ms),
  })
}
