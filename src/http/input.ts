// The input of a request besides its path and query: a JSON body, or any bytes.

import { ApiError, type ErrorCode, invalid } from '../base/errors.ts'
import type { RawRequest } from '../contract/route.ts'
import type { Awaitable, Db } from '../db/db.ts'
import { requireJson } from './body.ts'
import type { Exchange } from './exchange.ts'
import { isForwarded } from './forwarded.ts'
import type { Params } from './params.ts'
import type { Prepared } from './prepared.ts'
import { readError } from './upload.ts'

/** The typed value of a JSON body. Throws what its route answers for a body that breaks a rule. */
export function readBody(prepared: Prepared, exchange: Exchange, bytes: Uint8Array): Awaitable<object> {
  const { route, body, forwarded_body } = prepared
  if (bytes.length > 0) requireJson(exchange.request.headers)
  const reader = forwarded_body && isForwarded(exchange.connection.headers) ? forwarded_body : body!
  const { body_error } = route
  return body_error
    ? answeredAs(body_error, () => reader.body(bytes, exchange.ignored!))
    : reader.body(bytes, exchange.ignored!)
}

async function answeredAs(code: ErrorCode, read: () => Awaitable<object>): Promise<object> {
  try {
    return await read()
  } catch (error) {
    const broken = (error as ApiError).code
    throw broken === 'INVALID_JSON' || broken === 'VALIDATION_FAILED' ? new ApiError(code) : error
  }
}

/** For a route that is not raw. */
export const no_raw = null as never

/** The request as it came, for a route that takes anything. */
export async function rawOf(
  { route }: Prepared,
  exchange: Exchange,
  db: Db,
  params: Params,
): Promise<RawRequest> {
  const { request } = exchange
  const upload = exchange.upload!
  if (request.method === 'GET') requireNoBody(request.headers)
  const admitted = route.admit?.(db, params, upload.is_large) ?? null
  const tenant_id = admitted instanceof Promise ? await admitted : admitted
  try {
    return {
      method: request.method,
      headers: request.headers,
      bytes: await upload.read(tenant_id),
      url: request.url,
      address: exchange.address,
      request_id: exchange.request_id,
    }
  } catch (error) {
    throw readError(error)
  }
}

/** Refuses a GET with a body, because Bun does not pass it on and it would be lost. */
function requireNoBody(headers: Headers): void {
  const name = headers.has('transfer-encoding') ? 'Transfer-Encoding' : 'Content-Length'
  if (!headers.has('transfer-encoding') && Number(headers.get('content-length') ?? 0) === 0) return
  throw invalid({ path: `header.${name}`, message: 'announces a body, which a GET cannot have here' })
}

/** The query string of a URL, without its `?`. */
export function queryOf(url: string): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}
