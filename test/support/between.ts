// Changes that come between two statements of a transaction, as those of other calls do: on PostgreSQL when they commit
// meanwhile, on both engines when they share the transaction.

import { spyOn } from 'bun:test'
import { type Awaitable, type Db, type Params, type Statement, type Tx, turnOf } from '../../src/db/db.ts'

/** Runs before the next statement of this name. */
export interface Between {
  name: string
  change(tx: Tx): Promise<unknown>
}

/** Each runs once, in their order, in the transactions of the work. */
export async function withChangesBetween<T>(
  db: Db,
  changes: readonly Between[],
  work: () => Promise<T>,
): Promise<T> {
  const left = [...changes]
  const write = db.write.bind(db)
  const writing = spyOn(db, 'write').mockImplementation(((owner: never, given: never) => {
    const [turn, run] = turnOf<(tx: Tx) => Awaitable<unknown>>(owner, given)
    return write(turn, (tx) => run(changedBetween(tx, left)))
  }) as unknown as Db['write'])
  try {
    const result = await work()
    if (left.length > 0) throw new Error(`never came: ${left.map(({ name }) => name)}`)
    return result
  } finally {
    writing.mockRestore()
  }
}

function changedBetween(tx: Tx, left: Between[]): Tx {
  const one = async (statement: Statement<unknown>, params: Params) => {
    if (left[0]?.name === statement.name) await left.shift()!.change(tx)
    return tx.one(statement, params)
  }
  return new Proxy(tx, {
    get(_, name) {
      if (name === 'one') return one
      const value = Reflect.get(tx, name)
      return typeof value === 'function' ? value.bind(tx) : value
    },
  })
}
