// The keys that sign checkpoints: one for the whole service, made on first use, the same for all nodes. Those before stay
// listed, so that notes that they signed can be checked.

import { limit } from '../base/limit.ts'
import type { Secrets } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import * as store from './key-store.ts'
import { type KeyPair, newKeyPair, verifierKey } from './note.ts'

const keys_max = limit(
  'seal.keys',
  100,
  'entries',
  'Keys of the seal that are listed, the newest first: the one that signs, and those before it.',
)

export interface Keys {
  origin: string
  /** The key that signs. */
  pair: KeyPair
  /** As verifiers know them; the one that signs comes first. */
  verifier_keys: string[]
}

/**
 * The name under which the checkpoints of a tenant are signed: the origin of its journal. A journal that was restored from a
 * backup may continue differently from the original, so it is another journal, with the next epoch in its name.
 */
function originOf(tenant_id: string, epoch: number): string {
  return epoch === 1 ? `waystation/${tenant_id}` : `waystation/${tenant_id}/${epoch}`
}

export async function keysFor(db: Db, secrets: Secrets, tenant_id: string): Promise<Keys> {
  const rows = await existing(db, secrets)
  const [{ number, public_key, private_key, epoch }] = rows
  const name = originOf(tenant_id, epoch)
  return {
    origin: name,
    pair: { public_key, private_key: secrets.open(keyContext(number), private_key) },
    verifier_keys: rows.map((row) => verifierKey(originOf(tenant_id, row.epoch), row.public_key)),
  }
}

/** Makes a new key, which signs from now on on every node. Returns how many there are now. */
export async function rotate(db: Db, secrets: Secrets): Promise<number> {
  const [latest] = await existing(db, secrets)
  const number = latest.number + 1
  if (await db.write((tx) => add(tx, secrets, number, latest.epoch))) return number
  throw new Error('the key was rotated by somebody else at the same time')
}

/** From now on the journals of all tenants have another origin, and a new key signs for it. Returns its epoch. */
export async function beginEpoch(tx: Tx, secrets: Secrets): Promise<number> {
  const [latest] = await store.keys(tx, 1)
  const epoch = (latest?.epoch ?? 1) + 1
  await add(tx, secrets, (latest?.number ?? 0) + 1, epoch)
  return epoch
}

async function existing(db: Db, secrets: Secrets): Promise<[store.KeyRow, ...store.KeyRow[]]> {
  const [latest, ...others] = await store.keys(db, keys_max)
  if (latest) return [latest, ...others]
  await db.write((tx) => add(tx, secrets, 1, 1))
  const [made] = await store.keys(db, keys_max)
  return [made!]
}

/** False when there is one of this number. */
async function add(tx: Tx, secrets: Secrets, number: number, epoch: number): Promise<boolean> {
  const { public_key, private_key } = newKeyPair()
  const sealed = (await secrets.sealerIn(tx)).seal(keyContext(number), private_key)
  return store.addKey(tx, { number, public_key, private_key: sealed, epoch })
}

/** The context that a sealed key is bound to. */
export function keyContext(number: number): string {
  return `seal key ${number}`
}
