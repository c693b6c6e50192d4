// A revocation, which changes many effects, beside their reports, on an engine with locks of rows.

import { expect, test } from 'bun:test'
import { onPostgres } from '../../test/support/databases.ts'
import { countingDeadlocks } from '../../test/support/deadlocks.ts'
import { ask, claimed, decide, proposed, quotaOf, read } from '../../test/support/effects.ts'

onPostgres('On PostgreSQL no deadlock comes of', () => {
  const { service, deadlocks } = countingDeadlocks()

  test('a revocation while effects that run under the approval are reported', async () => {
    const tenant = await service.signUp('pro')
    const { api_key } = tenant
    for (let round = 0; round < 10; round++) {
      const { id, checkpoint_id } = await proposed(service, tenant)
      await decide(service, tenant, checkpoint_id, 'approve', { uses: 9 })
      const running = []
      for (let i = 0; i < 8; i++)
        running.push(await claimed(service, tenant, { approval: { checkpoint_id } }))
      const reports = running.map(
        ({ id, lease_token }) =>
          () =>
            ask(service, api_key, id, 'succeed', { lease_token }),
      )
      const revoke = () => decide(service, tenant, checkpoint_id, 'revoke', undefined)
      const calls = reports.toSpliced(round % 9, 0, revoke)
      const answers = await Promise.all(calls.map((call) => call()))
      expect(answers.map(({ status }) => status)).toEqual(calls.map(() => 200))
      expect((await read(service, tenant, id)).status).toBe('rejected')
    }
    expect(await quotaOf(service, tenant)).toBe(0)
    expect(await deadlocks()).toBe(0)
  }, 60_000)
})
