// The bytes that a tenant stores, generated from the list of routes: a route that counts other bytes than its rows have fails.

import { expect, test } from 'bun:test'
import { recount } from '../src/db/recount.ts'
import { recounted_tables, routes } from '../src/features.ts'
import { call, callersOf, isAuthenticated, newKeyring, readyIn, titled } from './support/contract.ts'
import { cron_secret, forEachWholeService, type TestService } from './support/service.ts'

const changing = titled(
  routes.filter((named) => isAuthenticated(named) && named.route.method !== 'GET' && !named.route.cron),
)

function storesAsItsRows(service: TestService): void {
  test.each(changing)('%s counts by as much as its rows grow or shrink', async (_, named) => {
    const owner = await newKeyring(service)
    const made = await readyIn(service, named, owner)
    expect(await missing(owner.tenant_id)).toBe(0)
    const [, headers] = callersOf(named.route, made.keyring)[0]!
    await call(service, named, made, { headers })
    expect(await missing(owner.tenant_id)).toBe(0)
  })

  /** Bytes of rows that the counter lacks, once what was decided is sent: nothing of it is written meanwhile. */
  async function missing(tenant_id: string): Promise<number> {
    expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
    await service.app.db.maintain()
    return recount(service.app.db, recounted_tables, tenant_id)
  }
}

// Nothing beside the calls: what a background step has counted and not yet committed would be missing.
forEachWholeService('what a tenant stores', storesAsItsRows, {}, { background: false })
