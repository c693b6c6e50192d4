// The bytes that a tenant stores, generated from the list of routes: a route that counts other bytes than its rows have fails.

import { expect, test } from 'bun:test'
import { recount } from '../src/db/recount.ts'
import { recounted_tables, routes } from '../src/features.ts'
import { call, callersOf, isAuthenticated, newKeyring, readyIn, titled } from './support/contract.ts'
import { forEachService } from './support/service.ts'

const changing = titled(
  routes.filter((named) => isAuthenticated(named) && named.route.method !== 'GET' && !named.route.cron),
)

forEachService('what a tenant stores', (service) => {
  test.each(changing)('%s counts by as much as its rows grow or shrink', async (_, named) => {
    const owner = await newKeyring(service)
    const { db } = service.app
    const made = await readyIn(service, named, owner)
    await db.maintain()
    expect(await recount(db, recounted_tables, owner.tenant_id)).toBe(0)
    const [, headers] = callersOf(named.route, made.keyring)[0]!
    await call(service, named, made, { headers })
    await db.maintain()
    expect(await recount(db, recounted_tables, owner.tenant_id)).toBe(0)
  })
})
