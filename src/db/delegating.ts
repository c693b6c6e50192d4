// A database in front of another: it hands everything on, and is there to be extended.

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
} from './db.ts'

export class DelegatingDb implements Db {
  constructor(protected readonly db: Db) {}

  /** The database that this one, or what it is in front of, hands everything to. */
  static behind(db: Db): Db {
    return db instanceof DelegatingDb ? DelegatingDb.behind(db.db) : db
  }

  get engine(): Db['engine'] {
    return this.db.engine
  }

  get clock(): Db['clock'] {
    return this.db.clock
  }

  get is_away(): boolean {
    return this.db.is_away
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

  write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), work?: (tx: Tx) => Awaitable<T>): Promise<T> {
    return this.db.write(...turnOf(owner, work))
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

  gauges(): ReturnType<Db['gauges']> {
    return this.db.gauges()
  }

  takeRole(role: string): Promise<boolean> {
    return this.db.takeRole(role)
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
