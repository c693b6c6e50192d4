// A request, top to bottom.

import { overloaded } from '../base/overload.ts'
import { encode } from '../contract/encode.ts'
import { dataText } from '../contract/group.ts'
import { type Context, type Input, Reply, type Route } from '../contract/route.ts'
import type { Turn, Tx } from '../db/db.ts'
import { type Answer, type Claim, claimOf, isAnswered, once } from '../idempotency/service.ts'
import { json, reply } from './answers.ts'
import { requireCron } from './auth.ts'
import { dbOf } from './connected.ts'
import { isConsoleRead } from './console-read.ts'
import type { Exchange } from './exchange.ts'
import { readHeavy } from './heavy.ts'
import { identify } from './identify.ts'
import { IgnoredNames } from './ignored.ts'
import { no_raw, queryOf, rawOf, readBody } from './input.ts'
import { isOwnPage, requireAllowedOrigin } from './origin.ts'
import type { Outgoing } from './outgoing.ts'
import { type Params, pathOf, readParams } from './params.ts'
import type { Prepared } from './prepared.ts'
import { requireOpenSignUp, SignUp } from './sign-up.ts'

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
  const bytes = prepared.body ? await exchange.upload!.read(caller?.tenant_id ?? null) : no_bytes
  if (prepared.takes_turns && !exchange.server.outer && !options.turn_budget.begin())
    await exchange.turn(route.shed)
  if (caller && options.clock.monotonic() - began > identified_ms)
    await identify(exchange, route, request.headers, options.clock.now())
  const read = prepared.body ? readBody(prepared, exchange, bytes) : no_members
  const body = read instanceof Promise ? await read : read
  const query = prepared.query ? await prepared.query.query(queryOf(request.url)) : no_members
  const input = inputOf(exchange, params, query, body)
  const context = contextOf(prepared, exchange, params)

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
const no_bytes = new Uint8Array(0)

type AnyInput = Input<never, never, never>

function inputOf(exchange: Exchange, params: Params, query: object, body: object): AnyInput {
  return {
    params: params as never,
    query: query as never,
    body: body as never,
    header: (name) => exchange.request.headers.get(name),
  }
}

function contextOf({ route }: Prepared, exchange: Exchange, params: Params): Context<never> {
  const { options, request, now, request_id } = exchange
  return {
    db: dbOf(route, exchange),
    caller: exchange.caller as never,
    dependencies: options.dependencies,
    now,
    request_id,
    path: () => pathOf(route, params),
    extendTimeout: (ms) => exchange.extendTimeout(ms),
    signal: () => request.signal,
    requireStillAllowed: () => options.key_checks.requireAllowed(route, request.headers),
    pause: (waiting) => waiting,
  }
}

interface Asked {
  context: Context<never>
  input: AnyInput
  /** Of the body. */
  bytes: Uint8Array
}

/** One effect for each Idempotency-Key, whose row shares the transaction of the effect. */
async function create(prepared: Prepared, exchange: Exchange, asked: Asked): Promise<Outgoing> {
  const { route, status } = prepared
  const { context, input } = asked
  const claim = claimIn(prepared, exchange, asked)
  const sign_up = route.sign_up ? SignUp.of(exchange) : null
  const effect = async (tx: Tx, found_out: unknown) => {
    const counted = sign_up?.count()
    if (counted) await counted // by another process, and only on PostgreSQL, where no other transaction waits for this one
    const made = await route.create!(tx, context, input, found_out)
    const made_reply = made instanceof Reply ? made : new Reply(status, made)
    return {
      status: made_reply.status,
      text: dataText(route.group, made_reply.status, encode(made_reply.body)),
    }
  }
  const turn = turnOf(route, exchange.caller?.tenant_id ?? null, claim ? null : asked.bytes.length)
  const write = (effectIn: (tx: Tx) => ReturnType<typeof effect>) =>
    context.db.write<Answer>(turn, async (tx) =>
      claim ? once(tx, claim, () => effectIn(tx)) : { ...(await effectIn(tx)), replayed: false },
    )
  try {
    // A repeat gets the first answer: nothing has to be found out for it.
    const is_repeat = route.prepare && claim ? await isAnswered(context.db, claim, exchange.now) : false
    let created = is_repeat ? await unlessExpired(write) : null
    if (!created) {
      const found_out = await route.prepare?.(context, input)
      created = await write((tx) => effect(tx, found_out))
    }
    return json(exchange, created.status, created.text, created.replayed ? replayed : null)
  } catch (error) {
    sign_up?.cancel()
    throw error
  }
}

/** `batched_bytes`: null for an effect that has a transaction of its own. An Idempotency-Key's claim always has. */
function turnOf({ row, batch }: Route, tenant_id: string | null, batched_bytes: number | null): Turn {
  const turn: Turn = { key: tenant_id ?? 'sign-up' }
  if (row !== undefined) turn.row = row
  if (batch && tenant_id !== null && batched_bytes !== null)
    turn.batch = { line: tenant_id, bytes: batched_bytes }
  return turn
}

class Expired extends Error {}

/** The answer that is kept; null when its 24 hours have ended since it was seen, and nothing is changed. */
async function unlessExpired(
  write: (effectIn: (tx: Tx) => Promise<never>) => Promise<Answer>,
): Promise<Answer | null> {
  try {
    return await write(() => Promise.reject(new Expired()))
  } catch (error) {
    if (error instanceof Expired) return null
    throw error
  }
}

const replayed = { 'idempotent-replayed': 'true' }

function claimIn({ route }: Prepared, exchange: Exchange, { context, bytes }: Asked): Claim | null {
  const key = exchange.request.headers.get('idempotency-key')
  if (key === null) return null
  const caller = exchange.caller ?? exchange.address
  return claimOf({ key, caller, route: `${route.method} ${context.path()}`, body: bytes })
}
