// Signed notes (c2sp.org/signed-note) with Ed25519 keys (RFC 8032), and what a checkpoint says in one
// (c2sp.org/tlog-checkpoint).

import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import type { TreeHead } from './merkle.ts'
import { hashText } from './tiles.ts'

/** The byte that stands for Ed25519 in a key. */
const ed25519 = Uint8Array.of(1)
const key_id_bytes = 4

export interface KeyPair {
  /** 32 bytes, base64url. */
  public_key: string
  /** The seed, 32 bytes, base64url. */
  private_key: string
}

export function newKeyPair(): KeyPair {
  const { x, d } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  return { public_key: x!, private_key: d! }
}

/** `text`, which ends with a line feed, with one signature under this name. */
export function signedNote(text: string, name: string, { public_key, private_key }: KeyPair): string {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: public_key, d: private_key }
  const key = createPrivateKey({ key: jwk, format: 'jwk' })
  const signature = Buffer.concat([keyId(name, public_key), sign(null, Buffer.from(text), key)])
  return `${text}\n— ${name} ${signature.toString('base64')}\n`
}

/** `name+hash+key`, by which others know the key. */
export function verifierKey(name: string, public_key: string): string {
  const key = Buffer.concat([ed25519, Buffer.from(public_key, 'base64url')])
  return `${name}+${keyId(name, public_key).toString('hex')}+${key.toString('base64')}`
}

function keyId(name: string, public_key: string): Buffer {
  const hasher = new Bun.CryptoHasher('sha256').update(`${name}\n`).update(ed25519)
  return hasher.update(Buffer.from(public_key, 'base64url')).digest().subarray(0, key_id_bytes)
}

/** The text of a checkpoint. `extensions` are lines without their line feed. */
export function checkpointText(
  origin: string,
  { size, root }: TreeHead,
  extensions: readonly string[],
): string {
  return [origin, size, hashText(root), ...extensions, ''].join('\n')
}

/** How many events of this workflow are among the leaves. JSON, because an id may have any characters. */
export function workflowLine(workflow_id: string, events: number): string {
  return `workflow ${JSON.stringify(workflow_id)} ${events}`
}

/** How many of them are among the first `after` leaves, after which a bundle begins. */
export function workflowBeforeLine(workflow_id: string, events: number, after: number): string {
  return `workflow-before ${JSON.stringify(workflow_id)} ${events} ${after}`
}
