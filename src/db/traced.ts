// A database that makes a span of each transaction, and of each single read, that belongs to a trace.

import { systemClock } from '../base/clock.ts'
import type { Tracer } from '../base/tracer.ts'
import {
  type Awaitable,
  type Db,
  from,
  type Origin,
  type Owner,
  type Params,
  type Reader,
  type Statement,
  type Tx,
  turnOf,
} from './db.ts'
import { DelegatingDb } from './delegating.ts'

export class TracedDb extends DelegatingDb {
  /** `origin`: of a request; null where each transaction says its own, and one that says none has no span. */
  constructor(
    db: Db,
    private readonly tracer: Tracer,
    private readonly origin: Origin | null,
  ) {
    super(db)
  }

  override one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null> {
    return this.#single(statement, () => this.db.one(statement, params))
  }

  override all<Row>(statement: Statement<Row>, params: Params): Awaitable<Row[]> {
    return this.#single(statement, () => this.db.all(statement, params))
  }

  override read<T>(
    owner: Owner | ((q: Reader) => Awaitable<T>),
    given?: (q: Reader) => Awaitable<T>,
  ): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#spanned('read', () => this.db.read(turn, work))
  }

  override write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    const told: { origin: Origin | null } = { origin: this.origin }
    const within = async (tx: Tx) => {
      try {
        return await work(this.origin ? from(tx, this.origin) : tx)
      } finally {
        told.origin ??= tx.origin ?? null
      }
    }
    return this.#spanned('write', () => this.db.write(turn, within), told)
  }

  #single<T>({ name }: Statement<unknown>, action: () => Awaitable<T>): Awaitable<T> {
    return this.origin?.traceparent ? this.#spanned(`read ${name}`, async () => action()) : action()
  }

  /** The trace is known once the work has run: the span begins when that did. */
  async #spanned<T>(name: string, action: () => Promise<T>, told = { origin: this.origin }): Promise<T> {
    const began_at = systemClock.monotonic()
    let failed = true
    try {
      const result = await action()
      failed = false
      return result
    } finally {
      const parent = told.origin?.traceparent
      if (parent) {
        const attributes = { 'db.system.name': this.engine === 'sqlite' ? 'sqlite' : 'postgresql' }
        this.tracer.start({ kind: 'client', name, parent, attributes, began_at }).end({}, failed)
      }
    }
  }
}
