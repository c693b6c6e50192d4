import { expect, test } from 'bun:test'
import { createPublicKey, verify } from 'node:crypto'
import { verifiedText } from '../../test/seal/note.ts'
import { checkpointText, newKeyPair, signedNote, signerOf, verifierKey, workflowLine } from './note.ts'

/** The example of Go's package golang.org/x/mod/sumdb/note, from which the format comes. */
const known_key = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
const known_text =
  "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
const known_note = `${known_text}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n`

test('a note of the reference has its text and its key', () => {
  expect(verifiedText(known_note, known_key)).toBe(known_text)
  const public_key = Buffer.from(known_key.split('+').slice(2).join('+'), 'base64').subarray(1)
  expect(verifierKey('PeterNeumann', public_key.toString('base64url'))).toBe(known_key)
})

test('RFC 8032: the first test vector is signed as there', () => {
  const bytes = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')
  const signer = signerOf('test', {
    private_key: bytes('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'),
    public_key: bytes('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'),
  })
  expect(Buffer.from(signer.sign('')).toString('hex')).toBe(
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  )
})

test('a checkpoint is its origin, size, root and lines, signed', () => {
  const pair = newKeyPair()
  const text = checkpointText('waystation/tnt_1', { size: 3, root: new Uint8Array(32) }, [
    workflowLine('a "b"\nc', 2),
  ])
  expect(text).toBe(`waystation/tnt_1\n3\n${'A'.repeat(43)}=\nworkflow "a \\"b\\"\\nc" 2\n`)
  const note = signedNote(text, signerOf('waystation/tnt_1', pair))
  const key = verifierKey('waystation/tnt_1', pair.public_key)
  expect(key).toMatch(/^waystation\/tnt_1\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$/)
  expect(verifiedText(note, key)).toBe(text)
  const signature = Buffer.from(note.trimEnd().split(' ').at(-1)!, 'base64').subarray(4)
  const public_key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: pair.public_key },
    format: 'jwk',
  })
  expect(verify(null, Buffer.from(text), public_key, signature)).toBe(true)
})

test.each([
  ['another text', known_note.replace('cryptography', 'cryptanalysis'), known_key],
  ['another name', known_note.replace('— Peter', '— Paul'), known_key],
  ['another key', known_note, verifierKey('PeterNeumann', newKeyPair().public_key)],
  ['a hash that is not that of the key', known_note, known_key.replace('c74f20a3', 'c74f20a4')],
  ['no key', known_note, 'PeterNeumann'],
  ['no signature', known_text, known_key],
])('a note is refused: %s', (_, note, key) => {
  expect(verifiedText(note, key)).toBe(null)
})
