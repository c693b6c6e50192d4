// The key that seals this database, and its rotation.

import { ApiError } from '../base/errors.ts'
import { deriveKey, mac } from '../base/seal.ts'
import type { Sealer, Secrets } from '../contract/dependencies.ts'
import type { Awaitable, Db } from '../db/db.ts'
import { type Resealed, reseal, resealed } from '../db/reseal.ts'
import { foundKeys, type Given, type SecretKeys } from './kept-service.ts'
import { secretsUnder } from './sealer-service.ts'
import * as store from './store.ts'

/** For a command, which seals and opens as the service does. Throws when this database was sealed with other keys. */
export function openableSecrets(db: Db, given: Given): Promise<Secrets> {
  return secretsOf(db, foundKeys(given), { begins: false })
}

/** A node without the key of its database waits for its operator. */
const retry_after_seconds = 30

function startFirst({ places = 'SECRET_KEY and SECRET_KEY_PREVIOUS' }: SecretKeys): Error {
  return new Error(`first start every node of the service with ${places}`)
}

const other_key_message =
  'SECRET_KEY: this database was sealed with another key; give every node the first one'

const retired_message =
  'SECRET_KEY: a rotation has replaced this key; give the key that SECRET_KEY_PREVIOUS has now as SECRET_KEY, and no previous one'

/**
 * Seals and opens for this database, which remembers a check value of the key that seals it. The first node whose SECRET_KEY is
 * a new one begins its rotation, if it has the old one as the previous. Throws when this node lacks a key, and when its SECRET_KEY
 * is the one that the last rotation has replaced. `begins` false: throws where a rotation would begin, since no node that runs
 * opens what is sealed with the new key.
 */
export async function secretsOf(db: Db, given: SecretKeys, { begins = true } = {}): Promise<Secrets> {
  const { current, previous } = given
  const values = { current: checkOf(current), previous: previous === null ? null : checkOf(previous) }
  const check =
    (await store.setting(db, 'secret_key_check')) ??
    (await db.write((tx) => store.keep(tx, 'secret_key_check', values.current)))
  if (check === values.current) {
    const next = await store.setting(db, 'secret_key_next')
    if (next !== null && next !== values.previous) throw new Error(other_key_message)
  } else if (check === values.previous) {
    if (!begins && (await store.setting(db, 'secret_key_next')) !== values.current) throw startFirst(given)
    const holds = await beginRotation(db, current, previous!)
    if (!holds) return secretsOf(db, given, { begins }) // it has ended meanwhile
  } else throw new Error(other_key_message)
  const plain = secretsUnder(current, { previous })
  const kept = await store.setting(db, fingerprint_name)
  if (kept === null) return following({ current, previous }, plain)
  const fingerprints = plain.open(fingerprint_name, kept)
  return following({ current, previous }, secretsUnder(current, { previous, fingerprints }))
}

/**
 * Seals with the key that the database says, in the transaction of what is sealed: the end of a rotation waits for those that have
 * looked before, and a node that runs on with the replaced key seals with the new one, or not at all when it does not have it.
 */
function following({ current, previous }: SecretKeys, own: Secrets & Sealer): Secrets {
  const value = checkOf(current)
  const other = previous === null ? null : { sealer: secretsUnder(previous), value: checkOf(previous) }
  return {
    ...own,
    async sealerIn(tx) {
      const check = await store.sealing(tx)
      if (check === value) return own
      if (check !== other?.value)
        throw new ApiError('UNAVAILABLE', { details: { reason: 'secret_key_replaced' }, retry_after_seconds })
      return (await store.setting(tx, 'secret_key_retired')) === value ? other.sealer : own
    },
  }
}

/** The check values that a database has. */
export type KeyState = Readonly<
  Partial<Record<'secret_key_check' | 'secret_key_next' | 'secret_key_retired', string>>
>

