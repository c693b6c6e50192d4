import { expect, test } from 'bun:test'
import { forEachDatabase, type TestDatabases } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { until } from '../../test/support/patience.ts'
import { declareEvents, eventsKey, service_cause } from '../contract/event.ts'
import type { Follows } from '../contract/feature.ts'
import type { Db } from '../db/db.ts'
import { JournalKeeper } from './keeper.ts'
import * as journal from './service.ts'

const types = declareEvents({
  'thing.made': { about: 'A thing was made.', subject: 'thing', data: {} },
})

const far = Number.POSITIVE_INFINITY

/** A database that holds a statement: by default the look for tenants that other nodes have left. */
class HeldLooks {
  begun = Promise.withResolvers<void>()
  gate = Promise.withResolvers<void>()

  constructor(private readonly held = 'journal.next_unnumbered_tenant') {}

  over(db: Db): Db {
    const hold = async (name: string) => {
      if (name !== this.held) return
      this.begun.resolve()
      await this.gate.promise
    }
    const one: Db['one'] = async (statement, params) => {
      await hold(statement.name)
      return db.one(statement, params)
    }
    const all: Db['all'] = async (statement, params) => {
      await hold(statement.name)
      return db.all(statement, params)
    }
    return new Proxy(db, {
      get: (target, name) => {
        if (name === 'one') return one
        if (name === 'all') return all
        const member = Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }
}

async function keeperOf(databases: TestDatabases, follow: Follows, wrap = (db: Db) => db, internal = false) {
  const bench = await Bench.open(databases)
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const keeper = new JournalKeeper({
    db: wrap(bench.db),
    follows: [follow],
    internal,
    held: () => false,
    onError,
  })
  keeper.connect(bench.dependencies)
  const happen = (tenant_id: string) =>
    bench.db.write(async (tx) =>
      journal.emit(tx, types['thing.made'], { tenant_id, cause: service_cause, subject_id: 't', data: {} }),
    )
  return { bench, keeper, errors, happen }
}

forEachDatabase('The keeper of the journal', (databases) => {
  test('keeps a change that comes while it looks for what other nodes have left', async () => {
    const kept: string[] = []
    const held = new HeldLooks()
    const step = async (_db: Db, _dependencies: object, tenant_id: string) => {
      kept.push(tenant_id)
      return { more: false }
    }
    const { keeper } = await keeperOf(databases, { step }, (db) => held.over(db))
    keeper.changed(eventsKey('ten_before'))
    const ticking = keeper.tick(0)
    await held.begun.promise
    keeper.changed(eventsKey('ten_meanwhile'))
    held.gate.resolve()
    await ticking
    expect(kept).toEqual(['ten_before'])
    await keeper.tick(0)
    expect(kept).toEqual(['ten_before', 'ten_meanwhile'])
  })

  test('numbers in one tick the events of more tenants than one look finds, though those of the first fail', async () => {
    const { bench, keeper, errors, happen } = await keeperOf(databases, {})
    const { tenant_id } = await bench.tenant('free')
    await happen(tenant_id)
    // Their heads cannot be made: there are no such tenants.
    const failing = Array.from({ length: journal.tenants_a_look_max + 1 }, (_, n) => `ten_00${1_000 + n}`)
    for (const unknown of failing) {
      expect(unknown < tenant_id).toBe(true)
      await happen(unknown)
    }
    await keeper.tick(far)
    expect(await journal.lastSeq(bench.db, tenant_id)).toBe(1)
    expect(errors.length).toBe(failing.length)
    await happen(tenant_id)
    for (let tick = 0; tick < 2; tick++) await keeper.tick(0)
    expect(await journal.lastSeq(bench.db, tenant_id)).toBe(2)
  })

  test('does all that follows in one tick, and one round when its time is over', async () => {
    let left = 5
    const step = async () => ({ more: --left > 0 })
    const { keeper } = await keeperOf(databases, { step })
    keeper.changed(eventsKey('ten_1'))
    await keeper.tick(0)
    expect(left).toBe(4)
    await keeper.tick(far)
    expect(left).toBe(0)
  })

  test('does not go on for what changes while it ticks', async () => {
    let steps = 0
    const step = async (): Promise<{ more: boolean }> => {
      steps += 1
      keeper.changed(eventsKey('ten_1'))
      return { more: false }
    }
    const { keeper } = await keeperOf(databases, { step })
    keeper.changed(eventsKey('ten_1'))
    await keeper.tick(far)
    await keeper.tick(far)
    expect(steps).toBe(2)
  })

  test('tries again in the next round what has failed', async () => {
    let fails = true
    const step = async () => {
      if (fails) throw new Error('away')
      return { more: false }
    }
    const { keeper, errors } = await keeperOf(databases, { step })
    keeper.changed(eventsKey('ten_1'))
    await keeper.tick(far)
    expect(errors.length).toBe(1)
    fails = false
    await keeper.tick(far)
    await keeper.tick(far)
    expect(errors.length).toBe(1)
  })

  test('keeps a tenant beside many that fail, of which a round tries few, and all of them once they do not', async () => {
    const steps: string[] = []
    let is_away = true
    const step = async (_db: Db, _dependencies: object, tenant_id: string) => {
      steps.push(tenant_id)
      if (is_away && tenant_id.startsWith('ten_away')) throw new Error('its server is away')
      return { more: false }
    }
    const { keeper, errors } = await keeperOf(databases, { step })
    const away = Array.from({ length: 40 }, (_, n) => `ten_away_${10 + n}`)
    for (const tenant_id of away) keeper.changed(eventsKey(tenant_id))
    const round = async () => {
      steps.length = 0
      await keeper.tick(0)
      return [...steps]
    }
    expect((await round()).toSorted()).toEqual(away.slice(0, 4))
    for (let n = 0; n < 3; n++) {
      keeper.changed(eventsKey('ten_here'))
      const kept = await round()
      expect([kept.includes('ten_here'), kept.length]).toEqual([true, 5])
    }
    for (let n = 0; n < 8; n++) await round()
    expect(new Set(await round()).size).toBe(4)
    expect(errors).toHaveLength(13 * 4)
    is_away = false
    expect((await round()).toSorted()).toEqual(away)
    expect(await round()).toEqual([])
  })

  test('settles what follows for a tenant that has failed before', async () => {
    let failures = 1
    let steps = 0
    const step = async () => {
      if (failures-- > 0) throw new Error('its server is away')
      steps += 1
      return { more: false }
    }
    const { keeper } = await keeperOf(databases, { step })
    for (let n = 0; n < 2; n++) {
      keeper.changed(eventsKey('ten_1'))
      await keeper.settle(far)
    }
    expect(steps).toBe(1)
  })

  test('ends when the round that is under way has ended, and begins no other', async () => {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    let steps = 0
    const step = async () => {
      steps += 1
      begun.resolve()
      await gate.promise
      return { more: true }
    }
    const { keeper } = await keeperOf(databases, { step })
    keeper.changed(eventsKey('ten_1'))
    const ticking = keeper.tick(far)
    await begun.promise
    let is_stopped = false
    const stopping = keeper.stop().then(() => {
      is_stopped = true
    })
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(is_stopped).toBe(false)
    gate.resolve()
    await Promise.all([ticking, stopping])
    expect(steps).toBe(1)
  })

  test('gives numbers while it removes old events', async () => {
    const held = new HeldLooks('journal.tenants_due')
    const { bench, keeper, happen } = await keeperOf(databases, {}, (db) => held.over(db), true)
    const { tenant_id } = await bench.tenant('free')
    keeper.start()
    await held.begun.promise
    await happen(tenant_id)
    keeper.changed(eventsKey(tenant_id))
    await until(async () => (await journal.lastSeq(bench.db, tenant_id)) === 1)
    held.gate.resolve()
    await keeper.stop()
  })

  test('numbers a last time once those that write have ended', async () => {
    const { bench, keeper, happen } = await keeperOf(databases, {}, (db) => db, true)
    const { tenant_id } = await bench.tenant('free')
    const writers = Promise.withResolvers<void>()
    const stopping = keeper.stop(writers.promise)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    await happen(tenant_id)
    keeper.changed(eventsKey(tenant_id))
    writers.resolve()
    await stopping
    expect(await journal.lastSeq(bench.db, tenant_id)).toBe(1)
  })
})
