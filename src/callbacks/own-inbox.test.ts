import { expect, test } from 'bun:test'
import type { EgressPolicy } from './guard.ts'
import { isOwnInbox } from './own-inbox.ts'

const listening = { host: '0.0.0.0', port: 8420 }
const answers: Record<string, string[]> = {
  'self.dns.test': ['93.184.216.1'],
  'alias.dns.test': ['93.184.216.9', '10.0.0.1'],
  'other.dns.test': ['93.184.216.9'],
}

function policyOf(public_url: string): EgressPolicy {
  return {
    ...{ allow: [], https_only: false, public_url, listening },
    interfaces: () => ['10.0.0.1'],
    resolve: async (_, name) => answers[name] ?? [],
  }
}

test.each([
  ['https://self.dns.test', 'https://self.dns.test/hook/t', true],
  ['https://self.dns.test', 'https://SELF.dns.test./hook/t/below?x=1', true],
  ['https://self.dns.test', 'http://self.dns.test/hook/t', true],
  ['https://self.dns.test', 'http://self.dns.test:80/hook/t', true],
  ['https://self.dns.test', 'http://self.dns.test:8080/hook/t', false],
  ['https://self.dns.test/base', 'https://self.dns.test/base/hook/t', true],
  ['https://self.dns.test', 'https://self.dns.test/hooks/t', false],
  ['https://self.dns.test', 'http://other.dns.test/hook/t', false],
  ['https://self.dns.test', 'http://gone.dns.test/hook/t', false],
  ['https://93.184.216.1', 'http://93.184.216.1/hook/t', true],
  ['https://93.184.216.1', 'https://self.dns.test/hook/t', true],
  ['https://self.dns.test', 'http://alias.dns.test:8420/hook/t', true],
  ['https://self.dns.test/base', 'http://alias.dns.test:8420/hook/t', true],
  ['https://self.dns.test', 'http://alias.dns.test:8421/hook/t', false],
  ['https://self.dns.test', 'http://alias.dns.test:8420/other', false],
  ['https://self.dns.test', 'a@example.com', false],
])('of PUBLIC_URL %s, %s is an inbox: %p', async (public_url, url, expected) => {
  expect(await isOwnInbox(policyOf(public_url), 'ten_1', url)).toBe(expected)
})
