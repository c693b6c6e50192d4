// The operator's command: works on the database of the service, beside it or while it is stopped.

import { existsSync } from 'node:fs'
import { iso, systemClock } from './base/clock.ts'
import { type Config, readConfig } from './config.ts'
import type { Plans } from './contract/dependencies.ts'
import type { Db } from './db/db.ts'
import { distribute } from './db/distributed.ts'
import { requireCurrent } from './db/migrate.ts'
import { openDb, sqlitePath } from './db/open.ts'
import { setForRole } from './db/postgres-session.ts'
import { recountEach } from './db/recount.ts'
import { migrations, recounted_tables } from './features.ts'
import * as seal from './seal/service.ts'
import { foundSecret, requireKey, secretsUnder } from './secrets/service.ts'
import * as tenants from './tenants/service.ts'

const usage = `Usage: npm run admin -- <command>

  tenants                    every tenant: id, plan, status, creation, name
  set-plan <tenant> <plan>   puts a tenant (id or name) on a plan of the table
  set-storage <tenant> <bytes|default>
                             how much a tenant may store, whatever its plan says
  recount [tenant]           recomputes what a tenant stores, or every tenant
  session-settings           PostgreSQL behind a pooler: sets for the role what the pooler does not pass on
  rotate-seal-key            makes a new key that signs checkpoints of journals; those before stay listed
  check                      looks through the whole SQLite file for damage
  distribute                 spreads the tables of a PostgreSQL database over the servers of Citus
  help                       this text

It reads the same settings as the service (DATABASE_URL, PLANS_FILE, SECRET_KEY, DATA_DIR); see npm start -- --help.`

process.umask(0o077)
await main(process.argv.slice(2))

async function main([command = 'help', ...args]: string[]): Promise<void> {
  if (command === 'help' || command === '--help') return console.log(usage)
  try {
    const config = readConfig(process.env)
    if (command === 'session-settings' && args.length === 0) return await setSession(config.database_url)
    const db = await open(config.database_url)
    try {
      if (command === 'tenants' && args.length === 0) await listTenants(db)
      else if (command === 'set-plan' && args.length === 2)
        await setPlan(db, config.plans, args[0]!, args[1]!)
      else if (command === 'set-storage' && args.length === 2) await setStorage(db, args[0]!, args[1]!)
      else if (command === 'recount' && args.length <= 1) await recountAll(db, args[0])
      else if (command === 'rotate-seal-key' && args.length === 0) await rotateSealKey(db, config)
      else if (command === 'check' && args.length === 0) await check(db)
      else if (command === 'distribute' && args.length === 0) await distributeAll(db)
      else throw new Error(`unknown command; see npm run admin -- help`)
    } finally {
      await db.close()
    }
  } catch (error) {
    console.error(`waystation admin: ${(error as Error).message}`)
    process.exit(1)
  }
}

async function open(url: string): Promise<Db> {
  const path = sqlitePath(url)
  if (path === ':memory:') throw new Error('a database in memory is seen by its own process only')
  if (path !== null && !existsSync(path))
    throw new Error(`there is no database at ${path}; start the service first`)
  const db = await openDb(url, { clock: systemClock, onFatal: () => process.exit(1), exclusive: false })
  await requireCurrent(db, migrations)
  return db
}

async function setSession(url: string): Promise<void> {
  if (sqlitePath(url) !== null) throw new Error('session-settings is for PostgreSQL')
  for (const text of await setForRole(url)) console.log(text)
}

async function listTenants(db: Db): Promise<void> {
  for (const { tenant_id, plan, status, created_at, name } of await tenants.all(db)) {
    console.log([tenant_id, plan, status, iso(created_at), name].join('\t'))
  }
}

async function setPlan(db: Db, plans: Plans, tenant: string, plan: string): Promise<void> {
  if (!Object.hasOwn(plans, plan))
    throw new Error(`unknown plan ${plan}; there are ${Object.keys(plans).join(', ')}`)
  const found = await tenantCalled(db, tenant)
  await tenants.setPlan(db, found.tenant_id, plan)
  console.log(`${found.tenant_id} (${found.name}) is on ${plan}`)
}

async function tenantCalled(db: Db, tenant: string) {
  const found = (await tenants.all(db)).find(({ tenant_id, name }) => tenant_id === tenant || name === tenant)
  if (!found) throw new Error(`there is no tenant ${tenant}`)
  return found
}

async function setStorage(db: Db, tenant: string, bytes: string): Promise<void> {
  const storage_bytes_max = bytes === 'default' ? null : Number(bytes)
  const usable =
    storage_bytes_max === null || (/^\d+$/.test(bytes) && Number.isSafeInteger(storage_bytes_max))
  if (!usable) throw new Error(`"${bytes}" is neither a whole number of bytes nor default`)
  const { tenant_id, name, plan } = await tenantCalled(db, tenant)
  await tenants.setStorage(db, tenant_id, storage_bytes_max)
  const allowed = storage_bytes_max === null ? `what ${plan} allows` : `${storage_bytes_max} bytes`
  console.log(`${tenant_id} (${name}) may store ${allowed}`)
}

/** Throws when a tenant could not be recounted, after all the others. */
async function recountAll(db: Db, tenant: string | undefined): Promise<void> {
  const asked = tenant ? [await tenantCalled(db, tenant)] : await tenants.all(db)
  const failed = await recountEach(db, recounted_tables, asked, ({ tenant_id, name }, missing) => {
    if (missing instanceof Error) console.log([tenant_id, `failed: ${missing.message}`, name].join('\t'))
    else console.log([tenant_id, missing === 0 ? 'right' : `was off by ${missing} bytes`, name].join('\t'))
  })
  if (failed > 0) throw new Error(`${failed} of ${asked.length} tenants could not be recounted; try again`)
}

async function rotateSealKey(db: Db, { secret_key, data_dir }: Config): Promise<void> {
  const key = foundSecret(secret_key, data_dir, 'secret_key')
  await requireKey(db, key)
  const number = await seal.rotateKey(db, secretsUnder(key))
  console.log(`key ${number} signs checkpoints from now on; the next checkpoint names its public key first`)
}

async function distributeAll(db: Db): Promise<void> {
  const done = await distribute(db)
  for (const name of done) console.log(name)
  console.log(
    done.length === 0 ? 'every table was distributed before' : `${done.length} tables are distributed now`,
  )
}

/** Throws when something is damaged, with what SQLite says about it. */
async function check(db: Db): Promise<void> {
  const faults = await db.faults()
  if (faults.length > 0) throw new Error(`the database is damaged:\n${faults.join('\n')}`)
  console.log('the database is whole')
}
