// Every named statement, with typical and with hostile parameters, under both kinds of plans of PostgreSQL: none reads a
// table whole, and none walks further than its limits. `npm run plans` does the same with all the rows.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { SQL } from 'bun'
import { sqlitePath } from '../src/db/open.ts'
import { settings } from '../src/settings.ts'
import { TestClock } from './support/clock.ts'
import { forEachDatabase } from './support/databases.ts'
import { PostgresPlans, plan_modes, SqlitePlans } from './support/plan-engines.ts'
import { statistics_file } from './support/plan-statistics.ts'
import {
  allStatements,
  full,
  hundredth,
  of_few_rows,
  reads,
  scenarios,
  seeds,
  slow,
  whole_tables,
} from './support/plans.ts'

const now = new TestClock().now()
const all = allStatements().map((statement) => [statement.name, statement] as const)

test('an exception is for a statement that is there', () => {
  const names = all.map(([name]) => name)
  expect(
    Object.keys({ ...reads, ...whole_tables, ...of_few_rows, ...slow }).filter(
      (name) => !names.includes(name),
    ),
  ).toEqual([])
})

forEachDatabase('Plans', (databases) => {
  if (databases.engine === 'sqlite') {
    let connection: Database
    beforeAll(async () => {
      const { url } = await databases.open()
      connection = new Database(sqlitePath(url)!)
      connection.run('pragma synchronous = off')
      for (const seed of seeds(hundredth, now)) connection.run(seed)
    }, 300_000)
    afterAll(() => connection?.close())
    test.each(all)('%s reads no table whole', (_, statement) => {
      const plans = new SqlitePlans(connection)
      expect(plans.plan(statement)).toEqual([])
      for (const scenario of scenarios(now))
        expect([scenario.name, ...plans.run(statement, scenario).faults]).toEqual([scenario.name])
    })
    return
  }

  let plain: PostgresPlans
  let bound: PostgresPlans
  let believed: { jobs: string }
  beforeAll(async () => {
    const url = await databases.newUrl()
    const seeder = new SQL({ url, max: 1 })
    for (const { tablename } of await seeder.unsafe(
      `select tablename from pg_tables where schemaname = 'public'`,
    ))
      await seeder.unsafe(`alter table ${tablename} set (autovacuum_enabled = false)`)
    for (const seed of seeds(hundredth, now)) await seeder.unsafe(seed)
    await seeder.unsafe('analyze')
    await seeder.unsafe(readFileSync(statistics_file, 'utf8')).simple()
    ;[believed] = await seeder.unsafe(`select reltuples::bigint as jobs from pg_class where relname = 'jobs'`)
    await seeder.close()
    plain = new PostgresPlans(url, null)
    bound = new PostgresPlans(url, settings.DATABASE_ROLE.initial)
    for (const [, statement] of all) {
      await plain.prepare(statement)
      await bound.prepare(statement)
    }
  }, 300_000)
  afterAll(async () => {
    await plain?.close()
    await bound?.close()
  })
  test('the planner believes that all rows are there', () => {
    expect(Number(believed.jobs)).toBeGreaterThan(0.9 * full.jobs)
  })

  test.each(all)('%s reads no more than its limits', async (_, statement) => {
    const faults: string[] = []
    for (const [plans, kind] of [
      [plain, ''],
      [bound, 'row-level security, '],
    ] as const)
      for (const mode of plan_modes) {
        await plans.mode(mode)
        for (const scenario of scenarios(now)) {
          const found = (await plans.run(statement, scenario)).faults
          faults.push(...found.map((fault) => `${kind}${mode}, ${scenario.name}: ${fault}`))
        }
      }
    expect(faults).toEqual([])
  })
})
