// A tenant whose rows no transaction can change, as while its server of a distributed database is away.

import { spyOn } from 'bun:test'
import { type Awaitable, type Db, type Params, type Statement, type Tx, turnOf } from '../../src/db/db.ts'

/** Statements of this tenant fail within transactions, until `mockRestore`. */
export function failStatementsOf(db: Db, tenant_id: string): { mockRestore(): void } {
  const write = db.write.bind(db)
  return spyOn(db, 'write').mockImplementation(((owner: never, given: never) => {
    const [turn, run] = turnOf<(tx: Tx) => Awaitable<unknown>>(owner, given)
    return write(turn, (tx) => run(failing(tx, tenant_id)))
  }) as unknown as Db['write'])
}

function failing(tx: Tx, tenant_id: string): Tx {
  return new Proxy(tx, {
    get(_, name) {
      const value = Reflect.get(tx, name)
      if (typeof value !== 'function') return value
      if (name !== 'one' && name !== 'all' && name !== 'run') return value.bind(tx)
      return async (statement: Statement<unknown>, params: Params) => {
        if (params.tenant_id === tenant_id) throw new Error('its server is away')
        return Reflect.apply(value, tx, [statement, params])
      }
    },
  })
}
