// The keys that sign checkpoints: one for the whole service, made on first use, the same for all nodes. Those before stay
// listed, so that notes that they signed can be checked.

import { limit } from '../base/limit.ts'
import type { Secrets } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import * as store from './key-store.ts'
import { newKeyPair, type Signer, signerOf, verifierKey } from './note.ts'

const keys_max = limit(
  'seal.keys',
  100,
  'entries',
  'Keys of the seal that are listed, the newest first: the one that signs, and those before it.',
)

export interface Keys {
  signer: Signer
  /** As others know them, the one that signs first. */
  verifier_keys: string[]
}

/** The name under which the checkpoints of a tenant are signed: the origin of its journal. */
export function originOf(tenant_id: string): string {
  return `waystation/${tenant_id}`
}

export async function keysFor(db: Db, secrets: Secrets, tenant_id: string): Promise<Keys> {
  const rows = await existing(db, secrets)
  const [{ number, public_key, private_key }] = rows
  const name = originOf(tenant_id)
  return {
    signer: signerOf(name, { public_key, private_key: secrets.open(contextOf(number), private_key) }),
    verifier_keys: rows.map((row) => verifierKey(name, row.public_key)),
  }
}

/** Makes a new key, which signs from now on on every node. Returns how many there are now. */
export async function rotate(db: Db, secrets: Secrets): Promise<number> {
  const [latest] = await existing(db, secrets)
  const number = latest.number + 1
  if (await add(db, secrets, number)) return number
  throw new Error('the key was rotated by somebody else at the same time')
}

async function existing(db: Db, secrets: Secrets): Promise<[store.KeyRow, ...store.KeyRow[]]> {
  const [latest, ...others] = await store.keys(db, keys_max)
  if (latest) return [latest, ...others]
  await add(db, secrets, 1)
  const [made] = await store.keys(db, keys_max)
  return [made!]
}

/** False when there is one of this number. */
function add(db: Db, secrets: Secrets, number: number): Promise<boolean> {
  const { public_key, private_key } = newKeyPair()
  const sealed = secrets.seal(contextOf(number), private_key)
  return db.write((tx) => store.addKey(tx, { number, public_key, private_key: sealed }))
}

function contextOf(number: number): string {
  return `seal key ${number}`
}
