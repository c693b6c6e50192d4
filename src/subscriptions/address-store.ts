// Statements on the addresses that get emails from a tenant, and on how many emails it sends.

import { day_ms, hour_ms, type Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging, purgingAll } from '../db/purge.ts'

export const mails_hour_max = limit(
  'subscriptions.mails_hour',
  60,
  'entries',
  'Emails of a tenant in an hour, including those that ask for a confirmation. Past it emails wait for the next hour.',
)
const mails_day_max = limit(
  'subscriptions.mails_day',
  500,
  'entries',
  'Emails of a tenant in a day, counted in UTC. Past it emails wait for the next day.',
)

export type AddressState = 'unconfirmed' | 'confirmed' | 'unsubscribed'

export interface AddressRow {
  address_hash: string
  state: AddressState
  /** Sealed. */
  token: string
  asked_by: string
  /** When an attempt to send the email that asks began; null once its outcome is known. */
  asked_at: Millis | null
  /** When the mail server accepted it. */
  sent_at: Millis | null
  expires_at: Millis
}

const here = 'tenant_id = :tenant_id and address_hash = :address_hash'
const columns = 'address_hash, state, token, asked_by, asked_at, sent_at, expires_at'

const INSERT = sql(
  'subscriptions.insert_address',
  `insert into subscription_addresses
     (tenant_id, address_hash, state, token_hash, token, asked_by, expires_at, created_at)
   values (:tenant_id, :address_hash, 'unconfirmed', :token_hash, :token, :asked_by, :expires_at, :now)
   on conflict (tenant_id, address_hash) do nothing`,
)

const FIND = sql<AddressRow>(
  'subscriptions.find_address',
  `select ${columns} from subscription_addresses where ${here}`,
)

const LOCK = sql<AddressRow>(
  'subscriptions.lock_address',
  `select ${columns} from subscription_addresses where ${here} {locked}`,
)

const LOCK_OF = sql<AddressRow>(
  'subscriptions.lock_address_of',
  `select ${columns} from subscription_addresses
    where tenant_id = :tenant_id
      and address_hash = (select address_hash from subscriptions where tenant_id = :tenant_id and id = :id) {locked}`,
)

const ASK_AGAIN = sql(
  'subscriptions.ask_again',
  `update subscription_addresses
      set token_hash = :token_hash, token = :token, asked_by = :asked_by, asked_at = null, sent_at = null,
          expires_at = :expires_at
    where ${here} and state = 'unconfirmed'`,
)

const ASK_FOR = sql(
  'subscriptions.ask_for',
  `update subscription_addresses set asked_by = :asked_by, expires_at = :expires_at
    where ${here} and state = 'unconfirmed' and sent_at is null`,
)

const BEGIN_ASKING = sql(
  'subscriptions.begin_asking',
  `update subscription_addresses set asked_at = :now where ${here} and state = 'unconfirmed'`,
)

const END_ASKING = sql(
  'subscriptions.end_asking',
  `update subscription_addresses set asked_at = null, sent_at = :sent_at
    where ${here} and state = 'unconfirmed' and asked_at is not null and sent_at is null`,
)

const BY_TOKEN = sql<AddressRow>(
  'subscriptions.address_by_token',
  `select ${columns} from subscription_addresses where tenant_id = :tenant_id and token_hash = :token_hash`,
)

// Runs even when the row has this state already: the update locks it, and so waits for a call that is changing it.
const CHANGE = sql(
  'subscriptions.change_address',
  `update subscription_addresses set state = :state where ${here}`,
)

const COUNT = sql<{ in_hour: number }>(
  'subscriptions.count_mail',
  `insert into subscription_mails (tenant_id, hour, in_hour, day, in_day) values (:tenant_id, :hour, 1, :day, 1)
   on conflict (tenant_id) do update
     set in_hour = case when subscription_mails.hour = :hour then subscription_mails.in_hour + 1 else 1 end,
         in_day = case when subscription_mails.day = :day then subscription_mails.in_day + 1 else 1 end,
         hour = :hour, day = :day
    where (subscription_mails.hour <> :hour or subscription_mails.in_hour < :hour_max)
      and (subscription_mails.day <> :day or subscription_mails.in_day < :day_max)
   returning in_hour`,
)

export interface NewAddress {
  address_hash: string
  token_hash: string
  /** Sealed. */
  token: string
  asked_by: string
  expires_at: Millis
}

/** False when it is known. */
export async function insert(tx: Tx, tenant_id: string, address: NewAddress): Promise<boolean> {
  return (await tx.run(INSERT, { tenant_id, ...address, now: tx.now })) === 1
}

export function find(q: Reader, tenant_id: string, address_hash: string) {
  return q.one(FIND, { tenant_id, address_hash })
}

export function lock(tx: Tx, tenant_id: string, address_hash: string) {
  return tx.one(LOCK, { tenant_id, address_hash })
}

/** Of a subscription; null for one that sends no emails, or is gone. */
export function lockOf(tx: Tx, tenant_id: string, id: string) {
  return tx.one(LOCK_OF, { tenant_id, id })
}

/** Another subscription asks the address, with a new link. */
export function askAgain(tx: Tx, tenant_id: string, address: NewAddress) {
  return tx.run(ASK_AGAIN, { tenant_id, ...address })
}

/** Another subscription asks the address, with the same link: an email with it may be under way. */
export function askFor(
  tx: Tx,
  tenant_id: string,
  { address_hash, asked_by, expires_at }: Pick<NewAddress, 'address_hash' | 'asked_by' | 'expires_at'>,
) {
  return tx.run(ASK_FOR, { tenant_id, address_hash, asked_by, expires_at })
}

/** An attempt to send the email that asks begins. */
export function beginAsking(tx: Tx, tenant_id: string, address_hash: string) {
  return tx.run(BEGIN_ASKING, { tenant_id, address_hash, now: tx.now })
}

/** That attempt has ended: the mail server accepted it, or it may be tried again. */
export function endAsking(tx: Tx, tenant_id: string, address_hash: string, was_sent: boolean) {
  return tx.run(END_ASKING, { tenant_id, address_hash, sent_at: was_sent ? tx.now : null })
}

export function byToken(q: Reader, tenant_id: string, token_hash: string) {
  return q.one(BY_TOKEN, { tenant_id, token_hash })
}

/** Nobody else changes it before this transaction ends. */
export function change(tx: Tx, tenant_id: string, address_hash: string, state: AddressState) {
  return tx.run(CHANGE, { tenant_id, address_hash, state })
}

/** Counts an email. False when the tenant may send no more in this hour, or on this day. */
export async function countMail(tx: Tx, tenant_id: string): Promise<boolean> {
  const [hour, day] = [Math.floor(tx.now / hour_ms), Math.floor(tx.now / day_ms)]
  const limits = { hour_max: mails_hour_max, day_max: mails_day_max }
  return (await tx.one(COUNT, { tenant_id, hour, day, ...limits })) !== null
}

export const purge = purging('subscriptions.purge_addresses', {
  ...{ table: 'subscription_addresses', key: 'tenant_id, address_hash' },
})

export const purgeMails = purgingAll('subscriptions.purge_mails', 'subscription_mails')