/** Throws, as a node would that starts with these keys, unless they open what a database in this state has sealed. */
export function requireOpenable(state: KeyState, { current, previous }: SecretKeys): void {
  const { secret_key_check: check, secret_key_next: next, secret_key_retired: retired } = state
  if (check === undefined) return // no service has opened it yet
  const values = [checkOf(current), previous === null ? null : checkOf(previous)]
  if (check === values[1] && retired === values[0]) throw new Error(retired_message)
  if (!values.includes(check) || (next !== undefined && !values.includes(next)))
    throw new Error(other_key_message)
}

/** False until the first service has opened the database. */
export async function hasServed(db: Db): Promise<boolean> {
  return (await store.setting(db, 'secret_key_check')) !== null
}

function checkOf(secret_key: string): string {
  return mac(deriveKey(secret_key, 'check'), 'secret_key_check').toString('hex')
}

/** Its name in the database, and the context that it is sealed in. */
const fingerprint_name = 'fingerprint_key'

/**
 * Fingerprints are how rows are found, so that they stay as they are: their key is kept, sealed. False when the previous key does
 * not seal this database any more.
 */
async function beginRotation(db: Db, current: string, previous: string): Promise<boolean> {
  const next = checkOf(current)
  if ((await store.setting(db, 'secret_key_retired')) === next) throw new Error(retired_message)
  const kept = await store.setting(db, 'secret_key_next')
  if (kept === next) return true
  if (kept !== null) throw new Error(other_key_message)
  const fingerprints = deriveKey(previous, 'fingerprints').toString('hex')
  const sealed = secretsUnder(current).seal(fingerprint_name, fingerprints)
  const begun = await db.write(async (tx) => {
    if (!(await store.lockCheck(tx, checkOf(previous)))) return null
    await store.keep(tx, fingerprint_name, sealed)
    return store.keep(tx, 'secret_key_next', next)
  })
  if (begun !== null && begun !== next) throw new Error(other_key_message)
  return begun !== null
}

/**
 * Seals everything again that the previous key has sealed, in chunks, while nodes that have both keys serve. Afterwards the
 * new key alone is enough. One that was interrupted is called again, with both keys. Returns how many texts it sealed. Throws when no node has begun the rotation, and when a text
 * opens under neither key.
 */
export async function rotateKey(
  db: Db,
  given: SecretKeys,
  sealed: readonly Resealed[],
  allTenants: () => Awaitable<readonly { tenant_id: string }[]>,
): Promise<number> {
  const { current, previous } = given
  const [check, next, retired] = [
    await store.setting(db, 'secret_key_check'),
    await store.setting(db, 'secret_key_next'),
    await store.setting(db, 'secret_key_retired'),
  ]
  const has_ended = check === checkOf(current) && next === null
  if (has_ended && (previous === null || retired !== checkOf(previous))) return 0
  if (previous === null || (!has_ended && (check !== checkOf(previous) || next !== checkOf(current))))
    throw startFirst(given)
  const keys = { current, previous }
  const before = await resealAll(db, keys, sealed, allTenants)
  await db.write((tx) => store.endRotation(tx, { check: checkOf(current), retired: checkOf(previous) }))
  // Nothing is sealed with the previous key from now on: what was, before nodes knew, is found now.
  return before + (await resealAll(db, keys, sealed, allTenants))
}

async function resealAll(
  db: Db,
  { current, previous }: { current: string; previous: string },
  sealed: readonly Resealed[],
  allTenants: () => Awaitable<readonly { tenant_id: string }[]>,
): Promise<number> {
  const [to, from] = [secretsUnder(current), secretsUnder(previous)]
  let all = 0
  for (;;) {
    const tenant_ids = (await allTenants()).map(({ tenant_id }) => tenant_id)
    const counts = await reseal(db, [...sealed, own_sealed], tenant_ids, { to, from })
    if (counts.unreadable.length > 0)
      throw new Error(`sealed with neither key, or damaged: ${counts.unreadable.join(', ')}`)
    all += counts.resealed
    if (counts.resealed === 0) return all // also what nodes sealed meanwhile
  }
}

/** The sealed texts of this folder. */
const own_sealed = resealed({
  table: 'service_settings',
  of_service: true,
  key: [['name', '']],
  column: 'value',
  context: ({ name }) => (name === fingerprint_name ? fingerprint_name : null),
})
