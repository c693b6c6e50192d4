// Signatures of the requests we send: Standard Webhooks 1.0.0, symmetric scheme v1.

export interface Signed {
  /** The same on every retry. Holds no full stop, which separates the signed parts. */
  id: string
  /** Of the attempt, whole seconds since the Unix epoch. Receivers allow five minutes either way. */
  timestamp_seconds: number
  /** Exactly the bytes that are sent. */
  body: string | Uint8Array
  /** `whsec_` + base64. Two while a secret rotates: one signature each, any of which may verify. */
  secrets: readonly string[]
}

const secret_prefix = 'whsec_'

/** `webhook-id`, `webhook-timestamp` and `webhook-signature`: `v1,<base64 HMAC-SHA256 of "id.timestamp.body">`. */
export function signatureHeaders({ id, timestamp_seconds, body, secrets }: Signed): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const hmac = new Bun.CryptoHasher('sha256', keyOf(secret))
    return `v1,${hmac.update(`${id}.${timestamp_seconds}.`).update(body).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp_seconds),
    'webhook-signature': signatures.join(' '),
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.startsWith(secret_prefix) ? secret.slice(secret_prefix.length) : secret, 'base64')
}
