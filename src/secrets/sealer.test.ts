import { expect, test } from 'bun:test'
import { secretsUnder } from './service.ts'

const context = 'signing_secret ten_a'

test('a sealed text opens as often as it is asked for, under its own context alone', () => {
  const secrets = secretsUnder('a key')
  const sealed = secrets.seal(context, 'text')
  for (let time = 0; time < 3; time++) {
    expect(secrets.open(context, sealed)).toBe('text')
    expect(() => secrets.open('signing_secret ten_b', sealed)).toThrow()
    expect(() => secretsUnder('another key').open(context, sealed)).toThrow()
  }
})

test('what was opened before many others opens again', () => {
  const secrets = secretsUnder('a key')
  const texts = Array.from({ length: 1_001 }, (_, i) => `text ${i}`)
  const sealed = texts.map((text) => secrets.seal(context, text))
  for (let time = 0; time < 2; time++) expect(sealed.map((one) => secrets.open(context, one))).toEqual(texts)
})
