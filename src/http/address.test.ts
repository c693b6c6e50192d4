import { describe, expect, test } from 'bun:test'
import { clientAddress, clientKey, networksOf, normalAddress, parseRanges } from './address.ts'

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
    ['when the last hop is not an address', '10.0.0.1', '198.51.100.7, unknown', '10.0.0.1'],
    ['when an earlier hop is not an address', '10.0.0.1', 'unknown, 10.0.0.2', '10.0.0.2'],
    ['when the header is empty', '10.0.0.1', '', '10.0.0.1'],
    ['when the header is a comma', '10.0.0.1', ',', '10.0.0.1'],
    ['from a peer that is not a proxy', '192.0.2.1', '198.51.100.7', '192.0.2.1'],
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

describe('An address has one spelling', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['203.0.113.9:1000', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::FFFF:203.0.113.9', '203.0.113.9'],
    ['::ffff:cb00:7109', '203.0.113.9'],
    ['0:0:0:0:0:ffff:cb00:7109', '203.0.113.9'],
    ['[::ffff:203.0.113.9]:443', '203.0.113.9'],
    ['2001:db8::1', '2001:db8::1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:0db8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8:0::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]:443', 'fe80::1'],
  ])('%s is %s', (text, address) => {
    expect(normalAddress(text)).toBe(address)
    expect(normalAddress(address)).toBe(address)
    expect(clientAddress('10.0.0.1', `1.2.3.4, ${text}`, parseRanges('10.0.0.0/8'))).toBe(address)
    expect(clientAddress(text, null, [])).toBe(address)
  })

  test.each([
    ...['', 'unknown', 'x1', '0313.0.113.11', '203.0.113.011', '203.113.11', '0xcb.0.113.11', '3405803787'],
    ...['256.0.0.1', '1.2.3.4.5', '203.0.113.9:', '203.0.113.9:123456', '203.0.113.9%eth0'],
    ...['::ffff:010.2.3.4', '::ffff:0x1.2.3.4', '1::2::3', '[2001:db8::1', '2001:db8::1]', '[203.0.113.9]'],
    ...['[2001:db8::1]:x', '[]', '%eth0', '2001:db8::12345'],
  ])('%j is none, and the hop after it is the client', (text) => {
    expect(normalAddress(text)).toBeNull()
    expect(clientAddress('10.0.0.1', `1.2.3.4, ${text}, 10.0.0.7`, parseRanges('10.0.0.0/8'))).toBe(
      '10.0.0.7',
    )
  })

  test('a proxy is trusted in every spelling', () => {
    const trusted = parseRanges('10.0.0.0/8, fd00::/8')
    for (const proxy of ['10.0.0.9:80', '::ffff:10.0.0.9', '[fd00::9]:443', 'FD00::9']) {
      expect([proxy, clientAddress('10.0.0.1', `198.51.100.7, ${proxy}`, trusted)]).toEqual([
        proxy,
        '198.51.100.7',
      ])
    }
  })

  test('a range is of proxies in every spelling, also as IPv6 carries IPv4', () => {
    for (const range of ['::ffff:10.0.0.1', '::ffff:a00:1/128', '::ffff:10.0.0.0/104', '::ffff:0:0/96'])
      for (const peer of ['10.0.0.1', '::ffff:10.0.0.1'])
        expect([range, clientAddress(peer, '198.51.100.7', parseRanges(range))]).toEqual([
          range,
          '198.51.100.7',
        ])
    const trusted = parseRanges('::ffff:10.0.0.0/104')
    expect(clientAddress('11.0.0.1', '198.51.100.7', trusted)).toBe('11.0.0.1')
    expect(clientAddress('fd00::1', '198.51.100.7', parseRanges('::ffff:0:0/96'))).toBe('fd00::1')
  })
})

test('A client is its IPv4 address, or its /64 of IPv6', () => {
  expect(networksOf('203.0.113.9')).toEqual({
    ...{ client: '203.0.113.9', site: null, provider: '203.0.0.0/16' },
  })
  expect(networksOf('2001:db8:1:2:3:4:5:6')).toEqual({
    ...{ client: '2001:db8:1:2::/64', site: '2001:db8:1::/48', provider: '2001:db8::/32' },
  })
  expect(['203.0.113.9', '2001:db8::1', '2001:db8:0:0:ffff::', 'unknown'].map(clientKey)).toEqual([
    ...['203.0.113.9', '2001:db8:0:0::/64', '2001:db8:0:0::/64', 'unknown'],
  ])
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
