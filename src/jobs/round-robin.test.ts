import { describe, expect, test } from 'bun:test'
import type { Db, Params, Statement } from '../db/db.ts'
import { ConcurrencyLimiter, lane_max } from './concurrency.ts'
import { RoundRobin } from './round-robin.ts'

const now = 1_000

function refused(error: unknown): never {
  throw error
}

/** A statement that was run, in order. */
interface Asked {
  name: string
  params: Params
}

/** Tenants that all have as much due work, for as many destinations, as is asked for. */
class Crowd {
  readonly asked: Asked[] = []

  constructor(
    readonly tenants: number,
    readonly rows = Number.POSITIVE_INFINITY,
  ) {}

  get db(): Db {
    return { all: (statement: Statement, params: Params) => this.#all(statement, params) } as unknown as Db
  }

  #all({ name }: Statement, params: Params): object[] {
    this.asked.push({ name, params })
    const rows_max = params.rows_max as number
    if (name === 'jobs.tenants') {
      const begin = params.after_tenant_id === '' ? 0 : Number(params.after_tenant_id) + 1
      return range(begin, Math.min(this.tenants, begin + rows_max)).map((id) => {
        return { tenant_id: id, tenant_status: 'active', next_at: now }
      })
    }
    if (name === 'jobs.lanes') {
      const begin = Number(params.from_destination)
      return range(begin, begin + rows_max).map((destination) => ({ destination, next_at: now }))
    }
    const { tenant_id } = params
    return range(0, Math.min(rows_max, this.rows)).map((source_id) => ({ tenant_id, source_id }))
  }

  /** The values of one parameter in the calls of one statement. */
  values(name: string, param: string): unknown[] {
    return this.asked.filter((asked) => asked.name === name).map(({ params }) => params[param])
  }
}

/** Numbers as ids that sort like them. */
function range(from: number, to: number): string[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => String(from + i).padStart(6, '0'))
}

describe('one call', () => {
  test('passes 1,000 tenants, and reads 64 of those with due work, 16 rows each', async () => {
    const crowd = new Crowd(2_000, 15)
    await new RoundRobin(crowd.db, refused).next(now, new ConcurrencyLimiter())
    expect(crowd.values('jobs.tenants', 'rows_max')).toEqual([1_000])
    expect(crowd.values('jobs.due_of_tenant', 'tenant_id')).toEqual(range(0, 64))
    expect(new Set(crowd.values('jobs.due_of_tenant', 'rows_max'))).toEqual(new Set([16]))
    expect(crowd.values('jobs.lanes', 'tenant_id')).toEqual([])
  })

  const shares: [tenants: number, walked: number, lanes: number, reads: number][] = [
    [1, 1, 500, 32],
    [2, 2, 250, 16],
    [31, 31, 16, 1],
    [32, 32, 15, 1],
    [33, 32, 15, 1],
  ]
  test.each(shares)(
    'reads the destinations of %d tenants with more: of %d, %d each, %d read',
    async (...row) => {
      const [tenants, walked, lanes, reads] = row
      const crowd = new Crowd(tenants)
      await new RoundRobin(crowd.db, refused).next(now, new ConcurrencyLimiter())
      expect(crowd.values('jobs.lanes', 'tenant_id')).toEqual(range(0, walked))
      expect(new Set(crowd.values('jobs.lanes', 'rows_max'))).toEqual(new Set([lanes]))
      expect(crowd.values('jobs.due_in_lane', 'tenant_id')).toHaveLength(walked * reads)
      expect(new Set(crowd.values('jobs.due_in_lane', 'rows_max'))).toEqual(new Set([lane_max]))
    },
  )

  test('reads no destination that has no free permit', async () => {
    const crowd = new Crowd(1)
    const limiter = new ConcurrencyLimiter()
    for (const destination of range(0, 40)) limiter.acquire({ tenant_id: '000000', destination })
    await new RoundRobin(crowd.db, refused).next(now, limiter)
    expect(crowd.values('jobs.due_in_lane', 'destination')).toEqual(range(40, 72))
  })

  test('reads nothing of tenants whose jobs are not due, or are to be paused', async () => {
    const ahead = [
      { tenant_id: 'a', tenant_status: 'active', next_at: now + 1 },
      { tenant_id: 'b', tenant_status: 'pending_deletion', next_at: now },
      { tenant_id: 'c', tenant_status: null, next_at: now },
    ]
    const names: string[] = []
    const all = ({ name }: Statement) => {
      names.push(name)
      return name === 'jobs.tenants' ? ahead : []
    }
    expect(
      await new RoundRobin({ all } as unknown as Db, refused).next(now, new ConcurrencyLimiter()),
    ).toEqual([])
    expect(names).toEqual(['jobs.tenants'])
  })
})

