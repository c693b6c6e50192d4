import { describe, expect, test } from 'bun:test'
import { clientAddress, parseRanges } from './address.ts'

describe('The client address', () => {
  test.each([
    ['without a header', '192.0.2.1', null, '192.0.2.1'],
    ['of a proxy without a header', '10.0.0.1', null, '10.0.0.1'],
    ['behind a proxy', '10.0.0.1', '198.51.100.7', '198.51.100.7'],
    ['behind two proxies', '10.0.0.1', '198.51.100.7, 10.9.9.9', '198.51.100.7'],
    ['behind three, one of them IPv6', '10.0.0.1', '198.51.100.7,fd00::5 , 10.9.9.9', '198.51.100.7'],
    ['that invented hops before itself', '10.0.0.1', '1.2.3.4, 198.51.100.7', '198.51.100.7'],
    ['that claims to be a proxy behind itself', '10.0.0.1', '10.0.0.9, 198.51.100.7', '198.51.100.7'],
    ['when every hop is a proxy', '10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
    ['with IPv6', 'fd00::1', '2001:db8::7', '2001:db8::7'],
    ['of a proxy seen as an IPv4-mapped address', '::ffff:10.0.0.1', '198.51.100.7', '198.51.100.7'],
    ['when the last hop is no address', '10.0.0.1', '198.51.100.7, unknown', '10.0.0.1'],
    ['when an earlier hop is no address', '10.0.0.1', 'unknown, 10.0.0.2', '10.0.0.2'],
    ['when the header is empty', '10.0.0.1', '', '10.0.0.1'],
    ['when the header is a comma', '10.0.0.1', ',', '10.0.0.1'],
    ['from a peer that is no proxy', '192.0.2.1', '198.51.100.7', '192.0.2.1'],
    ['from a peer without an address', 'unknown', '198.51.100.7', 'unknown'],
    ['from the neighbour of a single trusted address', '172.16.0.2', '198.51.100.7', '172.16.0.2'],
    ['from that single address', '172.16.0.1', '198.51.100.7', '198.51.100.7'],
  ] as [string, string, string | null, string][])('%s', (_, peer, forwarded_for, client) => {
    const trusted = parseRanges('10.0.0.0/8, fd00::/8, 172.16.0.1')
    expect(clientAddress(peer, forwarded_for, trusted)).toBe(client)
  })

  test('is the peer when nobody is trusted', () => {
    expect(clientAddress('10.0.0.1', '198.51.100.7', [])).toBe('10.0.0.1')
  })
})

describe('TRUST_PROXY', () => {
  test.each([
    ['127.0.0.1', [32]],
    ['::1', [128]],
    ['127.0.0.1,::1', [32, 128]],
    [' 10.0.0.0/8 , 192.168.0.0/16 ', [8, 16]],
    ['0.0.0.0/0', [0]],
    ['2001:db8::/32', [32]],
  ] as [string, number[]][])('%j is a comma list of addresses and ranges', (text, bits) => {
    expect(parseRanges(text).map(([, length]) => length)).toEqual(bits)
  })

  test.each([
    '',
    'proxy',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.1,',
    '300.0.0.1',
    '10.0.0.1 10.0.0.2',
  ])('%j is none', (text) => {
    expect(() => parseRanges(text)).toThrow()
  })
})
