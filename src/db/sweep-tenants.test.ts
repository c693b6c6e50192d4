import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { type Due, DueLists } from './sweep-tenants.ts'

const rows_max = 4
const away = new Error('its server is away')

/** Rows of a list, in the order in which they are due: of a tenant, since a time. */
type Row = [tenant_id: string, due_at: number]

function listOf(rows: Row[]) {
  const clock = new TestClock()
  const errors: unknown[] = []
  const lists = new DueLists(clock, (error) => errors.push(error))
  const failing = new Set<string>()
  const turns: string[] = []
  const list = (from: number): Due[] => {
    const first = rows.filter(([, due_at]) => due_at >= from).slice(0, rows_max)
    return [...Map.groupBy(first, ([tenant_id]) => tenant_id)].map(([tenant_id, own]) => ({
      ...{ tenant_id, due: own.length, until: own.at(-1)![1] },
    }))
  }
  /** Touches `most` rows of a tenant. */
  const step = (most = 100) =>
    lists.of('rows').each(list, rows_max, async ({ tenant_id }) => {
      turns.push(tenant_id)
      if (failing.has(tenant_id)) throw away
      const own = rows.filter((row) => row[0] === tenant_id).slice(0, most)
      for (const row of own) rows.splice(rows.indexOf(row), 1)
      return own.length
    })
  const all = async (most?: number) => {
    for (let steps = 1; ; steps++) if (!(await step(most)).more) return steps
  }
  return { clock, errors, failing, turns, rows, step, all }
}

const rowsOf = (tenant_id: string, times: number[]): Row[] => times.map((due_at) => [tenant_id, due_at])

describe('A list of due rows', () => {
  test('goes on behind the rows of a tenant that fails, which has one turn until its pause is over', async () => {
    const { failing, all, turns, rows, errors, clock } = listOf([
      ...rowsOf('a', [1, 2, 3, 4, 5, 6, 7, 8, 9]),
      ...rowsOf('b', [10, 11]),
    ])
    failing.add('a')
    await all()
    expect([turns, errors]).toEqual([['a', 'b'], [away]])
    clock.advance(4_999)
    await all()
    expect([turns, rows.length]).toEqual([['a', 'b'], 9])
    failing.clear()
    clock.advance(1)
    await all()
    expect(rows).toEqual([])
  })

  test('passes any number of rows that are due since one time', async () => {
    const { failing, all, rows } = listOf([
      ...rowsOf('a', [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]),
      ...rowsOf('b', [3]),
    ])
    failing.add('a')
    await all()
    expect(rows.filter(([tenant_id]) => tenant_id === 'b')).toEqual([])
  })

  test('begins again at once for rows of others that a step has left before those that it passed', async () => {
    const { failing, all, rows } = listOf([
      ...rowsOf('b', [1, 1]),
      ...rowsOf('a', [2, 3, 4, 5, 6, 7]),
      ...rowsOf('c', [8]),
    ])
    failing.add('a')
    await all(1)
    expect(rows.map(([tenant_id]) => tenant_id)).toEqual(Array(6).fill('a'))
  })

  test('has no more for those that fail alone, however many rows are due', async () => {
    const { failing, all, turns } = listOf(rowsOf('a', [1, 2, 3, 4, 5, 6]))
    failing.add('a')
    await all()
    expect(await all()).toBeLessThan(5)
    expect(turns).toEqual(['a'])
  })

  test('leaves a tenant alone for four times as long as it took to fail', async () => {
    const { clock, step, failing, turns } = listOf(rowsOf('a', [1]))
    failing.add('a')
    const took_ms = 60_000
    const push = turns.push.bind(turns)
    turns.push = (...names) => {
      clock.advance(took_ms)
      return push(...names)
    }
    await step()
    clock.advance(4 * took_ms - 1)
    await step()
    expect(turns).toHaveLength(1)
    clock.advance(1)
    await step()
    expect(turns).toHaveLength(2)
  })

  test('gives each a turn of its own where all of them together fail', async () => {
    const errors: unknown[] = []
    const lists = new DueLists(new TestClock(), (error) => errors.push(error))
    const due = ['a', 'b', 'c'].map((tenant_id) => ({ tenant_id, due: 1, until: 1 }))
    const work = async ({ tenant_id }: Due) => {
      if (tenant_id === 'b') throw away
      return 1
    }
    const together = async () => {
      throw away
    }
    const { touched } = await lists.of('rows').each(() => due, rows_max, work, together)
    expect([touched, errors]).toEqual([2, [away]])
  })
})
