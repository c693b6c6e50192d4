// A service on a PostgreSQL database of its own, and the deadlocks that the server has found there.

import { afterAll, beforeAll } from 'bun:test'
import { SQL } from 'bun'
import { dropPostgresDatabase, newPostgresDatabase } from './postgres.ts'
import { TestService } from './service.ts'

/** For the tests of a block. `deadlocks` stops the service: a connection that ends has reported all that it counted. */
export function countingDeadlocks(): { service: TestService; deadlocks(): Promise<number> } {
  let url: string
  const service = new TestService()
  beforeAll(async () => {
    url = await newPostgresDatabase()
    await service.start(url)
  })
  afterAll(async () => {
    await service.stop()
    await dropPostgresDatabase(url)
  })
  return {
    service,
    async deadlocks() {
      await service.stop()
      const client = new SQL({ url, max: 1 })
      const [row] = await client.unsafe(
        'select deadlocks from pg_stat_database where datname = current_database()',
      )
      await client.close()
      return Number(row.deadlocks)
    },
  }
}
