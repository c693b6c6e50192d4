// Statements on subscriptions that send emails, by their address.

import { type Reader, sql, type Tx } from '../db/db.ts'

const here = 'tenant_id = :tenant_id and id = :id'

const OF_ADDRESS = sql<{ id: string }>(
  'subscriptions.of_address',
  `select id from subscriptions {by subscriptions_addresses}
    where tenant_id = :tenant_id and address_hash = :address_hash and id > :after_id
    order by tenant_id, address_hash, id limit :rows_max`,
)

const FIRST_WAITING = sql<{ id: string }>(
  'subscriptions.first_waiting',
  `select id from subscriptions {by subscriptions_addresses}
    where tenant_id = :tenant_id and address_hash = :address_hash and status = 'unconfirmed'
    order by tenant_id, address_hash, id limit 1`,
)

const CONFIRM = sql(
  'subscriptions.confirm',
  `update subscriptions
      set status = case when paused_by_admin = 1 then 'paused' else 'active' end,
          paused_reason = case when paused_by_admin = 1 then 'requested' end, position = :position, updated_at = :now
    where ${here} and (status = 'unconfirmed' or paused_reason = 'unsubscribed')`,
)

const UNSUBSCRIBE = sql(
  'subscriptions.unsubscribe',
  `update subscriptions set status = 'paused', paused_reason = 'unsubscribed', updated_at = :now
    where ${here} and (status <> 'paused' or paused_reason <> 'unsubscribed')`,
)

/** The subscriptions that send to an address. */
export function ofAddress(
  q: Reader,
  tenant_id: string,
  address_hash: string,
  after_id: string,
  rows_max: number,
) {
  return q.all(OF_ADDRESS, { tenant_id, address_hash, after_id, rows_max })
}

/** The subscription to the address that has waited for longest for its holder to confirm; null when none does. */
export function firstWaiting(q: Reader, tenant_id: string, address_hash: string) {
  return q.one(FIRST_WAITING, { tenant_id, address_hash })
}

/** Its emails begin with the events after this number, once it is not paused by an admin. False unless it waited for that. */
export async function confirm(tx: Tx, tenant_id: string, id: string, position: number): Promise<boolean> {
  return (await tx.run(CONFIRM, { tenant_id, id, position, now: tx.now })) === 1
}

/** By the holder of the address. False when it was so before. */
export async function unsubscribe(tx: Tx, tenant_id: string, id: string): Promise<boolean> {
  return (await tx.run(UNSUBSCRIBE, { tenant_id, id, now: tx.now })) === 1
}
