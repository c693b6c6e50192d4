// Checkpoints: signed notes (c2sp.org/signed-note) about a tree (c2sp.org/tlog-checkpoint).

import { createHash, createPublicKey, verify } from 'node:crypto'
import { Refused } from './refused.ts'

export interface Checkpoint {
  origin: string
  size: number
  root: Buffer
  /** The counts that it states, by workflow. */
  workflows: Map<string, number>
  /** How many events of a workflow are up to an event: where a bundle begins behind that. */
  before: Map<string, { after: number; count: number }>
  /** The key that has signed it. */
  key: string
}

/** Reads a note that one of these keys has signed. `what` names it in refusals. Throws `Refused`. */
export function checkpointOf(what: string, note: string, keys: readonly string[]): Checkpoint {
  const end = note.lastIndexOf('\n\n')
  if (end === -1) throw new Refused(`${what} is not a signed note`)
  const text = note.slice(0, end + 1)
  const signatures = note.slice(end + 2).split('\n')
  const key = keys.find((key) => signatures.some((line) => isSignedBy(text, line, key)))
  if (key === undefined) throw new Refused(`${what} is not signed by a known key`)
  const [origin = '', size, root, ...lines] = text.slice(0, -1).split('\n')
  if (!/^(0|[1-9]\d{0,14})$/.test(size ?? '')) throw new Refused(`${what} has no size`)
  if (key.split('+')[0] !== origin) throw new Refused(`${what} is signed by the key of another journal`)
  return {
    origin,
    size: Number(size),
    root: hashIn(root),
    workflows: new Map(lines.flatMap(workflowIn)),
    before: new Map(lines.flatMap(beginningIn)),
    key,
  }
}

function isSignedBy(text: string, line: string, verifier_key: string): boolean {
  const { name, id, public_key } = partsOf(verifier_key)
  const opening = `— ${name} `
  if (!line.startsWith(opening)) return false
  const bytes = Buffer.from(line.slice(opening.length), 'base64')
  if (!bytes.subarray(0, 4).equals(id)) return false
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: public_key.toString('base64url') }
  return verify(null, Buffer.from(text), createPublicKey({ key: jwk, format: 'jwk' }), bytes.subarray(4))
}

/** Throws `Refused` for what is not a key of Ed25519 with its right hash. */
function partsOf(verifier_key: string): { name: string; id: Buffer; public_key: Buffer } {
  const refused = new Refused(`${verifier_key} is not a key of the form name+hash+key`)
  const [name, hash, ...rest] = verifier_key.split('+')
  const key = Buffer.from(rest.join('+'), 'base64')
  if (!name || !hash || key.length !== 33 || key[0] !== 1) throw refused
  const id = createHash('sha256').update(`${name}\n`).update(key).digest().subarray(0, 4)
  if (id.toString('hex') !== hash) throw refused
  return { name, id, public_key: key.subarray(1) }
}

/** 32 bytes in base64. Throws `Refused`. */
export function hashIn(text: unknown): Buffer {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : null
  if (bytes?.length !== 32 || bytes.toString('base64') !== text) throw new Refused(`${text} is not a hash`)
  return bytes
}

function workflowIn(line: string): [string, number][] {
  const [, text, count] = /^workflow (".*") (0|[1-9]\d*)$/s.exec(line) ?? []
  const id = idIn(text)
  return id === null ? [] : [[id, Number(count)]]
}

function beginningIn(line: string): [string, { after: number; count: number }][] {
  const [, text, count, after] = /^workflow-before (".*") (0|[1-9]\d*) ([1-9]\d*)$/s.exec(line) ?? []
  const id = idIn(text)
  return id === null ? [] : [[id, { after: Number(after), count: Number(count) }]]
}

/** Null for what is not JSON. */
function idIn(text: string | undefined): string | null {
  try {
    return text === undefined ? null : (JSON.parse(text) as string)
  } catch {
    return null
  }
}
