import type { Attack } from './lib/lab.ts'
import { withDatabase } from './lib/rows.ts'

const window_seconds = 10
const jump_ms = 2 * 3_600_000

export const clockBack: Attack = {
  name: 'clock-back',
  about: 'checks a rate counter whose window began two hours ahead, as after the clock was put back',
  engines: ['sqlite', 'postgres'],
  seconds_max: 40,
  async run(lab) {
    const place = await lab.place()
    const first = await lab.service(place)
    const tenant = await lab.tenant(first)
    const check = (algorithm: string) => ({
      key: algorithm,
      limit: 1,
      windowSeconds: window_seconds,
      algorithm,
    })
    // A sliding window estimates from two buckets of one window length each: a hit counts in its own bucket and in the
    // next one, so for up to two window lengths.
    const algorithms = { fixed_window: window_seconds, sliding_window: 2 * window_seconds }
    for (const algorithm of Object.keys(algorithms))
      await tenant.ask('POST', '/api/rate-limit/check', check(algorithm))
    await first.stop()
    await withDatabase(place.database_url, async (run) => {
      const ahead = `expires_at = expires_at + ${jump_ms}, updated_at = updated_at + ${jump_ms}`
      await run(
        `update kv_entries set ${ahead} where tenant_id = '${tenant.tenant_id}' and rl_window_ms is not null`,
      )
    })
    const second = await lab.service(place)
    for (const [algorithm, most] of Object.entries(algorithms)) {
      const answer = await fetch(`${second.url}/api/rate-limit/check`, {
        method: 'POST',
        headers: { ...tenant.headers, 'content-type': 'application/json' },
        body: JSON.stringify(check(algorithm)),
      })
      const { data } = (await answer.json()) as { data?: { retryAfter?: number } }
      const retry_after = answer.status === 429 ? (data?.retryAfter ?? Number.NaN) : 0
      const figures: Record<string, [number, number]> = { 'retryAfter s': [retry_after, most] }
      lab.bound(`${algorithm} of ${window_seconds} s`, figures, `answer ${answer.status}`)
      const judged = answer.status === 200 || answer.status === 429
      lab.check(`${algorithm} is judged`, judged, `answer ${answer.status}`)
    }
  },
}
