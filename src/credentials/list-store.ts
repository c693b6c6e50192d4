// All keys of a tenant, for the operator: which were not used for long, and the end of all at once.

import type { Millis } from '../base/clock.ts'
import type { KeyKind } from '../base/keys.ts'
import { inChunk, lockFirst } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'

export interface KeyRow {
  kind: KeyKind
  subject: string
  hash: string
  last_four: string
  created_at: Millis
  /** To the day, of an approval key to the minute; null when it was not used since the service notes that. */
  used_at: Millis | null
}

const PAGE = sql<KeyRow>(
  'credentials.page',
  `select kind, subject, hash, last_four, created_at,
          coalesce(last_used_at, (select k.last_used_at from approval_keys k
            where k.tenant_id = :tenant_id and k.approval_key_id = credentials.subject)) as used_at
     from credentials
    where tenant_id = :tenant_id and (kind, subject, hash) > (:kind, :subject, :hash)
    order by kind, subject, hash limit :rows_max`,
)

const chunk = {
  ...{ table: 'credentials', key: 'tenant_id, kind, subject, hash', index: null },
  ...{ order: 'tenant_id, kind, subject, hash', where: 'tenant_id = :tenant_id' },
}

// A key that is being used is waited for, and ends as well.
const LOCK_FIRST = sql<{ hash: string }>('credentials.lock_first', lockFirst(chunk))

const END_FIRST = sql<{ kind: KeyKind; hash: string }>(
  'credentials.end_first',
  `delete from credentials where ${inChunk(chunk)} returning kind, hash`,
)

/** Behind this one, or from the first. */
export function page(q: Reader, tenant_id: string, after: KeyRow | undefined, rows_max: number) {
  const { kind = '', subject = '', hash = '' } = after ?? {}
  return q.all(PAGE, { tenant_id, kind, subject, hash, rows_max })
}

/** Ends the first keys. Returns those that ended; none when there are no more. */
export async function endFirst(tx: Tx, tenant_id: string, rows_max: number) {
  await tx.all(LOCK_FIRST, { tenant_id, rows_max })
  return tx.all(END_FIRST, { tenant_id, rows_max })
}
