// A request's database: it writes only while the client is still there to be answered.

import { ApiError } from '../base/errors.ts'
import {
  type Awaitable,
  type Db,
  type Owner,
  type Params,
  type Reader,
  type Statement,
  type StoredCounter,
  type Tx,
  turnOf,
} from '../db/db.ts'

/**
 * Bun closes a connection without an answer when another request comes before the answer, and when the last chunk of a
 * body is followed by something that may not follow it. It has seen that before the transaction begins if it came at
 * once with the request: then there is no effect either.
 */
export class ConnectedDb implements Db {
  /** A transaction that has begun is completed, also when the client leaves. */
  #begun = false

  constructor(
    protected readonly db: Db,
    private readonly connection: { readonly signal: AbortSignal },
  ) {}

  get engine(): Db['engine'] {
    return this.db.engine
  }

  get clock(): Db['clock'] {
    return this.db.clock
  }

  one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null> {
    return this.db.one(statement, params)
  }

  all<Row>(statement: Statement<Row>, params: Params): Awaitable<Row[]> {
    return this.db.all(statement, params)
  }

  read<T>(owner: Owner | ((q: Reader) => Awaitable<T>), work?: (q: Reader) => Awaitable<T>): Promise<T> {
    return this.db.read(...turnOf(owner, work))
  }

  /** Throws REQUEST_TIMEOUT when the connection has ended before the transaction begins. */
  write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), work?: (tx: Tx) => Awaitable<T>): Promise<T> {
    if (typeof owner === 'function') return this.db.write((tx) => this.#run(tx, owner))
    return this.db.write(owner, (tx) => this.#run(tx, work!))
  }

  #run<T>(tx: Tx, work: (tx: Tx) => Awaitable<T>): Awaitable<T> {
    if (!this.#begun && this.connection.signal.aborted) throw new ApiError('REQUEST_TIMEOUT')
    this.#begun = true
    return work(tx)
  }

  storedBytes(tenant_id: string, counter: StoredCounter): number {
    return this.db.storedBytes(tenant_id, counter)
  }

  maintain(): Promise<void> {
    return this.db.maintain()
  }

  trouble(): ReturnType<Db['trouble']> {
    return this.db.trouble()
  }

  faults(): Promise<string[]> {
    return this.db.faults()
  }

  durability(): ReturnType<Db['durability']> {
    return this.db.durability()
  }

  notify(text: string): Promise<void> {
    return this.db.notify(text)
  }

  onChange(listener: (key: string) => void): void {
    this.db.onChange(listener)
  }

  onStatement(listener: ((name: string) => void) | null): void {
    this.db.onStatement(listener)
  }

  close(): Promise<void> {
    return this.db.close()
  }
}
