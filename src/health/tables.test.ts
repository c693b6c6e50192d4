import { afterAll, beforeAll, expect, test } from 'bun:test'
import { onPostgres } from '../../test/support/databases.ts'
import {
  administer,
  dropPostgresDatabase,
  newPostgresDatabase,
  ownerUrlOf,
} from '../../test/support/postgres.ts'
import { few_connections, TestService } from '../../test/support/service.ts'
import { settings } from '../settings.ts'

const role = settings.DATABASE_ROLE.initial

/** Takes the tables from the service, and gives them back. */
const changes: [name: string, taken: string, given: string][] = [
  [
    'may not use the schema any more',
    `revoke usage on schema public from public, ${role}`,
    `grant usage on schema public to public, ${role}`,
  ],
  [
    'may not read the tables any more',
    `revoke select on tenants from ${role}`,
    `grant select on tenants to ${role}`,
  ],
  [
    'does not find its tables any more',
    'alter table tenants rename to tenants_of_old',
    'alter table tenants_of_old rename to tenants',
  ],
]

onPostgres('A service whose role', () => {
  const service = new TestService(few_connections)
  service.background = false
  beforeAll(async () => {
    await service.start(await newPostgresDatabase())
  })
  afterAll(async () => {
    await service.stop()
    await dropPostgresDatabase(service.database_url)
  })

  const run = (statement: string) => {
    const url = ownerUrlOf(service.database_url)
    const at = url.lastIndexOf('/')
    return administer(url.slice(0, at), statement, url.slice(at + 1))
  }
  const readiness = async () => {
    service.clock.advance(1_000) // an answer holds as long
    const { status, body } = await service.ask('GET', '/readyz')
    return [status, body.error?.code, body.error?.details]
  }

  test.each(changes)('%s is not ready until that is put right', async (_, taken, given) => {
    expect(await readiness()).toEqual([200, undefined, undefined])
    await run(taken)
    try {
      const reason = 'the service may not read its tables, or they do not exist'
      expect(await readiness()).toEqual([503, 'UNAVAILABLE', { reason }])
    } finally {
      await run(given)
    }
    expect(await readiness()).toEqual([200, undefined, undefined])
  })
})
