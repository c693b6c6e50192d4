import { expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { type Tx, unnamed } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { UrgentDb } from './urgent-db.ts'

const FIND = unnamed<{ n: number }>(
  'test.find',
  'select count(*) as n from agents where tenant_id = :tenant_id',
)
const waiting_max = 2_000
const connections_max = 12

const params = { tenant_id: 'tenant' }
const find = (tx: Pick<Tx, 'one'>) => tx.one(FIND, params)

/** `done`, or the kind of failure. */
function kindOf(acting: Promise<unknown>): Promise<string> {
  return acting.then(
    () => 'done',
    (error) => (error instanceof DbError ? error.kind : String(error)),
  )
}

function connected() {
  return { signal: new AbortController().signal }
}

forEachDatabase('The database of a request that is refused last', (databases) => {
  test('takes a write, a read and a statement while the calls of its tenant fill their share of the queue', async () => {
    const { db } = await databases.open()
    const urgent = new UrgentDb(db, connected())
    const calls = Array.from({ length: waiting_max / 2 + connections_max }, () =>
      kindOf(db.write('tenant', find)),
    )
    const refused = kindOf(db.write('tenant', find))
    const taken = [
      kindOf(urgent.write('tenant', find)),
      kindOf(urgent.write({ key: 'tenant', batch: { line: 'tenant' } }, find)),
      kindOf(urgent.read('tenant', find)),
      kindOf(Promise.resolve(urgent.one(FIND, params))),
      kindOf(Promise.resolve(urgent.all(FIND, params))),
    ]
    expect([await refused, ...(await Promise.all(taken))]).toEqual(['busy', ...taken.map(() => 'done')])
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['done', 'busy']))
  })

  if (databases.engine === 'sqlite') return

  test('has a connection when the first call of its tenant has waited 750 ms for one, and the next are refused', async () => {
    const { db, clock } = await databases.open()
    const urgent = new UrgentDb(db, connected())
    const gate = Promise.withResolvers<void>()
    const holding = Array.from({ length: connections_max }, () => db.write('tenant', () => gate.promise))
    clock.advance(749)
    const waits = kindOf(db.read('tenant', find))
    clock.advance(1)
    expect(await kindOf(db.read('tenant', find))).toBe('busy')
    expect(await kindOf(Promise.resolve(urgent.one(FIND, params)))).toBe('done')
    expect(await kindOf(db.read('another', find))).toBe('done')
    gate.resolve()
    await Promise.all(holding)
    expect(await waits).toBe('done')
    expect(await kindOf(db.read('tenant', find))).toBe('done')
  })
})
