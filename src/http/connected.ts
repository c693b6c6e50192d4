// A request's database: it writes only while the client is still there to be answered.

import { ApiError } from '../base/errors.ts'
import type { Route } from '../contract/route.ts'
import { type Awaitable, type Db, from, type Origin, type Owner, type Tx } from '../db/db.ts'
import { DelegatingDb } from '../db/delegating.ts'
import { TracedDb } from '../db/traced.ts'
import { clientKey } from './address.ts'
import type { Exchange } from './exchange.ts'
import { UrgentDb } from './urgent-db.ts'

/** The database of a request. A GET is safe to repeat. A message is kept although its sender has left, once its length says that it came whole. */
export function dbOf(route: Route, exchange: Exchange): Db {
  const { options } = exchange
  const traced = options.tracer ? new TracedDb(options.db, options.tracer, exchange) : options.db
  const db = route.shed === 'last' ? urgentDbOf(traced, exchange) : traced
  if (route.method === 'GET') return db
  const outlives_client = route.raw && exchange.upload!.has_length
  return new ConnectedDb(db, outlives_client ? lasting : exchange.connection, exchange)
}

function urgentDbOf(db: Db, { caller, address }: Exchange): Db {
  return new UrgentDb(db, caller?.kind ?? null, clientKey(address))
}

const lasting = { signal: new AbortController().signal }

/**
 * Bun closes a connection without an answer when another request comes before the answer, and when the last chunk of a
 * body is followed by something that may not follow it. If that arrived together
 * with the request, Bun has seen it before the transaction begins, and then nothing is written.
 */
class ConnectedDb extends DelegatingDb {
  /** A transaction that has begun is completed, also when the client leaves. */
  #begun = false

  /** `origin`: the request, whose trace the jobs of its transactions continue. */
  constructor(
    db: Db,
    private readonly connection: { readonly signal: AbortSignal },
    private readonly origin: Origin,
  ) {
    super(db)
  }

  /** Throws REQUEST_TIMEOUT when the connection has ended before the transaction begins. */
  override write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), work?: (tx: Tx) => Awaitable<T>): Promise<T> {
    if (typeof owner === 'function') return this.db.write((tx) => this.#run(tx, owner))
    return this.db.write(owner, (tx) => this.#run(tx, work!))
  }

  #run<T>(tx: Tx, work: (tx: Tx) => Awaitable<T>): Awaitable<T> {
    if (!this.#begun && this.connection.signal.aborted) throw new ApiError('REQUEST_TIMEOUT')
    this.#begun = true
    return work(from(tx, this.origin))
  }
}
