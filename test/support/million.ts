// A million rows in every table that is swept or purged, made inside the engine: most of them one tenant's, and all
// that ends ends in the same instant.

import { day_ms } from '../../src/base/clock.ts'

export const big = 'ten_big'
const other = 'ten_other'

/** One text for both engines, like those of the service. */
export function seeds(now: number): string[] {
  const ended = now - 100 * day_ms
  const later = now + day_ms
  const tenant = `case when i % 10 = 0 then '${other}' else '${big}' end`
  const id = (prefix: string) => `'${prefix}_' || cast(1000000 + i as text)`
  const fill = (table: string, count: number, columns: string, values: string) => `
    insert into ${table} (${columns})
    with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${count})
    select ${values} from numbers`

  const kv = (namespace: string, count: number, value: string, counted: number, expires_at: number | null) =>
    fill(
      'kv_entries',
      count,
      'tenant_id, namespace, key, value, version, created_version, counted, expires_at, updated_at',
      `${tenant}, '${namespace}', ${id('k')}, ${value}, 1, 1, ${counted}, ${expires_at}, ${ended}`,
    )
  const letters = (status: string, count: number, locked_until: number | null) =>
    fill(
      'dlq_items',
      count,
      `tenant_id, id, status, source, lock_seconds, locked_until, claims, created_at, updated_at, cause, error, payload`,
      `${tenant}, ${id(`dlq_${status}`)}, '${status}', 'agent', 300, ${locked_until}, 0, ${ended}, ${ended}, 'e', 'e',
       '{}'`,
    )
  const inboxes = (prefix: string, count: number, deleted: number, clear_at: number | null) =>
    fill(
      'inboxes',
      count,
      `tenant_id, id, token_hash, token, label, last_seq, counted, deleted, expires_at, clear_at, delete_at, created_at`,
      `${tenant}, ${id(prefix)}, ${id(prefix)}, 't', '', 0, ${1 - deleted}, ${deleted}, ${ended}, ${clear_at}, ${ended},
       ${ended}`,
    )

  return [
    ...[big, other].map(
      (tenant_id) => `
        insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
        values ('${tenant_id}', '${tenant_id}', 'o@example.com', 'pro', 'active', 's', ${ended})`,
    ),
    kv('expired', 250_000, `'1'`, 1, ended),
    kv('gone', 200_000, 'null', 0, ended),
    kv('live', 20_000, `'1'`, 1, null),
    letters('claimed', 40_000, ended),
    letters('resolved', 40_000, null),
    letters('failed', 10_000, null),
    inboxes('inb_a', 20_000, 0, later),
    inboxes('inb_b', 20_000, 1, ended),
    inboxes('inb_c', 20_000, 1, null),
    fill(
      'inbox_messages',
      40_000,
      `tenant_id, inbox_id, seq, size, id, method, kind, encoding, source_ip, content_type, created_at, path, query,
       headers, body`,
      `'${big}', 'inb_a_1000001', i, 100, ${id('msg')}, 'POST', 'text', 'text', '127.0.0.1', '', ${ended}, '', '', '{}',
       'x'`,
    ),
    fill(
      'idempotency_keys',
      100_000,
      'tenant_id, key_hash, fingerprint, status, answer, expires_at',
      `${tenant}, ${id('h')}, 'f', 200, 'a', ${ended}`,
    ),
    fill('usage_hours', 30_000, 'tenant_id, hour, feature, calls, failures', `${tenant}, i, 'kv', 1, 0`),
    fill('api_calls', 30_000, 'tenant_id, month, calls', `${id('ten')}, '2020-01', 1`),
    fill(
      'credentials',
      20_000,
      'tenant_id, kind, subject, hash, last_four, expires_at, created_at',
      `${tenant}, 'agent', ${id('a')}, ${id('h')}, '1234', ${ended}, ${ended}`,
    ),
    fill('agents', 10_000, 'tenant_id, agent_id, created_at', `${tenant}, ${id('a')}, ${ended}`),
    fill(
      'approval_keys',
      10_000,
      'tenant_id, approval_key_id, created_at',
      `${tenant}, ${id('apk')}, ${ended}`,
    ),
    fill(
      'audit_entries',
      60_000,
      'tenant_id, seq, id, action, workflow_id, actor, agent_id, request_id, created_at',
      `'${big}', i, ${id('log')}, case when i % 2 = 0 then 'even' else 'odd' end,
       case when i % 2 = 0 then 'first' else 'second' end, case when i % 2 = 0 then 'one' else 'two' end,
       'a', 'r', ${ended}`,
    ),
    fill(
      'schedules',
      20_000,
      `tenant_id, id, status, callback_url, fire_at, dlq_on_failure, agent_id, attempts, name, created_at, updated_at,
       callback_payload`,
      `${tenant}, ${id('sch')}, 'fired', 'http://localhost/', ${ended}, 0, 'a', 1, '', ${ended}, ${ended}, '{}'`,
    ),
    fill(
      'checkpoints',
      20_000,
      `tenant_id, id, status, title, callback_url, timeout_action, expires_at, agent_id, callback_status,
       callback_attempts, created_at, updated_at`,
      `${tenant}, ${id('chk')}, 'approved', 't', 'http://localhost/', 'dlq', ${ended}, 'a', 'none', 0, ${ended}, ${ended}`,
    ),
    fill(
      'jobs',
      30_000,
      `tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, paused`,
      `${tenant}, 'schedule', ${id('sch')}, ${id('evt')}, '', ${ended}, 0, 0, 0, 0`,
    ),
    fill(
      'attempts',
      30_000,
      'tenant_id, source, source_id, seq, event_id, attempt, started_at, duration_ms',
      `${tenant}, 'schedule', ${id('sch')}, 1, ${id('evt')}, 1, ${ended}, 1`,
    ),
  ]
}
