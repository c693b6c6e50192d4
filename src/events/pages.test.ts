import { expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench } from '../../test/support/job-bench.ts'
import { declareEvents, service_cause } from '../contract/event.ts'
import { Filter } from '../contract/wanted.ts'
import type { Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { pageOf } from './pages.ts'

const types = declareEvents({
  'thing.made': { about: 'A thing was made.', subject: 'thing', data: {} },
  'thing.gone': { about: 'A thing is gone.', subject: 'thing', data: {} },
})
const either = Object.keys(types).map((type) => new Filter({ type }))

forEachDatabase('A page of alternatives', (databases) => {
  async function tenant() {
    const bench = await Bench.open(databases)
    const { db, dependencies } = bench
    const { tenant_id } = await bench.tenant('free')
    const happen = async (...names: (keyof typeof types)[]) => {
      await db.write(tenant_id, async (tx) => {
        for (const name of names)
          await journal.emit(tx, types[name], {
            ...{ tenant_id, cause: service_cause, subject_id: 't', data: {} },
          })
      })
      await dependencies.journal.number(tenant_id)
    }
    const page = async (q: Reader, after: number, rows_max = 1) => {
      const { events, reached } = await pageOf(
        q,
        tenant_id,
        { filters: either, viewer: null },
        { after, rows_max },
      )
      return [events.map(({ seq }) => seq), reached]
    }
    return { db, happen, page }
  }

  test('passes over no event that comes between two of its scans', async () => {
    const { db, happen, page } = await tenant()
    await happen('thing.made')
    let scans = 0
    const all: Reader['all'] = async (statement, params) => {
      scans += 1
      // Both come behind the first scan: one that this scan would have found, then one for the second scan.
      if (scans === 2) await happen('thing.made', 'thing.gone')
      return db.all(statement, params)
    }
    const racing = new Proxy(db as Reader, {
      get: (target, name) => {
        const member = name === 'all' ? all : Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
    expect(await page(racing, 1)).toEqual([[], 1])
    expect(scans).toBe(2)
    expect(await page(db, 1)).toEqual([[2], 2])
    expect(await page(db, 2)).toEqual([[3], 3])
  })

  test('goes on behind the last event when none matches, also when it began behind a number that there is not', async () => {
    const { db, happen, page } = await tenant()
    await happen('thing.made', 'thing.gone', 'thing.made')
    expect(await page(db, 0, 2)).toEqual([[1, 2], 2])
    expect(await page(db, 0, 9)).toEqual([[1, 2, 3], 3])
    expect(await page(db, 3)).toEqual([[], 3])
    expect(await page(db, 700)).toEqual([[], 3])
  })
})
