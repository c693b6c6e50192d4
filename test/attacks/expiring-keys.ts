import type { Attack } from './lib/lab.ts'
import { copyRow, withDatabase } from './lib/rows.ts'

const keys = 400_000
const watched_ms = 10_000
const swept_least = 20_000

export const expiringKeys: Attack = {
  name: 'expiring-keys',
  about: `lets ${keys} keys expire at one time`,
  engines: ['sqlite', 'postgres'],
  seconds_max: 90,
  async run(lab) {
    const place = await lab.place()
    const first = await lab.service(place)
    const attacker = await lab.tenant(first, 'pro', 'attacker')
    await attacker.ask('PUT', '/v1/kv/e/original', { value: 1, ttl_seconds: 3_600 })
    await first.stop()
    const of_attacker = `tenant_id = '${attacker.tenant_id}'`
    await copyRow(place.database_url, {
      table: 'kv_entries',
      where: `${of_attacker} and namespace = 'e'`,
      changes: { key: `'k' || (10000000 + n)`, expires_at: String(Date.now() - 1_000) },
      count: keys,
    })
    await withDatabase(place.database_url, (run) =>
      run(`update quota_usage set used = used + ${keys} where ${of_attacker} and quota = 'kv_keys'`),
    )
    const left = () =>
      withDatabase(place.database_url, async (run) => {
        const counted = `select count(*) as left_over from kv_entries where ${of_attacker} and counted = 1`
        return Number((await run(counted))[0]!.left_over)
      })
    const service = await lab.service(place)
    const good = await lab.good(service)
    const before = await left()
    await lab.during(`the sweep of ${keys} keys`, good, async () => {
      await Bun.sleep(watched_ms)
      return ''
    })
    const swept = before - (await left())
    lab.check(
      'the sweep gets on',
      swept >= Math.min(before, swept_least),
      `${swept} keys in ${watched_ms / 1_000} s`,
    )
  },
}
