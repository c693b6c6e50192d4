// Every statement on credentials.

import type { Millis } from '../base/clock.ts'
import type { KeyKind } from '../base/keys.ts'
import type { AgentMode, TenantFacts } from '../contract/caller.ts'
import { amongFirst, upToLastOf } from '../db/chunk.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'

export interface FoundRow extends Pick<TenantFacts, 'tenant_id' | 'plan' | 'status'> {
  stored_bytes: number | null
  stored_writes: number | null
  storage_bytes_max: number | null
  kv_events: number
  kind: KeyKind
  subject: string
  expires_at: number | null
  checkpoint_id: string | null
  label: string | null
  key_expires_at: number | null
  last_used_at: number | null
  /** Of an admin or agent key, to the day; when it was made until then. */
  known_used_at: Millis
  frozen_at: Millis | null
  frozen_again_at: Millis | null
  frozen_reason: string | null
  /** Of an agent; null for other kinds. */
  mode: AgentMode | null
  paused_at: Millis | null
  paused_reason: string | null
}

// The operator ends approval keys before their credentials. Without its row a key would reach as far as one that is not bound.
const FIND = sql<FoundRow>(
  'credentials.find',
  `select c.tenant_id, c.kind, c.subject, c.expires_at, t.plan, t.status, t.storage_bytes_max, t.kv_events, k.checkpoint_id,
          k.label, k.expires_at as key_expires_at, k.last_used_at, coalesce(c.last_used_at, c.created_at) as known_used_at, u.used as stored_bytes, u.writes as stored_writes,
          t.frozen_at, t.frozen_again_at, t.frozen_reason, a.mode, a.paused_at, a.paused_reason
     from credentials c
     join tenants t on t.tenant_id = c.tenant_id
     left join quota_usage u on u.tenant_id = c.tenant_id and u.quota = 'storage_bytes'
     left join approval_keys k
            on c.kind = 'approval' and k.tenant_id = c.tenant_id and k.approval_key_id = c.subject
       left join agents a on c.kind = 'agent' and a.tenant_id = c.tenant_id and a.agent_id = c.subject
    where c.tenant_id = :tenant_id and c.hash = :hash and (c.expires_at is null or c.expires_at > :now)
      and (k.expires_at is null or k.expires_at > :now)
      and (c.kind <> 'approval' or k.approval_key_id is not null)`,
)

/** Another node may have written it meanwhile. */
const is_old = '(last_used_at is null or last_used_at <= :used_before or last_used_at > :now)'

const USED = sql(
  'credentials.used',
  `update approval_keys set last_used_at = :now
    where tenant_id = :tenant_id and approval_key_id = :subject and ${is_old}`,
)

const FIND_VOTER = sql<{ checkpoint_id: string | null; expires_at: Millis | null }>(
  'credentials.find_voter',
  'select checkpoint_id, expires_at from approval_keys where tenant_id = :tenant_id and approval_key_id = :subject',
)

const USED_KEY = sql(
  'credentials.used_key',
  `update credentials set last_used_at = :now
    where tenant_id = :tenant_id and hash = :hash and ${is_old}`,
)

const INSERT = sql(
  'credentials.insert',
  `insert into credentials (tenant_id, kind, subject, hash, last_four, expires_at, created_at)
   values (:tenant_id, :kind, :subject, :hash, :last_four, null, :now)`,
)

const END_GRACE = sql<{ hash: string }>(
  'credentials.end_grace',
  `delete from credentials
    where tenant_id = :tenant_id and kind = :kind and subject = :subject and expires_at is not null
   returning hash`,
)

const BEGIN_GRACE = sql(
  'credentials.begin_grace',
  `update credentials set expires_at = :expires_at
    where tenant_id = :tenant_id and kind = :kind and subject = :subject and expires_at is null`,
)

const REVOKE = sql<{ hash: string }>(
  'credentials.revoke',
  'delete from credentials where tenant_id = :tenant_id and kind = :kind and subject = :subject returning hash',
)

const table = { table: 'credentials', key: 'tenant_id, kind, subject, hash' }

const expired = {
  ...{ ...table, index: 'credentials_expiring', order: 'expires_at', skip_locked: true },
  where: 'expires_at is not null and expires_at <= :now',
}
const SWEEP = acrossTenants<{ tenant_id: string; hash: string }>(
  'credentials.sweep',
  `delete from credentials where ${amongFirst(expired)} returning tenant_id, hash`,
  `delete from credentials where ${upToLastOf(expired)} returning tenant_id, hash`,
)

export interface Subject {
  tenant_id: string
  kind: KeyKind
  /** The agent_id or approval_key_id; '' for the admin key. */
  subject: string
}

export function find(q: Reader, tenant_id: string, hash: string, now: Millis) {
  return q.one(FIND, { tenant_id, hash, now })
}

export function insert(tx: Tx, subject: Subject, hash: string, last_four: string) {
  return tx.run(INSERT, { ...subject, hash, last_four, now: tx.now })
}

/** Returns the end of an approval key and its checkpoint; null when there is no such key. */
export function findVoter(q: Reader, { tenant_id, subject }: Omit<Subject, 'kind'>) {
  return q.one(FIND_VOTER, { tenant_id, subject })
}

/** An approval key was used, and not between `used_before` and now. */
export function used(tx: Tx, { tenant_id, subject }: Omit<Subject, 'kind'>, used_before: Millis) {
  return tx.run(USED, { tenant_id, subject, used_before, now: tx.now })
}

/** An admin or agent key was used, and not between `used_before` and now. */
export function usedKey(tx: Tx, tenant_id: string, hash: string, used_before: Millis) {
  return tx.run(USED_KEY, { tenant_id, hash, used_before, now: tx.now })
}

/** Returns the keys that ended. */
export function endGrace(tx: Tx, subject: Subject) {
  return tx.all(END_GRACE, { ...subject })
}

export function beginGrace(tx: Tx, subject: Subject, expires_at: Millis) {
  return tx.run(BEGIN_GRACE, { ...subject, expires_at })
}

/** Returns the keys that ended. */
export function revoke(tx: Tx, subject: Subject) {
  return tx.all(REVOKE, { ...subject })
}

/** Returns the keys whose grace period has ended. */
export function sweep(tx: Tx, rows_max: number) {
  return tx.all(SWEEP, { now: tx.now, rows_max })
}

export const purge = purging('credentials.purge', table)