describe('a read that fails', () => {
  /** Fails where `fails` says so. */
  function failing(crowd: Crowd, fails: (asked: Asked) => boolean): Db {
    const all = async (statement: Statement, params: Params) => {
      if (fails({ name: statement.name, params })) throw new Error(`${statement.name} fails`)
      return crowd.db.all(statement, params)
    }
    return { all } as unknown as Db
  }

  test('costs what it would have found, and is reported', async () => {
    const crowd = new Crowd(3)
    const errors: unknown[] = []
    const db = failing(
      crowd,
      ({ name, params }) =>
        (name === 'jobs.due_of_tenant' && params.tenant_id === '000001') ||
        (name === 'jobs.lanes' && params.tenant_id === '000002') ||
        (name === 'jobs.due_in_lane' && params.destination === '000003'),
    )
    const found = await new RoundRobin(db, (error) => errors.push(error)).next(now, new ConcurrencyLimiter())
    expect(new Set(found.map(({ tenant_id }) => tenant_id))).toEqual(new Set(['000000', '000002']))
    expect(errors.map(String)).toEqual([
      ...['jobs.due_of_tenant', 'jobs.due_in_lane', 'jobs.lanes'].map((name) => `Error: ${name} fails`),
    ])
  })

  const all: [name: string, after: string, lane: string][] = [
    ['jobs.due_of_tenant', '', ''],
    ['jobs.lanes', '000031', ''],
    ['jobs.due_in_lane', '000031', ''],
    ['none', '000031', '000001'],
  ]
  test.each(all)('as all of %s do, keeps the turns of what it did not find', async (failed, after, lane) => {
    const crowd = new Crowd(40)
    let fails = true
    const errors: unknown[] = []
    const turns = new RoundRobin(
      failing(crowd, ({ name }) => fails && name === failed),
      (error) => errors.push(error),
    )
    await turns.next(now, new ConcurrencyLimiter())
    expect(new Set(errors.map(String))).toEqual(new Set(failed === 'none' ? [] : [`Error: ${failed} fails`]))
    fails = false
    for (let i = 0; i < 2; i++) await turns.next(now, new ConcurrencyLimiter())
    expect(crowd.values('jobs.tenants', 'after_tenant_id')[1]).toEqual(after)
    const lanes = crowd.asked.filter(
      ({ name, params }) => name === 'jobs.lanes' && params.tenant_id === '000000',
    )
    expect(lanes.at(-1)!.params.from_destination).toBe(lane)
  })
})

describe('the next call', () => {
  const cycles: [what: string, crowd: Crowd, after: string[]][] = [
    ['the last tenant that was read', new Crowd(2_000, 1), ['', '000063', '000127']],
    ['the last one that was walked', new Crowd(2_000), ['', '000031', '000063']],
    ['none, where the cycle has ended', new Crowd(64, 1), ['', '', '']],
    ['none, where no tenant is left', new Crowd(32), ['', '000031', '']],
  ]
  test.each(cycles)('goes on after %s', async (_, crowd, after) => {
    const turns = new RoundRobin(crowd.db, refused)
    for (const _ of after) await turns.next(now, new ConcurrencyLimiter())
    expect(crowd.values('jobs.tenants', 'after_tenant_id')).toEqual(after)
  })

  test('goes on, for a tenant, at the destination that was not read, or not passed', async () => {
    const crowd = new Crowd(1)
    const turns = new RoundRobin(crowd.db, refused)
    await turns.next(now, new ConcurrencyLimiter())
    const busy = { hasPermitFor: () => true, mayAcquire: () => false } as unknown as ConcurrencyLimiter
    for (let i = 0; i < 2; i++) await turns.next(now, busy)
    // 32 were read; then all destinations are busy and passed over: 499, because the 500th is the next.
    expect(crowd.values('jobs.lanes', 'from_destination')).toEqual(['', ...range(32, 33), ...range(531, 532)])
  })

  test('looks at no destination of a tenant that has no permit left, except for its timeouts', async () => {
    const crowd = new Crowd(1)
    const turns = new RoundRobin(crowd.db, refused)
    const limiter = new ConcurrencyLimiter()
    for (const destination of range(0, 256)) limiter.acquire({ tenant_id: '000000', destination })
    await turns.next(now, limiter)
    expect(crowd.values('jobs.lanes', 'from_destination')).toEqual([])
    expect(crowd.values('jobs.due_in_lane', 'destination')).toEqual([''])
    limiter.release({ tenant_id: '000000', destination: range(0, 1)[0]! })
    await turns.next(now, limiter)
    expect(crowd.values('jobs.lanes', 'from_destination')).toEqual([''])
  })

  const remembered: [tenants: number, from: string][] = [
    [1_000, '000001'],
    [1_001, ''],
  ]
  test.each(remembered)(
    'remembers where 1,000 tenants were: of %d, the first begins at "%s"',
    async (...row) => {
      const [tenants, from] = row
      const crowd = new Crowd(tenants)
      const turns = new RoundRobin(crowd.db, refused)
      // 32 at a time, and the rest at the end of a cycle.
      for (let call = 0; call < Math.ceil(tenants / 32); call++)
        await turns.next(now, new ConcurrencyLimiter())
      crowd.asked.length = 0
      await turns.next(now, new ConcurrencyLimiter())
      expect(crowd.values('jobs.lanes', 'from_destination')[0]).toBe(from)
    },
  )
})
