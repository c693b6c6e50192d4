import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { postgres_session } from '../db/connection-settings.ts'
import { statements } from '../db/db.ts'
import { postgresText } from '../db/dialect.ts'
import './store.ts'
import './wake-store.ts'

interface Step {
  'Relation Name'?: string
  'Index Cond'?: string
  Plans?: Step[]
}

/** The conditions by which indexes of the table of jobs are walked. */
function conditionsOf(step: Step): string[] {
  const own = step['Relation Name'] === 'jobs' ? [step['Index Cond'] ?? ''] : []
  return [...own, ...(step.Plans ?? []).flatMap(conditionsOf)].filter((condition) => condition !== '')
}

// Until 17 PostgreSQL that knows nothing of the table would read all rows of tenant and kind for a list of ids, and compare
// each with the list. The tests run on a later one, which does not, so it is the conditions that are judged.
onPostgres('On PostgreSQL a list of jobs', () => {
  let url: string
  let connection: SQL
  beforeAll(async () => {
    url = await newPostgresDatabase()
    const session = { ...postgres_session, plan_cache_mode: 'force_generic_plan' }
    connection = new SQL({ url, max: 1, connection: session })
  })
  afterAll(async () => {
    await connection.close()
    await dropPostgresDatabase(url)
  })

  async function conditions(name: string): Promise<string[]> {
    const { text, params } = statements.get(name)!
    const prepared = name.replace('.', '_')
    await connection.unsafe(`prepare ${prepared} as ${postgresText(text)}`).simple()
    const given = params.map(() => 'null').join(', ')
    const [row] = await connection.unsafe(`explain (format json) execute ${prepared}(${given})`).simple()
    return conditionsOf(row['QUERY PLAN'][0].Plan)
  }

  test('is leased by one look-up for each, whatever the planner believes', async () => {
    const [condition, ...others] = await conditions('jobs.lease')
    expect(condition).toMatch(
      /^\(\(tenant_id = \$\d+\) AND \(kind = \$\d+\) AND \(source_id = listed\.key\)\)$/,
    )
    expect(others).toEqual([])
  })

  test('is woken within the range of its ids', async () => {
    const [condition, ...others] = await conditions('jobs.wake_idle')
    expect(condition).toMatch(/^\(\(tenant_id = \$\d+\) AND \(kind = \$\d+\) /)
    expect(condition).toMatch(/\(source_id >= \$\d+\) AND \(source_id <= \$\d+\)/)
    expect(others).toEqual([])
  })
})
