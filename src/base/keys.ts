// API keys: prefix + 32 base62 characters from the system's random source + 6 base62 characters of CRC-32 over
// the text before it. A secret scanner finds them with  svc_(adm|agt|apr)_[0-9A-Za-z]{38}  .

export const prefixes = { admin: 'svc_adm_', agent: 'svc_agt_', approval: 'svc_apr_' } as const
export type KeyKind = keyof typeof prefixes

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const prefix_length = 8
const random_length = 32
const checksum_length = 6
const key_form = /^svc_(adm|agt|apr)_[0-9A-Za-z]{38}$/

export function newKey(kind: KeyKind): string {
  const body = prefixes[kind] + randomBase62(random_length)
  return body + checksum(body)
}

/** The kind of a well-formed key whose checksum holds, else null. Asks no database. */
export function keyKind(key: string): KeyKind | null {
  if (!key_form.test(key)) return null
  const body_length = prefix_length + random_length
  if (checksum(key.slice(0, body_length)) !== key.slice(body_length)) return null
  return key.startsWith(prefixes.admin) ? 'admin' : key.startsWith(prefixes.agent) ? 'agent' : 'approval'
}

/** True for text in the form of a key of ours, with any checksum. */
export function looksLikeKey(text: string): boolean {
  return text.startsWith('svc_adm_') || text.startsWith('svc_agt_') || text.startsWith('svc_apr_')
}

/** An inbox's token, the secret part of its URL: 190 random bits. */
export function newToken(): string {
  return randomBase62(random_length)
}

const token_form = /^[0-9A-Za-z]{32}$/

/** True for text in the form of a token of ours. */
export function looksLikeToken(text: string): boolean {
  return token_form.test(text)
}

/** The text that is stored instead of a key: SHA-256, hexadecimal. Keys hold 190 random bits, so no slow hash is needed. */
export function hashKey(key: string): string {
  return hashOf(key)
}

/** SHA-256, hexadecimal. */
export function hashOf(text: string): string {
  return Bun.SHA256.hash(text, 'hex')
}

export function lastFour(key: string): string {
  return key.slice(-4)
}

/** `svc_agt_****x7Qa` */
export function maskedKey(kind: KeyKind, last_four: string): string {
  return `${prefixes[kind]}****${last_four}`
}

/** Uniform: a byte of 248 or more is thrown away, because 256 is not a multiple of 62. */
function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < 248 && text.length < length) text += base62[byte % 62]
    }
  }
  return text
}

function checksum(text: string): string {
  let rest = Bun.hash.crc32(text)
  let digits = ''
  for (let i = 0; i < checksum_length; i++) {
    digits = base62[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
