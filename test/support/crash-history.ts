// The calls of clients, the rows in the database afterwards, and whether the two can both be true.

import { Database } from 'bun:sqlite'
import { bytesIn } from '../../src/db/recount.ts'
import { row_bytes } from '../../src/db/stored.ts'
import { stored_tables } from '../../src/features.ts'

/** acknowledged: answered 2xx. unknown: no answer came. */
export type Outcome = 'acknowledged' | 'unknown'

/** A put or a removal. Each key belongs to one client, which does one thing after the other. */
export interface KvCall {
  tenant_id: string
  key: string
  /** JSON text; null is a removal. No two puts write the same. */
  wrote: string | null
  outcome: Outcome
  /** Of an acknowledged put. */
  version: number | null
}

export const creations = ['tenants', 'agents', 'approval-keys', 'audit'] as const
export type Creation = (typeof creations)[number]

/** A POST that creates. No two create the same. */
export interface CreateCall {
  what: Creation
  tenant_id: string
  /** The tenant's name, the agent's name, the approval key's label, the audit entry's action. */
  name: string
  /** Of the Idempotency-Key, as the database keeps it; null when none was sent. */
  key_hash: string | null
  outcome: Outcome
  /** Of an acknowledged audit entry. */
  seq: number | null
}

export interface History {
  kv: KvCall[]
  creates: CreateCall[]
}

export interface Found {
  integrity: string
  kv: { tenant_id: string; key: string; value: string | null; version: number }[]
  created: { what: Creation; tenant_id: string; name: string; seq: number | null; keys: number }[]
  heads: { tenant_id: string; seq: number }[]
  idempotency: { key_hash: string; status: number | null; answered: number }[]
  /** Counters beside what they count. */
  usage: { tenant_id: string; quota: string; used: number; there: number }[]
}

/** Reads the file itself, past the server, in one state. */
export function findIn(path: string): Found {
  const file = new Database(path, { readonly: true })
  const all = <Row>(text: string) => file.prepare(text).all() as Row[]
  try {
    file.run('begin')
    return {
      integrity: all<{ integrity_check: string }>('pragma integrity_check')
        .map((row) => row.integrity_check)
        .join(),
      kv: all(`select tenant_id, key, value, version from kv_entries`),
      created: all(
        `select 'tenants' as what, '' as tenant_id, name, null as seq,
                (select count(*) from credentials c where c.tenant_id = t.tenant_id and c.kind = 'admin') as keys
           from tenants t
          union all
         select 'agents', tenant_id, agent_id, null,
                (select count(*) from credentials c
                  where c.tenant_id = a.tenant_id and c.kind = 'agent' and c.subject = a.agent_id)
           from agents a
          union all
         select 'approval-keys', tenant_id, label, null,
                (select count(*) from credentials c
                  where c.tenant_id = k.tenant_id and c.kind = 'approval' and c.subject = k.approval_key_id)
           from approval_keys k
          union all
         select 'audit', tenant_id, action, seq, 0 from audit_entries`,
      ),
      heads: all(
        'select t.tenant_id, coalesce(h.seq, -1) as seq from tenants t left join audit_heads h using (tenant_id)',
      ),
      idempotency: all('select key_hash, status, answer is not null as answered from idempotency_keys'),
      usage: all(
        `select tenant_id, quota, used,
                case quota
                  when 'agents' then (select count(*) from agents a where a.tenant_id = u.tenant_id)
                  when 'kv_keys' then (select count(*) from kv_entries e where e.tenant_id = u.tenant_id and value is not null)
                  when 'dlq_items' then (select count(*) from dlq_items d where d.tenant_id = u.tenant_id and d.status in ('failed', 'claimed'))
                  when 'active_schedules' then (select count(*) from schedules s where s.tenant_id = u.tenant_id and s.status = 'pending')
                  when 'inboxes' then (select count(*) from inboxes i where i.tenant_id = u.tenant_id and i.counted = 1)
                  when 'storage_bytes' then ${stored_tables.map(storedIn).join(' + ')}
                  else 0 end as there
           from (select tenant_id, quota, used from quota_usage union all ${unused_counters}) u`,
      ),
    }
  } finally {
    file.close()
  }
}

/** No counter is a counter of 0. */
const unused_counters = `
  select t.tenant_id, q.quota, 0 from tenants t, (select 'agents' as quota union select 'kv_keys') q
   where not exists (select 1 from quota_usage u where u.tenant_id = t.tenant_id and u.quota = q.quota)`

/** The sum of the bytes of the tenant's rows in one table. */
function storedIn(item: (typeof stored_tables)[number]): string {
  return `(select coalesce(sum(${row_bytes} + ${bytesIn(item)}), 0) from ${item.table} r where r.tenant_id = u.tenant_id)`
}

/** The contradictions: every line is a broken promise. Empty when all was kept. */
export function judge(history: History, found: Found): string[] {
  return [
    ...judgeIntegrity(found),
    ...judgeKv(history.kv, found.kv),
    ...judgeCreates(history.creates, found),
    ...judgeAudit(found),
    ...judgeCounters(found),
  ]
}

