import { expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { type Db, dueWork, type Tx, unnamedAcrossTenants } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { UrgentDb } from './urgent-db.ts'

const FIND = unnamedAcrossTenants<{ n: number }>(
  'test.find',
  'select count(*) as n from agents where tenant_id = :tenant_id',
)
const FIND_KEY = unnamedAcrossTenants<{ n: number }>(
  'test.find_key',
  'select count(*) as n from agents where tenant_id = :hash',
)
const waiting_max = 2_000
const connections_max = 12
/** On a slow machine some of a flood wait longer than callers do, and end so; what they say of the queue is nothing. */
const too_slow = new Set(['lost', 'outcome_unknown'])

const params = { tenant_id: 'tenant' }
const find = (tx: Pick<Tx, 'one'>) => tx.one(FIND, params)

/** `done`, or the kind of failure. */
function kindOf(acting: Promise<unknown>): Promise<string> {
  return acting.then(
    () => 'done',
    (error) => (error instanceof DbError ? error.kind : String(error)),
  )
}

async function endsOf(flood: readonly Promise<string>[]): Promise<Set<string>> {
  return new Set(await Promise.all(flood)).difference(too_slow)
}

forEachDatabase('The database of a request that is refused last', (databases) => {
  test('takes a write, a read and a statement while the calls of its tenant fill their share of the queue', async () => {
    const { db } = await databases.open()
    const urgent = new UrgentDb(db, 'admin')
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
    expect(await endsOf(calls)).toEqual(new Set(['done', 'busy']))
  })

  test('takes a write and a read while the calls of all tenants fill the whole queue, on SQLite that of writes', async () => {
    const { db } = await databases.open()
    const urgent = new UrgentDb(db, 'admin')
    const calls = Array.from({ length: waiting_max + connections_max }, (_, i) =>
      kindOf(db.write(`tenant ${i}`, find)),
    )
    const refused = kindOf(db.write('one more', find))
    const taken = [kindOf(urgent.write('tenant', find)), kindOf(urgent.read('tenant', find))]
    expect([await refused, ...(await Promise.all(taken))]).toEqual(['busy', 'done', 'done'])
    expect(new Set(await Promise.all(calls)).has('done')).toBe(true)
  })

  test('keeps the calls of an approver apart from those of an admin', async () => {
    const { db } = await databases.open()
    const [admin, approver] = [new UrgentDb(db, 'admin'), new UrgentDb(db, 'approval')]
    const flood = Array.from({ length: waiting_max }, () => kindOf(approver.write('tenant', find)))
    const freeze = kindOf(admin.write('tenant', find))
    expect(await freeze).toBe('done')
    expect(await endsOf(flood)).toEqual(new Set(['done', 'busy']))
  })

  test('looks a key up while strangers with made up keys have taken all the room that they may', async () => {
    const { db } = await databases.open()
    const lookUp = (q: Pick<Db, 'one'>, hash: string) => kindOf(Promise.resolve(q.one(FIND_KEY, { hash })))
    const strangers = Array.from({ length: waiting_max }, (_, i) => lookUp(db, `made up ${i}`))
    const tenants = Array.from({ length: 500 }, (_, i) => kindOf(db.read(`tenant ${i}`, find)))
    expect(await lookUp(new UrgentDb(db, null), 'of an admin')).toBe('done')
    await Promise.all([...strangers, ...tenants])
  })

  if (databases.engine === 'sqlite') return

  test('has its turn while a tenant without a connection has waited for more than 1 s, and others are refused', async () => {
    const { db, clock } = await databases.open()
    const urgent = new UrgentDb(db, 'admin')
    const gate = Promise.withResolvers<void>()
    const holding = Array.from({ length: connections_max }, (_, i) =>
      db.write(`holder ${i}`, () => gate.promise),
    )
    const first = kindOf(db.read('tenant', find))
    clock.advance(1_000)
    const still_waits = kindOf(db.read('another', find))
    clock.advance(1)
    const waits_as_well = kindOf(db.read('a second', find))
    clock.advance(100)
    expect(await kindOf(db.read('a third', find))).toBe('busy')
    expect(await kindOf(db.write({ key: 'a third', batch: { line: 'a third' } }, find))).toBe('busy')
    const frozen = kindOf(urgent.write('a third', find))
    const due = kindOf(db.write(dueWork('a third'), find))
    gate.resolve()
    await Promise.all(holding)
    const all = await Promise.all([first, still_waits, waits_as_well, frozen, due])
    expect(new Set(all)).toEqual(new Set(['done']))
    expect(await kindOf(db.read('a third', find))).toBe('done')
  })

  test('has a connection when the first call of its tenant has waited 750 ms for one, and the next are refused', async () => {
    const { db, clock } = await databases.open()
    const urgent = new UrgentDb(db, 'admin')
    const gate = Promise.withResolvers<void>()
    const holding = Array.from({ length: connections_max }, () => db.write('tenant', () => gate.promise))
    const first = kindOf(db.read('tenant', find))
    clock.advance(750)
    const waits = kindOf(db.read('tenant', find))
    clock.advance(1)
    const seen = kindOf(db.read('tenant', find))
    clock.advance(100)
    expect(await kindOf(db.read('tenant', find))).toBe('busy')
    expect(await kindOf(Promise.resolve(urgent.one(FIND, params)))).toBe('done')
    expect(await kindOf(db.read('another', find))).toBe('done')
    gate.resolve()
    await Promise.all(holding)
    expect(await Promise.all([first, waits, seen])).toEqual(['done', 'done', 'done'])
    expect(await kindOf(db.read('tenant', find))).toBe('done')
  })
})
