// The database of a request that is refused last. Its statements and transactions wait beside those of its tenant, not
// behind them: a tenant can be frozen while its own calls fill its share of the queue.

import {
  type Awaitable,
  type Owner,
  type Params,
  type Reader,
  type Statement,
  type Turn,
  type Tx,
  turnOf,
} from '../db/db.ts'
import { ConnectedDb } from './connected.ts'

/** The key of the line beside that of this tenant. */
export function urgent(key: string): string {
  return `urgent ${key}`
}

export class UrgentDb extends ConnectedDb {
  override one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null> {
    const turn = this.#turnOf(params)
    return turn ? super.read(turn, (q) => q.one(statement, params)) : super.one(statement, params)
  }

  override all<Row>(statement: Statement<Row>, params: Params): Awaitable<Row[]> {
    const turn = this.#turnOf(params)
    return turn ? super.read(turn, (q) => q.all(statement, params)) : super.all(statement, params)
  }

  override read<T>(
    owner: Owner | ((q: Reader) => Awaitable<T>),
    given?: (q: Reader) => Awaitable<T>,
  ): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return super.read(beside(turn), work)
  }

  override write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return super.write(beside(turn), work)
  }

  /** Null for a statement that waits for nothing, as on SQLite, and for one that is not a tenant's. */
  #turnOf({ tenant_id }: Params): Turn | null {
    return this.engine === 'postgres' && typeof tenant_id === 'string' ? { key: urgent(tenant_id) } : null
  }
}

/** In a transaction of its own. */
function beside({ batch: _, ...turn }: Turn): Turn {
  return { ...turn, key: urgent(turn.key) }
}
