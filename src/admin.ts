// The operator's command: works on the database of the service, beside it or while it is stopped.

import { existsSync } from 'node:fs'
import { iso, systemClock } from './base/clock.ts'
import { readConfig } from './config.ts'
import type { Plans } from './contract/services.ts'
import type { Db } from './db/db.ts'
import { mustBeCurrent } from './db/migrate.ts'
import { openDb, sqlitePath } from './db/open.ts'
import * as tenants from './tenants/service.ts'

const usage = `Usage: npm run admin -- <command>

  tenants                    every tenant: id, plan, status, creation, name
  set-plan <tenant> <plan>   puts a tenant (id or name) on a plan of the table
  help                       this text

It reads the same settings as the service (DATABASE_URL, PLANS_FILE); see npm start -- --help.`

process.umask(0o077)
await main(process.argv.slice(2))

async function main([command = 'help', ...args]: string[]): Promise<void> {
  if (command === 'help' || command === '--help') return console.log(usage)
  try {
    const config = readConfig(process.env)
    const db = await open(config.database_url)
    try {
      if (command === 'tenants' && args.length === 0) await listTenants(db)
      else if (command === 'set-plan' && args.length === 2)
        await setPlan(db, config.plans, args[0]!, args[1]!)
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
  await mustBeCurrent(db)
  return db
}

async function listTenants(db: Db): Promise<void> {
  for (const { tenant_id, plan, status, created_at, name } of await tenants.all(db)) {
    console.log([tenant_id, plan, status, iso(created_at), name].join('\t'))
  }
}

async function setPlan(db: Db, plans: Plans, tenant: string, plan: string): Promise<void> {
  if (!Object.hasOwn(plans, plan))
    throw new Error(`unknown plan ${plan}; there are ${Object.keys(plans).join(', ')}`)
  const found = (await tenants.all(db)).find(({ tenant_id, name }) => tenant_id === tenant || name === tenant)
  if (!found) throw new Error(`there is no tenant ${tenant}`)
  await tenants.setPlan(db, found.tenant_id, plan)
  console.log(`${found.tenant_id} (${found.name}) is on ${plan}`)
}
