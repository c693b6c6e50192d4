// Every statement on effect_policies.

import { type Reader, sql, type Tx } from '../db/db.ts'
import { any_type, type PolicyRow } from './policy.ts'

const columns = 'type, approval, required_approvals, approvers, lease_seconds_max, created_at, updated_at'
const here = 'tenant_id = :tenant_id and type = :type'

const FIND = sql<PolicyRow>('effects.find_policy', `select ${columns} from effect_policies where ${here}`)

const FOR_TYPE = sql<PolicyRow>(
  'effects.policies_for',
  `select ${columns} from effect_policies where tenant_id = :tenant_id and type in (:type, :any_type)`,
)

const LIST = sql<PolicyRow>(
  'effects.list_policies',
  `select ${columns} from effect_policies where tenant_id = :tenant_id and type > :after order by type limit :rows_max`,
)

const INSERT = sql<PolicyRow>(
  'effects.insert_policy',
  `insert into effect_policies
     (tenant_id, type, approval, required_approvals, approvers, lease_seconds_max, created_at, updated_at)
   values
     (:tenant_id, :type, :approval, :required_approvals, :approvers, :lease_seconds_max, :now, :now)
   on conflict (tenant_id, type) do nothing
   returning ${columns}`,
)

// Its bytes are counted from the approvers that were read.
const UPDATE = sql<PolicyRow>(
  'effects.update_policy',
  `update effect_policies
      set approval = :approval, required_approvals = :required_approvals, approvers = :approvers,
          lease_seconds_max = :lease_seconds_max, updated_at = :now
    where ${here} and approvers is not distinct from :approvers_before
   returning ${columns}`,
)

const DELETE = sql<PolicyRow>(
  'effects.delete_policy',
  `delete from effect_policies where ${here} returning ${columns}`,
)

export function find(q: Reader, tenant_id: string, type: string) {
  return q.one(FIND, { tenant_id, type })
}

/** That of the type comes before that for all types. Null when there is neither. */
export async function forType(q: Reader, tenant_id: string, type: string): Promise<PolicyRow | null> {
  const policies = await q.all(FOR_TYPE, { tenant_id, type, any_type })
  return policies.find((policy) => policy.type === type) ?? policies[0] ?? null
}

/** In the order of their types. */
export function list(q: Reader, tenant_id: string, after: string, rows_max: number) {
  return q.all(LIST, { tenant_id, after, rows_max })
}

type Settings = Omit<PolicyRow, 'created_at' | 'updated_at'>

/** Null when there is one for this type. */
export function insert(tx: Tx, tenant_id: string, settings: Settings) {
  return tx.one(INSERT, { tenant_id, ...settings, now: tx.now })
}

/** Null when there is none, or its approvers are others than those `before`. */
export function update(tx: Tx, tenant_id: string, settings: Settings, before: Pick<PolicyRow, 'approvers'>) {
  return tx.one(UPDATE, { tenant_id, ...settings, approvers_before: before.approvers, now: tx.now })
}

/** Null when there is none. */
export function remove(tx: Tx, tenant_id: string, type: string) {
  return tx.one(DELETE, { tenant_id, type })
}
