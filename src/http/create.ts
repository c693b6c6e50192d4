// A request that creates, with an Idempotency-Key or without.

import { encode } from '../contract/encode.ts'
import { dataText } from '../contract/group.ts'
import { type Context, type Input, Reply, type Route } from '../contract/route.ts'
import type { Turn, Tx } from '../db/db.ts'
import { type Answer, type Claim, claimOf, isAnswered, once, type Room } from '../idempotency/service.ts'
import { json } from './answers.ts'
import type { Exchange } from './exchange.ts'
import type { Outgoing } from './outgoing.ts'
import type { Prepared } from './prepared.ts'
import { SignUp } from './sign-up.ts'

type AnyInput = Input<never, never, never>

interface Asked {
  context: Context<never>
  input: AnyInput
  /** Of the body. */
  bytes: Uint8Array
}

/** One effect for each Idempotency-Key, whose row shares the transaction of the effect. */
export async function create(prepared: Prepared, exchange: Exchange, asked: Asked): Promise<Outgoing> {
  const { route, status } = prepared
  const { context, input } = asked
  const claim = claimIn(prepared, exchange, asked)
  const sign_up = route.sign_up ? SignUp.of(exchange) : null
  const effect = async (tx: Tx, found_out: unknown): Promise<Answer> => {
    const counted = sign_up?.count()
    if (counted) await counted // by another process, and only on PostgreSQL, where no other transaction waits for this one
    const made = await route.create!(tx, context, input, found_out)
    const made_reply = made instanceof Reply ? made : new Reply(status, made)
    return {
      status: made_reply.status,
      text: dataText(route.group, made_reply.status, encode(made_reply.body)),
      replayed: false,
    }
  }
  const turn = turnOf(route, exchange.caller?.tenant_id ?? null, claim ? null : asked.bytes.length)
  const write = (effectIn: (tx: Tx) => Promise<Answer>) =>
    context.db.write<Answer>(
      turn,
      claim ? (tx) => once(tx, claim, () => effectIn(tx), roomFor(route, exchange)) : effectIn,
    )
  try {
    // A repeat gets the first answer, so nothing needs to be read for it.
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

function roomFor({ kept_if_room }: Route, { caller, options }: Exchange): Room {
  return { tenant: caller, plans: options.dependencies.plans, is_needed: !kept_if_room }
}
