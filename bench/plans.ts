// Every named statement against 10,000 tenants, 2 million jobs, a million keys and entries and 300,000 answers kept under
// Idempotency-Keys: what it reads, and how long it takes. The test of the same name does this with a hundredth of the
// rows and the statistics of all of them, which `--statistics` writes.

import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../src/base/clock.ts'
import type { Statement } from '../src/db/db.ts'
import { render } from '../src/db/dialect.ts'
import { migrate } from '../src/db/migrate.ts'
import { openDb } from '../src/db/open.ts'
import { migrations } from '../src/features.ts'
import { TestClock } from '../test/support/clock.ts'
import { PostgresPlans, plan_modes, type Run, SqlitePlans } from '../test/support/plan-engines.ts'
import { statistics_file, statisticsOf } from '../test/support/plan-statistics.ts'
import {
  allStatements,
  full,
  partOf,
  type Scenario,
  scenarios,
  seeds,
  slow,
  whole_tables,
} from '../test/support/plans.ts'
import { administer, startCluster } from '../test/support/postgres.ts'

const ms_max = 5
/** The fastest counts: another may have waited for a page, or for another program. */
const runs = 3

const now = new TestClock().now()
const args = process.argv.slice(2)
const engines = ['sqlite', 'postgres'].filter(
  (engine) => !args.some((arg) => arg !== engine && /^(sqlite|postgres)$/.test(arg)),
)
/** `--part 0.1`: a tenth of the rows, for a quick look. */
const part = args.includes('--part') ? Number(args[args.indexOf('--part') + 1]) : 1
const scale = partOf(full, part)
let failed = 0
for (const engine of engines) {
  const began_ms = performance.now()
  await (engine === 'sqlite' ? onSqlite() : onPostgres())
  const seconds = ((performance.now() - began_ms) / 1_000).toFixed(0)
  console.log(
    `${engine}: ${allStatements().length} statements, ${scale.jobs.toLocaleString('en')} jobs, in ${seconds} s`,
  )
}
process.exit(failed > 0 ? 1 : 0)

async function onSqlite(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-plans-'))
  const file = join(folder, 'plans.db')
  try {
    await migrated(`sqlite:${file}`)
    const connection = new Database(file)
    connection.run('pragma synchronous = off')
    connection.run('pragma cache_size = -262144')
    for (const seed of seeds(scale, now)) connection.run(seed)
    connection.run('pragma wal_checkpoint(truncate)')
    const plans = new SqlitePlans(connection)
    for (const statement of allStatements()) {
      for (const fault of plans.plan(statement)) report('sqlite', statement, null, fault)
      for (const scenario of scenarios(now))
        await measured('sqlite', statement, scenario, () => plans.run(statement, scenario))
    }
    connection.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function onPostgres(): Promise<void> {
  const cluster = await startCluster({
    flags: ['-c', 'fsync=off', '-c', 'max_wal_size=8GB', '-c', 'autovacuum=off'],
  })
  const url = `${cluster.base_url}/plans`
  try {
    await administer(cluster.base_url, 'create database plans')
    await migratedUnsafely(url)
    const seeder = new SQL({ url, max: 1 })
    for (const seed of seeds(scale, now)) await seeder.unsafe(seed)
    await seeder.unsafe('set default_statistics_target = 10')
    await seeder.unsafe('vacuum analyze')
    if (args.includes('--statistics')) writeFileSync(statistics_file, await statisticsOf(seeder))
    await seeder.close()
    const plans = new PostgresPlans(url, null)
    for (const statement of allStatements()) await plans.prepare(statement)
    for (const mode of plan_modes) {
      await plans.mode(mode)
      for (const statement of allStatements()) {
        for (const scenario of scenarios(now))
          await measured(mode, statement, scenario, () => plans.run(statement, scenario))
      }
    }
    await plans.close()
  } finally {
    await cluster.stop()
  }
}

/** In SQL alone: the service refuses a PostgreSQL without fsync. */
async function migratedUnsafely(url: string): Promise<void> {
  const connection = new SQL({ url, max: 1 })
  for (const { text } of migrations) await connection.unsafe(render('postgres', text)).simple()
  await connection.close()
}

async function migrated(url: string): Promise<void> {
  const db = await openDb(url, {
    clock: systemClock,
    exclusive: true,
    onFatal: (error) => void console.error(error),
  })
  await migrate(db, migrations)
  await db.close()
}

async function measured(
  where: string,
  statement: Statement<unknown>,
  scenario: Scenario,
  run: () => Run | Promise<Run>,
): Promise<void> {
  const most_ms = slow[statement.name]?.ms ?? ms_max
  let ms = Number.POSITIVE_INFINITY
  let faults: string[] = []
  for (let i = 0; i < runs && ms > most_ms; i++) {
    const found = await run()
    faults = found.faults
    ms = Math.min(ms, found.ms)
  }
  for (const fault of faults) report(where, statement, scenario, fault)
  if (ms > most_ms && !(statement.name in whole_tables))
    report(where, statement, scenario, `${ms.toFixed(1)} ms`)
}

function report(where: string, { name }: Statement<unknown>, scenario: Scenario | null, fault: string): void {
  failed += 1
  console.log([where, name, scenario?.name ?? 'the plan', fault].join('\t'))
}
