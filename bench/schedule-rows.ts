// Schedules that are in the database before the service starts, as it would have left them.

import { Database } from 'bun:sqlite'

const second_ms = 1_000

/** Due schedules of the tenant that is there. */
export function insertBacklog(path: string, count: number, urlOf: (i: number) => string): void {
  const db = new Database(path)
  db.run('pragma synchronous = off')
  const { tenant_id } = db.query('select tenant_id from tenants').get() as { tenant_id: string }
  const at = Date.now() - second_ms
  const { schedule, job } = insertsOf(db)
  db.run('begin')
  for (let i = 0; i < count; i++) {
    const number = String(i).padStart(26, '0')
    schedule.run(tenant_id, `sch_${number}`, urlOf(i), at, at)
    job.run(tenant_id, `sch_${number}`, `evt_${number}`, new URL(urlOf(i)).origin, at)
  }
  setUsed(db, tenant_id, count)
  db.run('commit')
  db.close()
}

/** Pending schedules, due from tomorrow on, of so many other tenants and, with `own`, of the one that is there. */
export function insertFarFuture(
  path: string,
  { count, tenants, own }: { count: number; tenants: number; own: boolean },
): void {
  const db = new Database(path)
  db.run('pragma synchronous = off')
  const tomorrow = Date.now() + 86_400_000
  const ids = Array.from({ length: tenants }, (_, i) => `ten_far${String(i).padStart(23, '0')}`)
  if (own) ids.push((db.query('select tenant_id from tenants').get() as { tenant_id: string }).tenant_id)
  const { schedule, job } = insertsOf(db)
  db.run('begin')
  for (let i = 0; i < count; i++) {
    const tenant_id = ids[i % ids.length]!
    const number = String(i).padStart(26, '0')
    const destination = `https://hooks-${i % 1_000}.example.com`
    const at = tomorrow + ((i * 7_919) % count) * second_ms
    schedule.run(tenant_id, `sch_${number}`, `${destination}/hook`, at, tomorrow)
    job.run(tenant_id, `sch_${number}`, `evt_${number}`, destination, at)
  }
  if (own) setUsed(db, ids.at(-1)!, Math.ceil(count / ids.length))
  db.run('commit')
  db.run('pragma wal_checkpoint(truncate)')
  db.close()
}

function setUsed(db: Database, tenant_id: string, used: number): void {
  db.run(
    `insert into quota_usage (tenant_id, quota, used, version_floor) values (?1, 'active_schedules', ?2, 0)
       on conflict (tenant_id, quota) do update set used = ?2`,
    [tenant_id, used],
  )
}

function insertsOf(db: Database) {
  const schedule = db.prepare(
    `insert into schedules (tenant_id, id, status, callback_url, callback_payload, fire_at, dlq_on_failure, agent_id,
       attempts, name, created_at, updated_at)
     values (?1, ?2, 'pending', ?3, '{"at": 0}', ?4, 0, 'bench-agent', 0, '', ?5, ?5)`,
  )
  const job = db.prepare(
    `insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts,
       paused)
     values (?1, 'schedule', ?2, ?3, ?4, ?5, 0, 0, 0, 0)`,
  )
  return { schedule, job }
}
