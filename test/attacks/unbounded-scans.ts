import type { Attack } from './lib/lab.ts'
import { shown } from './lib/load.ts'
import { copyRow, withDatabase } from './lib/rows.ts'
import type { Tenant } from './lib/service.ts'

const rows = 400_000
const connections = 16
const seconds = 3
/** A tenth of what the slowest of them was seen to get. */
const served = { status: 200, least: 35 }

export const unboundedScans: Attack = {
  name: 'unbounded-scans',
  about: `lists and filters beside ${rows} rows that none of them answers`,
  engines: ['sqlite', 'postgres'],
  seconds_max: 120,
  async run(lab) {
    const place = await lab.place()
    const first = await lab.service(place)
    const attacker = await lab.tenant(first, 'pro', 'attacker')
    await prepare(attacker)
    await first.stop()
    await fill(place.database_url, attacker.tenant_id)
    const service = await lab.service(place)
    const good = await lab.good(service, { interval_ms: 10 })
    for (const [what, path] of [
      ['a namespace of tombstones', '/v1/kv/tomb'],
      ['a prefix of tombstones', '/v1/kv/tomb?prefix=k'],
      ['namespaces', '/v1/namespaces'],
      ['audit entries of an action that never was', '/v1/audit?action=nope'],
      ['audit entries of two filters that never meet', '/v1/audit?action=x&actor=q'],
      ['audit entries of three filters that never meet', '/v1/audit?workflow_id=w1&action=x&actor=q'],
      ['audit entries of a time that never was', '/v1/audit?action=x&from=2030-01-01T00:00:00Z'],
      ['rate counters', '/api/rate-limit'],
      ['rate counters of a prefix', '/api/rate-limit?prefix=r'],
    ] as const) {
      const request = attacker.request('GET', path)
      const requests = [path === '/v1/namespaces' ? { ...request, headers: attacker.admin_headers } : request]
      await lab.during(`${connections} connections list ${what}`, good, async () =>
        shown(await lab.load(service, { connections, seconds, manner: 'answers', requests, served })),
      )
    }
  },
}

async function prepare(attacker: Tenant): Promise<void> {
  await attacker.ask('PUT', '/v1/kv/tomb/original', { value: 1 })
  await attacker.ask('DELETE', '/v1/kv/tomb/original')
  for (const entry of [
    { action: 'x', actor: 'p', workflow_id: 'w1' },
    { action: 'y', actor: 'q', workflow_id: 'w2' },
  ]) {
    await attacker.ask('POST', '/v1/audit', entry)
  }
  await attacker.ask('POST', '/api/rate-limit/check', { key: 'original', limit: 5, windowSeconds: 86_400 })
}

async function fill(database_url: string, tenant_id: string): Promise<void> {
  const of_attacker = `tenant_id = '${tenant_id}'`
  await copyRow(database_url, {
    table: 'kv_entries',
    where: `${of_attacker} and namespace = 'tomb'`,
    changes: { key: `'k' || (10000000 + n)` },
    count: rows,
  })
  for (const [offset, action] of [
    [0, 'x'],
    [1, 'y'],
  ] as const) {
    await copyRow(database_url, {
      table: 'audit_entries',
      where: `${of_attacker} and action = '${action}' and seq < 100`,
      changes: {
        seq: `1000 + 2 * n + ${offset}`,
        id: `'log_0000000000000000' || (1000000000 + 2 * n + ${offset})`,
      },
      count: rows / 2,
    })
  }
  await copyRow(database_url, {
    table: 'kv_entries',
    where: `${of_attacker} and rl_window_ms is not null`,
    changes: { key: `'r' || (10000000 + n)` },
    count: rows / 4,
  })
  await withDatabase(database_url, async (run) => {
    await run(`update audit_heads set seq = ${1_000 + rows + 10} where ${of_attacker}`)
    const counters = `used = used + ${rows / 4}`
    await run(`update quota_usage set ${counters} where ${of_attacker} and quota = 'kv_keys'`)
  })
}