/** The contradictions that do not depend on what clients did. */
export function judgeWhole(found: Found): string[] {
  return [...judgeIntegrity(found), ...judgeAudit(found), ...judgeCounters(found)]
}

function judgeIntegrity({ integrity }: Found): string[] {
  return integrity === 'ok' ? [] : [`integrity_check: ${integrity}`]
}

function judgeKv(calls: KvCall[], rows: Found['kv']): string[] {
  const faults: string[] = []
  const row_of = new Map(rows.map((row) => [`${row.tenant_id}/${row.key}`, row]))
  const calls_of = Map.groupBy(calls, ({ tenant_id, key }) => `${tenant_id}/${key}`)
  for (const name of row_of.keys()) if (!calls_of.has(name)) faults.push(`${name}: nobody put it`)
  for (const [name, mine] of calls_of) {
    const last = mine.findLastIndex(({ outcome }) => outcome === 'acknowledged')
    const row = row_of.get(name)
    const value = row?.value ?? null
    // The last acknowledged call, or one whose answer never came after it, is what must be there.
    const possible = mine.slice(Math.max(last, 0)).map(({ wrote }) => wrote)
    if (last === -1) possible.push(null)
    if (!possible.includes(value)) faults.push(`${name}: holds ${value}, not ${possible.join(' or ')}`)
    const acknowledged = mine[last]
    if (
      row &&
      acknowledged?.version &&
      value === acknowledged.wrote &&
      row.version !== acknowledged.version
    ) {
      faults.push(`${name}: has version ${row.version}, acknowledged was ${acknowledged.version}`)
    }
    const versions = mine.flatMap(({ version }) => (version === null ? [] : [version]))
    if (versions.some((version, i) => i > 0 && version <= versions[i - 1]!)) {
      faults.push(`${name}: versions ${versions.join()} do not rise`)
    }
  }
  return faults
}

function judgeCreates(calls: CreateCall[], { created, idempotency }: Found): string[] {
  const faults: string[] = []
  const nameOf = ({ what, tenant_id, name }: { what: string; tenant_id: string; name: string }) =>
    `${what} ${what === 'tenants' ? '' : tenant_id}/${name}`
  const found = Map.groupBy(created, nameOf)
  const known = new Set(calls.map(nameOf))
  const rows = new Map(idempotency.map((row) => [row.key_hash, row]))
  for (const name of found.keys()) if (!known.has(name)) faults.push(`${name}: nobody made it`)
  for (const call of calls) {
    const name = nameOf(call)
    const effects = found.get(name) ?? []
    if (effects.length > 1) faults.push(`${name}: is there ${effects.length} times`)
    if (call.outcome === 'acknowledged' && effects.length === 0)
      faults.push(`${name}: was acknowledged and is gone`)
    if (call.seq !== null && effects.some(({ seq }) => seq !== call.seq)) {
      faults.push(`${name}: has seq ${effects[0]!.seq}, acknowledged was ${call.seq}`)
    }
    if (call.what !== 'audit' && effects.some(({ keys }) => keys !== 1)) {
      faults.push(`${name}: has ${effects[0]!.keys} keys`)
    }
    if (call.key_hash === null) continue
    const row = rows.get(call.key_hash)
    if (Boolean(row) !== effects.length > 0) {
      faults.push(
        `${name}: ${row ? 'its Idempotency-Key is kept, its effect is not there' : 'is there without its Idempotency-Key'}`,
      )
    }
    if (row && (row.status !== 201 || row.answered !== 1))
      faults.push(`${name}: its Idempotency-Key is stuck`)
  }
  return faults
}

function judgeAudit({ created, heads }: Found): string[] {
  const entries = Map.groupBy(
    created.filter(({ what }) => what === 'audit'),
    ({ tenant_id }) => tenant_id,
  )
  return heads.flatMap(({ tenant_id, seq }) => {
    const numbers = (entries.get(tenant_id) ?? []).map((entry) => entry.seq!).toSorted((a, b) => a - b)
    const gap = numbers.findIndex((number, i) => number !== i + 1)
    return [
      ...(gap === -1 ? [] : [`audit ${tenant_id}: has no ${gap + 1}, but ${numbers[gap]}`]),
      ...(seq === numbers.length
        ? []
        : [`audit ${tenant_id}: the head says ${seq}, there are ${numbers.length}`]),
    ]
  })
}

function judgeCounters({ usage, heads }: Found): string[] {
  const wrong = usage.filter(({ used, there }) => used !== there)
  const counters = Map.groupBy(usage, ({ tenant_id }) => tenant_id)
  return [
    ...wrong.map(
      ({ tenant_id, quota, used, there }) => `${tenant_id}: ${quota} says ${used}, there are ${there}`,
    ),
    ...heads.flatMap(({ tenant_id }) => {
      const quotas = counters.get(tenant_id)?.map(({ quota }) => quota) ?? []
      return quotas.includes('storage_bytes') ? [] : [`${tenant_id}: has no counter of stored bytes`]
    }),
  ]
}
