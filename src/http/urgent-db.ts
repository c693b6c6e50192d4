// The database of a request that is refused last. Its statements and transactions wait in their own queue, not behind those of
// its tenant: a tenant can be frozen while its own calls fill its share of the queue. On SQLite a commit begins with
// them. An approver's are apart from an admin's, so that neither keeps the other waiting.

import type { CallerKind } from '../contract/caller.ts'
import {
  type Awaitable,
  type Db,
  type Owner,
  type Params,
  type Reader,
  type Statement,
  type Turn,
  type Tx,
  turnOf,
  turnOfStatement,
} from '../db/db.ts'
import { DelegatingDb } from '../db/delegating.ts'

/** The key of the queue for callers of this kind, separate from that of this tenant. Null: the caller is not known. */
export function urgent(kind: CallerKind | null, key: string): string {
  return `urgent ${kind ?? 'anybody'} ${key}`
}

/** `client`: the calls of one take three quarters of the room at most, whatever its keys. */
export class UrgentDb extends DelegatingDb {
  constructor(
    db: Db,
    private readonly kind: CallerKind | null,
    private readonly client: string | null = null,
  ) {
    super(db)
  }

  override one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null> {
    if (this.#waitsForNothing) return super.one(statement, params)
    return this.read(turnOfStatement(statement, params), (q) => q.one(statement, params))
  }

  override all<Row>(statement: Statement<Row>, params: Params): Awaitable<Row[]> {
    if (this.#waitsForNothing) return super.all(statement, params)
    return this.read(turnOfStatement(statement, params), (q) => q.all(statement, params))
  }

  override read<T>(
    owner: Owner | ((q: Reader) => Awaitable<T>),
    given?: (q: Reader) => Awaitable<T>,
  ): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return super.read(this.#beside(turn), work)
  }

  override write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return super.write(this.#beside(turn), work)
  }

  /** A single read on SQLite. */
  get #waitsForNothing(): boolean {
    return this.engine === 'sqlite'
  }

  /** In a transaction of its own. */
  #beside({ batch: _, key, group, ...turn }: Turn): Turn {
    const name = group ?? this.client
    const of_group = name === null ? {} : { group: urgent(this.kind, name) }
    return { ...turn, ...of_group, key: urgent(this.kind, key), patient: true, urgent: true }
  }
}
