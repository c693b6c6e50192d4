// `bun bench/seal.ts`: what it costs to number and to seal events, in CPU of this process and of the database. A second of
// each rate is committed, then numbered and sealed, as the service does beside requests.

import { parseArgs } from 'node:util'
import { systemClock } from '../src/base/clock.ts'
import type { Dependencies } from '../src/contract/dependencies.ts'
import type { Db } from '../src/db/db.ts'
import { migrate } from '../src/db/migrate.ts'
import { openDb } from '../src/db/open.ts'
import { follows, migrations } from '../src/features.ts'
import * as journal from '../src/journal/service.ts'
import { step } from '../src/seal/service.ts'
import { Journal } from '../test/seal/journals.ts'
import { startCluster } from '../test/support/postgres.ts'
import { randomFrom } from '../test/support/random.ts'
import { postgresMicros, postmasterOf } from './postgres-processes.ts'
import { command, temporaryFolder, wholeNumber } from './processes.ts'
import { median, table } from './table.ts'

const usage = `Usage: bun bench/seal.ts [options]

  --rate <n>       events a second (default: 1000)
  --tenants <n>    of as many tenants (default: 1)
  --seconds <n>    how many such seconds (default: 20)
  --engine <name>  only sqlite, or only postgres
  --help           this text`

await command(async () => {
  const { values } = parseArgs({
    options: {
      rate: { type: 'string', default: '1000' },
      tenants: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '20' },
      engine: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const load: Load = {
    rate: wholeNumber(values.rate),
    tenants: wholeNumber(values.tenants),
    seconds: wholeNumber(values.seconds),
  }
  const rows: string[][] = []
  if (values.engine !== 'postgres') rows.push(await onSqlite(load))
  if (values.engine !== 'sqlite') rows.push(await onPostgres(load))
  console.log(
    table(
      ['engine', 'numbering µs/event', 'sealing µs/event', 'of them database', '% of a core at that rate'],
      rows,
    ),
  )
})

interface Load {
  rate: number
  tenants: number
  seconds: number
}

async function onSqlite(load: Load): Promise<string[]> {
  const { folder, remove } = temporaryFolder()
  try {
    return await measured('sqlite', `sqlite:${folder}/seal.db`, load, () => 0)
  } finally {
    remove()
  }
}

async function onPostgres(load: Load): Promise<string[]> {
  const cluster = await startCluster()
  try {
    const postmaster = postmasterOf(cluster.data_dir)
    return await measured('postgres', `${cluster.base_url}/postgres`, load, () => postgresMicros(postmaster))
  } finally {
    await cluster.stop()
  }
}

async function measured(
  engine: string,
  url: string,
  { rate, tenants, seconds }: Load,
  databaseMicros: () => number,
): Promise<string[]> {
  const db = await openDb(url, { clock: systemClock, exclusive: true, onFatal: console.error })
  await migrate(db, migrations)
  const journals = await Promise.all(
    Array.from({ length: tenants }, (_, i) => Journal.create(db, randomFrom(i))),
  )
  const cost = async (work: () => Promise<unknown>) => {
    const before = { own: process.cpuUsage(), database: databaseMicros() }
    await work()
    const { user, system } = process.cpuUsage(before.own)
    const database = (databaseMicros() - before.database) / rate
    return { micros: (user + system) / rate + database, database }
  }
  const numbering: number[] = []
  const sealing: number[] = []
  const of_database: number[] = []
  for (let second = 0; second < seconds; second++) {
    for (const made of journals) await made.leave(rate / tenants)
    const numbered = await cost(() => numberedOnly(db, journals))
    const sealed = await cost(() => Promise.all(journals.map((made) => sealedWhole(db, made))))
    if (second < seconds / 4) continue // until everything is compiled
    numbering.push(numbered.micros)
    sealing.push(sealed.micros)
    of_database.push(numbered.database + sealed.database)
  }
  await db.close()
  const [number, seal] = [median(numbering), median(sealing)]
  const percent = ((number + seal) * rate) / 10_000
  return [engine, number.toFixed(1), seal.toFixed(1), median(of_database).toFixed(1), percent.toFixed(1)]
}

/** With what follows the numbering in its transaction. */
function numberedOnly(db: Db, journals: readonly Journal[]) {
  return Promise.all(
    journals.map(({ tenant_id, dependencies }) => journal.number(db, dependencies, follows, tenant_id)),
  )
}

async function sealedWhole(
  db: Db,
  { tenant_id, dependencies }: { tenant_id: string; dependencies: Dependencies },
) {
  while ((await step(db, dependencies, tenant_id)).more);
}
