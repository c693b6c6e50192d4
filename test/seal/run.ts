// `npm run test:seal`: random manipulations of stored rows, all of which both verifiers must find, and honest bundles, all of
// which both must accept.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/base/clock.ts'
import type { Db } from '../../src/db/db.ts'
import { migrate } from '../../src/db/migrate.ts'
import { openDb } from '../../src/db/open.ts'
import { migrations } from '../../src/features.ts'
import { databaseFolder } from '../support/folders.ts'
import { type Cluster, startCluster } from '../support/postgres.ts'
import { checkOf, forged, honest, materialsIn } from './forgeries.ts'
import { manipulations } from './manipulations.ts'
import { startPython } from './python.ts'
import { changedRound, honestRound, type Verifier, verifier } from './rounds.ts'

const usage = `Usage: npm run test:seal -- [options]

  --count <n>      manipulations, and honest bundles (default: 1000)
  --seed <n>       which ones (default: 1)
  --engine <name>  sqlite (the default) or postgres
  --help           this text

Needs Python 3.10 or newer. Exits with 1 when a verifier has missed a manipulation or refused an honest bundle.`

const bundles_a_journal = 10

process.exit(await main())

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      count: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      engine: { type: 'string', default: 'sqlite' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  const { url, remove } = await newDatabase(values.engine)
  const db = await openDb(url, { clock: systemClock, exclusive: true, onFatal: fail })
  try {
    await migrate(db, migrations)
    return await judge(db, Number(values.count), Number(values.seed))
  } finally {
    await db.close()
    await remove()
  }
}

async function judge(db: Db, count: number, seed: number): Promise<number> {
  const python = startPython()
  const verifiers = { 'waystation verify': verifier, 'verify_bundle.py': python.verify }
  const faults: string[] = []
  for (let n = 0; n < count; n++) {
    faults.push(...(await changedRound(db, n, seed, verifiers)))
    if ((n + 1) % 100 === 0)
      console.log(`${n + 1} manipulations of ${Object.keys(manipulations).length} kinds`)
  }
  for (let n = 0; n < count; n += bundles_a_journal) {
    const bundles = Math.min(bundles_a_journal, count - n)
    faults.push(...(await honestRound(db, n, seed, verifiers, bundles)))
  }
  faults.push(...(await forgeryFaults(db, verifiers)))
  await python.stop()
  for (const fault of faults) console.log(fault)
  const words = `${count} manipulations and ${count} honest bundles, both verifiers, seed ${seed}`
  console.log(faults.length === 0 ? `all found, all accepted: ${words}` : `${faults.length} faults: ${words}`)
  return faults.length === 0 ? 0 : 1
}

async function forgeryFaults(db: Db, verifiers: Record<string, Verifier>): Promise<string[]> {
  const of = await materialsIn(db)
  const faults: string[] = []
  for (const [who, verify] of Object.entries(verifiers)) {
    for (const [name, parts] of Object.entries(honest))
      if ((await verify(await checkOf(of, parts))) !== null) faults.push(`${who} refused ${name}`)
    for (const [name, parts] of Object.entries(forged))
      if ((await verify(await checkOf(of, parts))) === null) faults.push(`${who} accepted ${name}`)
  }
  return faults
}

async function newDatabase(engine: string): Promise<{ url: string; remove(): Promise<void> }> {
  if (engine === 'sqlite') {
    const folder = databaseFolder()
    const remove = async () => rmSync(folder, { recursive: true, force: true })
    return { url: `sqlite:${join(folder, 'seal.db')}`, remove }
  }
  if (engine !== 'postgres') throw new Error(usage)
  const cluster: Cluster = await startCluster()
  return { url: `${cluster.base_url}/postgres`, remove: () => cluster.stop() }
}

function fail(error: unknown): void {
  throw error
}
