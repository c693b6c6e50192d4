// A request, top to bottom.

import { overloaded } from '../base/overload.ts'
import type { Input } from '../contract/route.ts'
import { reply } from './answers.ts'
import { requireCron } from './auth.ts'
import { no_bytes } from './body-stream.ts'
import { isConsoleRead } from './console-read.ts'
import { RequestContext } from './context.ts'
import { create } from './create.ts'
import type { Exchange } from './exchange.ts'
import { readHeavy } from './heavy.ts'
import { identify } from './identify.ts'
import { IgnoredNames } from './ignored.ts'
import { no_raw, queryOf, rawOf, readBody } from './input.ts'
import { isOwnPage, requireAllowedOrigin } from './origin.ts'
import type { Outgoing } from './outgoing.ts'
import { type Params, readParams } from './params.ts'
import type { Prepared } from './prepared.ts'
import { requireOpenSignUp } from './sign-up.ts'
import { readError } from './upload.ts'

/** The answer to a request of this route. Awaits only where it must: most requests are identified at once. */
export async function answer(prepared: Prepared, exchange: Exchange): Promise<Outgoing> {
  const { route } = prepared
  const { options, request } = exchange
  const { dependencies } = options
  if (options.overload.refuses && prepared.is_new_work) throw overloaded.next()

  // The caller.
  if (prepared.body || route.raw) exchange.expectBody()
  const began = options.clock.monotonic()
  if (route.auth.length > 0) {
    const identified = identify(exchange, route, request.headers)
    if (identified) await identified
  }
  const { caller } = exchange
  if (caller && route.group.counts_calls && !isConsoleRead(route, caller, request.headers)) {
    const counted = dependencies.counts.calls.count(caller, dependencies.plans, exchange.now)
    if (counted) await counted
  }
  if (route.cron) requireCron(request.headers, options.cron_secret)
  if (prepared.judges_origin)
    requireAllowedOrigin(request.headers, dependencies.urls.public_url, options.cors_origins, isOwnPage)
  if (route.sign_up) requireOpenSignUp(dependencies.service)

  // The input.
  const params = prepared.params.length === 0 ? no_params : readParams(prepared.params, request)
  if (prepared.body) exchange.ignored = new IgnoredNames()
  let bytes: Uint8Array = no_bytes
  try {
    if (prepared.body) bytes = await exchange.upload!.read(caller?.tenant_id ?? null)
  } catch (error) {
    throw readError(error)
  }
  if (prepared.takes_turns && !exchange.server.outer && !options.turn_budget.begin())
    await exchange.turn(route.shed)
  if (caller && options.clock.monotonic() - began > identified_ms)
    await identify(exchange, route, request.headers, options.clock.now())
  const read = prepared.body ? readBody(prepared, exchange, bytes) : no_members
  const body = read instanceof Promise ? await read : read
  const query = prepared.query ? await prepared.query.query(queryOf(request.url)) : no_members
  const input = inputOf(exchange, params, query, body)
  const context = new RequestContext(prepared, exchange, params)

  // The effect.
  if (route.create) return await create(prepared, exchange, { context, input, bytes })
  const raw = route.raw ? await rawOf(prepared, exchange, context.db, params) : no_raw
  const result =
    route.heavy && caller
      ? await readHeavy(route, exchange, context, input)
      : await route.handle!(context, input, raw)
  return reply(exchange, route.group, prepared.status, result)
}

/** When the look-up of a key, the body and the turn took longer than this, its sender may have been stopped: it is looked up again. */
const identified_ms = 500

const no_params: Params = {}
const no_members = {}

type AnyInput = Input<never, never, never>

function inputOf(exchange: Exchange, params: Params, query: object, body: object): AnyInput {
  return {
    params: params as never,
    query: query as never,
    body: body as never,
    header: (name) => exchange.request.headers.get(name),
  }
}
