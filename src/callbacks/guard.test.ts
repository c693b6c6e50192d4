import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { TestClock } from '../../test/support/clock.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { forEachRacedService } from '../../test/support/service.ts'
import type { Outcome } from './attempt.ts'
import { Sender } from './deliver.ts'
import { openConnection, type Peer } from './dial.ts'
import {
  type EgressPolicy,
  judge,
  judgeUrl,
  type Resolver,
  refusalAtCreation,
  systemInterfaces,
} from './guard.ts'
import { isPublic, parseAddress, parseAllow } from './ranges.ts'

const own_url = 'http://self.dns.test'
const ten = 'ten_1'

function policyOf(changes: Partial<EgressPolicy> = {}): EgressPolicy {
  return {
    ...{ allow: [], https_only: false, public_url: own_url, listening: null, interfaces: () => [] },
    ...{ resolve: stubResolver().resolve, ...changes },
  }
}

function readRows(file: string): string[][] {
  const text = readFileSync(new URL(`../../test/data/${file}`, import.meta.url), 'utf8')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.slice(1).map((line) => line.split('\t'))
}

/** Answers from ssrf-dns.tsv, any other name with a public address; counts the look-ups of each name. */
function stubResolver(): { resolve: Resolver; lookups: Map<string, number> } {
  const lookups = new Map<string, number>()
  const answers = new Map(readRows('ssrf-dns.tsv').map(([name, first, later]) => [name, { first, later }]))
  const resolve: Resolver = async (_, name) => {
    const count = (lookups.get(name) ?? 0) + 1
    lookups.set(name, count)
    const { first = '', later = '' } = answers.get(name) ?? { first: '93.184.216.34', later: 'same as first' }
    const answer = count === 1 || later === 'same as first' ? first : later
    if (answer.startsWith('!')) throw new Error(answer.slice(1))
    return answer === '' ? [] : answer.split(',')
  }
  return { resolve, lookups }
}

interface Case {
  name: string
  url: string
  allowed: boolean
}

const cases: Case[] = readRows('ssrf-cases.tsv').map(([name = '', url = '', expected]) => ({
  name,
  url: url.replace(/\\(\\|[trn]|u[0-9a-f]{4})/g, (_, code: string) => unescaped(code)),
  allowed: expected === 'allow',
}))
const url_cases = cases.filter(({ name }) => !name.startsWith('ip-'))
const address_cases = cases.filter(({ name }) => name.startsWith('ip-'))

function unescaped(code: string): string {
  const plain: Record<string, string> = { '\\': '\\', t: '\t', r: '\r', n: '\n' }
  return plain[code] ?? String.fromCharCode(Number.parseInt(code.slice(1), 16))
}

/** Cases that can only be refused at the attempt: at creation they are accepted. */
const told_at_delivery = /^(dns-(nxdomain|empty)|redirect-.*)$/

describe('the published SSRF cases', () => {
  test('are all here', () => {
    expect(url_cases.length).toBe(140)
    expect(address_cases.length).toBe(13)
  })

  test.each(url_cases)('at creation: $name', async ({ name, url, allowed }) => {
    const refusal = await refusalAtCreation(policyOf(), ten, url)
    if (allowed || told_at_delivery.test(name)) expect(refusal).toBeNull()
    else expect(refusal).toMatch(/^(must|is not) [^\n]+$/)
  })

  test.each(url_cases)('at connect: $name', async ({ name, url, allowed }) => {
    const { resolve, lookups } = stubResolver()
    const { outcome, peers } = await deliver(policyOf({ resolve }), url)
    const redirect = /^redirect-(\d+)?/.exec(name)
    if (allowed) expect(outcome).toEqual({ ok: true, status: 200, error: null, duration_ms: 0 })
    else if (redirect) {
      const status = Number(redirect[1] ?? 302)
      expect(outcome).toEqual({ ok: false, status, error: 'status', duration_ms: 0 })
    } else {
      const error = /^dns-(nxdomain|empty)$/.test(name) ? 'dns' : 'blocked'
      expect(outcome).toEqual({ ok: false, status: null, error, duration_ms: 0 })
    }
    expect(peers.length).toBe(allowed || redirect ? 1 : 0)
    for (const { address } of peers) expect(isSpecial(numberOf(address), familyOf(address))).toBe(false)
    for (const count of lookups.values()) expect(count).toBe(1)
  })

  test.each(address_cases)('a bare address: $name', ({ url, allowed }) => {
    const address = parseAddress(url)
    expect(address !== null && isPublic(address)).toBe(allowed)
  })

  test.each(['mixed2', 'many', 'garbage', 'meta'])(
    '%s.dns.test holds one bad answer and is blocked',
    async (name) => {
      const url = `http://${name}.dns.test/`
      expect(await refusalAtCreation(policyOf(), ten, url)).toBe('must lead to a public address')
      const { outcome, peers } = await deliver(policyOf(), url)
      expect({ error: outcome.error, peers }).toEqual({ error: 'blocked', peers: [] })
    },
  )
})

/** One send through a transport that connects to our own receiver, whatever address it is asked for. */
async function deliver(policy: EgressPolicy, url: string): Promise<{ outcome: Outcome; peers: Peer[] }> {
  const { send, peers, stop } = await recordingSender(policy)
  const outcome = await send(url)
  await stop()
  return { outcome, peers }
}

async function recordingSender(policy: EgressPolicy) {
  const receiver = await startReceiver()
  const peers: Peer[] = []
  receiver.answer = ({ target }) => {
    const [, status, to] = /^\/redir\/(\d+)\?to=(.*)$/.exec(target) ?? []
    return status ? { status: Number(status), headers: { location: to! } } : { status: 200 }
  }
  const sender = new Sender(policy, new TestClock(), {
    connect: (peer) => {
      peers.push(peer)
      const socket = openConnection({ address: '127.0.0.1', port: receiver.port, server_name: null })
      Object.defineProperty(socket, 'remoteAddress', { value: peer.address })
      socket.on('connect', () => {
        if (peer.server_name !== null) socket.emit('secureConnect')
      })
      return socket
    },
  })
  return {
    peers,
    send: (url: string) => sender.send('ten_1', { method: 'POST', url, headers: {}, body: '{}' }),
    stop: async () => {
      sender.close()
      await receiver.stop()
    },
  }
}

describe('rebinding', () => {
  test('200 names that turn private after one look-up open no forbidden socket, with one look-up an attempt', async () => {
    const lookups = new Map<string, number>()
    const later = ['10.0.0.5', '169.254.169.254', '127.0.0.1', '::1', '::ffff:10.0.0.1']
    const resolve: Resolver = async (_, name) => {
      const count = (lookups.get(name) ?? 0) + 1
      lookups.set(name, count)
      return [count === 1 ? '93.184.216.34' : later[Number(/\d+/.exec(name)![0]) % later.length]!]
    }
    const { peers, send, stop } = await recordingSender(policyOf({ resolve }))
    const urls = Array.from({ length: 200 }, (_, index) => `http://rebind${index}.example.com/`)
    const first = await Promise.all(urls.map(send))
    const second = await Promise.all(urls.map(send))
    await stop()
    expect(first.map(({ ok }) => ok)).toEqual(urls.map(() => true))
    expect(second.map(({ error }) => error)).toEqual(urls.map(() => 'blocked'))
    expect(peers.map(({ address }) => address)).toEqual(urls.map(() => '93.184.216.34'))
    expect([...lookups.values()]).toEqual(urls.map(() => 2))
  })
})

// The IANA special-purpose address registries for IPv4 and IPv6, and the blocks for multicast and future use of the
// IPv4 address space registry: the test's own list, read by its own arithmetic.
const special_v4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
  203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32`
const special_v6 = `::1/128 ::/128 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32
  2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28
  2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10`

interface Block {
  first: bigint
  last: bigint
}

const widths = { 4: 32n, 6: 128n }
type Family = keyof typeof widths
const special: Record<Family, Block[]> = { 4: blocksOf(special_v4, 4), 6: blocksOf(special_v6, 6) }
const handed_out: Record<Family, Block> = { 4: blockOf('0.0.0.0/0', 4), 6: blockOf('2000::/3', 6) }

function blocksOf(list: string, family: Family): Block[] {
  return list.split(/\s+/).map((cidr) => blockOf(cidr, family))
}

function blockOf(cidr: string, family: Family): Block {
  const [address = '', bits = ''] = cidr.split('/')
  const size = 1n << (widths[family] - BigInt(bits))
  const first = numberOf(address)
  return { first, last: first + size - 1n }
}

function familyOf(address: string): Family {
  return address.includes(':') ? 6 : 4
}

function numberOf(address: string): bigint {
  if (!address.includes(':')) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail = ''] = address
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''))
  const gap = address.includes('::') ? Array.from({ length: 8 - head.length - tail.length }, () => '0') : []
  return [...head, ...gap, ...tail].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n)
}

function textOf(number: bigint, family: Family): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => (number >> BigInt(112 - 16 * index)) & 65_535n)
  return groups.map((group) => group.toString(16)).join(':')
}

function isIn({ first, last }: Block, number: bigint): boolean {
  return first <= number && number <= last
}

function isSpecial(number: bigint, family: Family): boolean {
  return special[family].some((block) => isIn(block, number))
}

describe('the address classifier', () => {
  test('agrees with the IANA registries on 20,000 addresses, most of them at the edges of a block', () => {
    const random = mulberry32(20_260_101)
    const disagreements: string[] = []
    let forbidden = 0
    for (let index = 0; index < 20_000; index++) {
      const family: Family = index % 2 === 0 ? 4 : 6
      const number = someAddress(family, random)
      const expected = isIn(handed_out[family], number) && !isSpecial(number, family)
      if (!expected) forbidden += 1
      const text = textOf(number, family)
      if (isPublic(parseAddress(text)!) !== expected) disagreements.push(text)
    }
    expect(disagreements).toEqual([])
    expect(forbidden).toBeGreaterThan(4_000)
    expect(forbidden).toBeLessThan(16_000)
  })

  test.each([
    '2000::',
    '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '4000::',
  ])('IPv6 is public inside 2000::/3 only: %s', (text) => {
    expect(isPublic(parseAddress(text)!)).toBe(text.startsWith('2') || text.startsWith('3fff:f'))
  })

  test.each([
    '010.0.0.1',
    '127.1',
    '1',
    '0x7f.0.0.1',
    '1.2.3.4 ',
    '',
    '[::1]',
    'fe80::1%eth0',
    '2606::1%1',
    '::g',
  ])('%p from a resolver is not an address', (text) => {
    expect(parseAddress(text)).toBeNull()
  })
})

/** An edge of a block, a neighbour of one, or anywhere inside it; now and then anywhere at all. */
function someAddress(family: Family, random: () => number): bigint {
  const all = { first: 0n, last: (1n << widths[family]) - 1n }
  const blocks = [...special[family], handed_out[family]]
  const block = random() < 0.5 ? all : blocks[Math.floor(random() * blocks.length)]!
  const inside = block.first + randomBelow(block.last - block.first + 1n, random)
  const choices = [
    block.first - 1n,
    block.first,
    block.first + 1n,
    inside,
    block.last - 1n,
    block.last,
    block.last + 1n,
  ]
  const number = random() < 0.3 ? inside : choices[Math.floor(random() * choices.length)]!
  return isIn(all, number) ? number : inside
}

function randomBelow(limit: bigint, random: () => number): bigint {
  let number = 0n
  for (let words = 0; words < 5; words++) number = (number << 32n) | BigInt(Math.floor(random() * 2 ** 32))
  return number % limit
}

/** A small generator with a seed, so that a failure can be had again. */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

describe('ports', () => {
  // From 1024 up: the Fetch standard, section "Port blocking"; then PostgreSQL, MySQL, Redis, memcached, MongoDB.
  const refused = [
    ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679],
    ...[6697, 10080, 5432, 3306, 6379, 11211, 27017],
  ]

  test('80, 443 and those from 1024 that no other known service has', () => {
    const policy = policyOf()
    const wrong: number[] = []
    for (let port = 0; port <= 65_535; port++) {
      const expected = port === 80 || port === 443 || (port >= 1024 && !refused.includes(port))
      if (judgeUrl(policy, `http://8.8.8.8:${port}/`).ok !== expected) wrong.push(port)
    }
    expect(wrong).toEqual([])
  })
})

describe('the text of a URL', () => {
  const start = 'https://example.com/'

  test.each([
    [2_048, true],
    [2_049, false],
  ])('of %i characters is accepted: %p', (length, expected) => {
    expect(judgeUrl(policyOf(), start.padEnd(length, 'a')).ok).toBe(expected)
  })

  test.each([
    ['a host of 253 characters', `http://${'a.'.repeat(125)}com/`, true],
    ['a host of 254 characters', `http://${'a.'.repeat(125)}coms/`, false],
    ['a label of 63 characters', `http://${'a'.repeat(63)}.com/`, true],
    ['a label of 64 characters', `http://${'a'.repeat(64)}.com/`, false],
    ['a name with a root dot', 'http://example.com./', true],
    ['a name with an underscore', 'http://my_hook.example.com/', true],
    ['a name outside ASCII', 'http://bücher.example/', true],
    ['a name with a comma', 'http://a,b.example.com/', false],
    ['two dots in a row', 'http://a..example.com/', false],
    ['three slashes', 'http:///example.com/', false],
    ['an empty user', 'http://@example.com/', false],
    ['an at-sign in the path', 'http://example.com/@x', true],
    ['a no-break space', 'http://example.com/\u00a0', false],
    ['a control character of C1', 'http://example.com/\u0085', false],
    ['a lone surrogate', 'http://example.com/\ud800', false],
    ['the empty text', '', false],
    ['a relative path', '/hook/x', false],
    ['port 0', 'http://example.com:0/', false],
    ['a port above 65,535', 'http://example.com:65536/', false],
    ['a name under .local', 'http://printer.local/', false],
    ['a name under .home.arpa', 'http://nas.home.arpa/', false],
    ['a name that only ends like one', 'http://notlocal.mylocal.example/', true],
  ])('with %s: %s', (_, url, expected) => {
    expect(judgeUrl(policyOf(), url).ok).toBe(expected)
  })
})

describe('CALLBACK_HTTPS_ONLY', () => {
  test.each([
    ['http://example.com/', 'must be an https URL'],
    ['http://8.8.8.8/', 'must be an https URL'],
    ['http://127.0.0.1:9000/', 'must be an https URL'],
    ['https://example.com/', null],
    ['https://127.0.0.1:9000/', null],
    [`${own_url}/hook/abc`, null],
  ])('%s: %p', async (url, refusal) => {
    const policy = policyOf({ https_only: true, allow: parseAllow('127.0.0.0/8') })
    expect(await refusalAtCreation(policy, ten, url)).toBe(refusal)
  })
})

describe('CALLBACK_ALLOW', () => {
  test.each([
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0'], null],
    ['10.1.2.3/8', ['10.0.0.0', '10.255.255.255'], ['11.0.0.0'], null],
    ['10.0.0.0/8:8080', ['10.0.0.0'], ['11.0.0.0'], 8080],
    ['192.168.7.7', ['192.168.7.7'], ['192.168.7.6', '192.168.7.8'], null],
    ['192.168.7.7:1', ['192.168.7.7'], ['192.168.7.8'], 1],
    ['192.168.7.7:65535', ['192.168.7.7'], ['192.168.7.8'], 65_535],
    ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::1'], null],
    ['::1', ['::1'], ['::', '::2', '127.0.0.1'], null],
    ['fd00::/8', ['fd00::', 'fdff::1'], ['fc00::', 'fe00::'], null],
    ['fd00::/8:8443', ['fd00::1'], ['fe00::1'], 8443],
    ['[fd00::]/8', ['fd00::1'], ['fe00::1'], null],
    ['[fd00::]/8:8443', ['fd00::1'], ['fe00::1'], 8443],
    ['[::1]:3000', ['::1'], ['::2'], 3000],
    ['[FD00::1]', ['fd00::1'], ['fd00::2'], null],
  ])('%s opens its range and nothing beside it', async (text, inside, outside, port) => {
    const policy = policyOf({ allow: parseAllow(text) })
    const urlOf = (address: string, at: number) => {
      return `http://${address.includes(':') ? `[${address}]` : address}:${at}/`
    }
    for (const address of inside) {
      expect(await refusalAtCreation(policy, ten, urlOf(address, port ?? 9000))).toBeNull()
      if (port !== null) {
        const other_port = port === 9000 ? 9001 : 9000
        expect(await refusalAtCreation(policy, ten, urlOf(address, other_port))).toBe(
          'must lead to a public address',
        )
      }
    }
    for (const address of outside.filter((each) => !isPublic(parseAddress(each)!))) {
      expect(await refusalAtCreation(policy, ten, urlOf(address, 9000))).toBe('must lead to a public address')
    }
  })

  test('is a comma list, and may be empty', () => {
    expect(parseAllow(' 127.0.0.0/8 , [::1]:3000').map(({ bits, port }) => [bits, port])).toEqual([
      [8, null],
      [128, 3000],
    ])
    expect(parseAllow('')).toEqual([])
    expect(parseAllow('  ')).toEqual([])
  })

  test.each([
    ...[
      'localhost',
      '10.0.0.0/33',
      '::/129',
      '10.0.0.0/8:0',
      '10.0.0.0/8:65536',
      '10.0.0/8',
      '010.0.0.1',
      '1',
    ],
    ...[
      '10.0.0.0/',
      '10.0.0.0:',
      '[::1',
      '::1]',
      '[10.0.0.1]x',
      'fe80::1%eth0',
      '10.0.0.0/-1',
      '/8',
      ':80',
      'x,y',
    ],
    ...['10.0.0.0/8,', ',', '10.0.0.0/8:80:80', '[::1]/128/1'],
  ])('%p is refused in one line that shows the item', (text) => {
    const item = text.split(',').find((part) => part === '' || !part.startsWith('10.0.0.0/8')) ?? text
    expect(() => parseAllow(text)).toThrow(
      `"${text.includes(',') ? item : text}" is not a range such as 10.0.0.0/8, 10.0.0.0/8:8080 or [fd00::]/8:8443`,
    )
  })

  test('lifts the rules for names and ports for the addresses it opens, and for no others', async () => {
    const resolve: Resolver = async (_, name) => (name.startsWith('public') ? ['8.8.8.8'] : ['10.0.0.5'])
    const policy = policyOf({ allow: parseAllow('10.0.0.0/8'), resolve })
    const refusalOf = (url: string) => refusalAtCreation(policy, ten, url)
    expect(await refusalOf('http://receiver:22/')).toBeNull()
    expect(await refusalOf('http://db.internal:6379/')).toBeNull()
    expect(await refusalOf('http://10.0.0.5:25/')).toBeNull()
    expect(await refusalOf('http://public.internal/')).toBe('must name a host of the public internet')
    expect(await refusalOf('http://public/')).toBe('must name a host of the public internet')
    expect(await refusalOf('http://public.example.com:22/')).toBe(
      'must use port 80, 443 or one from 1024 that serves HTTP',
    )
    expect(await refusalOf('http://8.8.8.8:22/')).toBe(
      'must use port 80, 443 or one from 1024 that serves HTTP',
    )
    expect(await refusalOf('http://public.example.com/')).toBeNull()
  })

  test('does not lift what no connection could be made to', async () => {
    const policy = policyOf({ allow: parseAllow('0.0.0.0/0') })
    expect(await refusalAtCreation(policy, ten, 'http://127.0.0.1:0/')).toBe(
      'must name a port from 1 to 65535',
    )
    expect(await refusalAtCreation(policy, ten, 'http://a..b:9000/')).toBe('must name a valid host')
    expect(await refusalAtCreation(policy, ten, 'ftp://127.0.0.1/')).toBe(
      'must be an absolute http or https URL',
    )
  })

  test('judges every answer: one inside and one outside is blocked, one inside and one public is not', async () => {
    const allow = parseAllow('10.0.0.0/8')
    const verdict = async (...answers: string[]) =>
      (await judge(policyOf({ allow, resolve: async () => answers }), ten, 'http://example.com/')).ok
    expect(await verdict('10.0.0.5', '127.0.0.1')).toBe(false)
    expect(await verdict('10.0.0.5', '8.8.8.8')).toBe(true)
  })

  test('a name that no range could help is refused without a look-up', async () => {
    const { resolve, lookups } = stubResolver()
    for (const allow of [[], parseAllow('127.0.0.0/8:9000')]) {
      const refusal = await refusalAtCreation(policyOf({ allow, resolve }), ten, 'http://localhost:8000/')
      expect(refusal).toBe('must name a host of the public internet')
    }
    expect(lookups.size).toBe(0)
  })
})

describe('PUBLIC_URL', () => {
  const everything = parseAllow('0.0.0.0/0,::/0')
  const refusal = 'must not be a path of this service other than /hook/'

  test.each([
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hook/abc'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hook/abc/any/path?x=1'],
    ['http://[::1]:8420', 'http://[::1]:8420/hook/abc'],
    ['http://10.1.1.1:22', 'http://10.1.1.1:22/hook/abc'],
    ['http://loop.dns.test:8420', 'http://loop.dns.test:8420/hook/abc'],
    ['http://loop.dns.test:8420', 'HTTP://LOOP.dns.test:8420/hook/abc'],
    ['https://private.dns.test', 'https://private.dns.test:443/hook/abc'],
    ['https://private.dns.test/base', 'https://private.dns.test/base/hook/abc'],
  ])('of %s allows %s although it is not public', async (public_url, url) => {
    const policy = policyOf({ public_url })
    expect(await refusalAtCreation(policy, ten, url)).toBeNull()
    expect((await judge(policy, ten, url)).ok).toBe(true)
  })

  test.each([
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/v1/tick'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hook'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hookx/abc'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/HOOK/abc'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420//hook/abc'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hook/../v1/tick'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hook/%2e%2E/v1/tick'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hook/..%2fv1%2ftick'],
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8420/hook/a%2F%2e.%5Cv1/tick'],
    ['http://127.0.0.1:8420', 'http://localhost:8420/v1/tick'],
    ['http://127.0.0.1:8420', 'http://127.0.0.2:8420/v1/tick'],
    ['http://127.0.0.1:8420', 'http://0.0.0.0:8420/v1/tick'],
    ['http://127.0.0.1:8420', 'http://[::1]:8420/v1/tick'],
    ['http://127.0.0.1:8420', 'http://loop.dns.test:8420/v1/tick'],
    ['http://127.0.0.1:8420', 'http://loop6.dns.test:8420/v1/tick'],
    ['http://localhost:8420', 'http://127.0.0.1:8420/v1/tick'],
    ['http://10.0.0.5:8420', 'http://private.dns.test:8420/v1/tick'],
    ['http://private.dns.test:8420', 'http://private.dns.test:8420/v1/tick'],
    ['https://self.dns.test', 'https://self.dns.test/v1/tick'],
    ['https://self.dns.test', 'https://self.dns.test./v1/tick'],
    ['https://self.dns.test', 'http://self.dns.test/v1/tick'],
    ['https://self.dns.test/base', 'https://self.dns.test/base/v1/tick'],
    ['https://self.dns.test/base', 'https://self.dns.test/hook/abc'],
  ])('of %s refuses %s, whatever CALLBACK_ALLOW says', async (public_url, url) => {
    const { resolve: others } = stubResolver()
    const local = ['127.0.0.1', '::1']
    const resolve: Resolver = async (...asked) => (asked[1] === 'localhost' ? local : others(...asked))
    const policy = policyOf({ public_url, allow: everything, resolve })
    expect(await refusalAtCreation(policy, ten, url)).toBe(refusal)
    expect(await judge(policy, ten, url)).toEqual({ ok: false, why: 'blocked', message: refusal })
  })

  test.each([
    ['http://127.0.0.1:8420', 'http://127.0.0.1:8421/v1/tick', true],
    ['http://127.0.0.1:8420', 'http://localhost:8420/hook/abc', true],
    ['http://127.0.0.1:8420', 'http://8.8.8.8:8420/v1/tick', true],
    ['https://self.dns.test', 'https://self.dns.test:8443/v1/tick', true],
    ['https://self.dns.test', 'https://other.dns.test/v1/tick', true],
  ])('of %s says nothing about %s', async (public_url, url, expected) => {
    expect((await judge(policyOf({ public_url, allow: everything }), ten, url)).ok).toBe(expected)
  })
})

describe('where the service listens', () => {
  const refusal = 'must not be a path of this service other than /hook/'
  const interfaces = () => ['127.0.0.1', '10.0.0.5', '::1', 'fd00::5', 'fe80::1%eth0']
  const resolve: Resolver = async (_, name) => (name === 'here.dns.test' ? ['10.0.0.5'] : ['127.0.0.1'])
  const open = parseAllow('0.0.0.0/0,::/0')

  const judged = async (host: string, url: string) => {
    const listening = { host, port: 8420 }
    const policy = policyOf({ public_url: 'https://x.example', allow: open, listening, interfaces, resolve })
    const found = await judge(policy, ten, url)
    const message = found.ok ? null : found.message
    expect(await refusalAtCreation(policy, ten, url)).toBe(message)
    return message
  }

  test.each([
    ['127.0.0.1', 'http://127.0.0.1:8420/v1/tick'],
    ['127.0.0.1', 'http://127.0.0.1:8420/'],
    ['127.0.0.1', 'http://127.0.0.1:8420/hook/../v1/tick'],
    ['127.0.0.1', 'http://127.0.0.1:8420/hook/..%2fv1/tick'],
    ['127.0.0.1', 'http://127.0.0.2:8420/v1/tick'],
    ['127.0.0.1', 'http://0.0.0.0:8420/v1/tick'],
    ['127.0.0.1', 'http://[::ffff:127.0.0.1]:8420/v1/tick'],
    ['127.0.0.1', 'http://other.dns.test:8420/v1/tick'],
    ['localhost', 'http://127.0.0.1:8420/v1/tick'],
    ['::1', 'http://[::1]:8420/v1/tick'],
    ['10.0.0.5', 'http://10.0.0.5:8420/v1/tick'],
    ['10.0.0.5', 'http://here.dns.test:8420/v1/tick'],
    ['0.0.0.0', 'http://127.0.0.1:8420/v1/tick'],
    ['0.0.0.0', 'http://10.0.0.5:8420/v1/tick'],
    ['0.0.0.0', 'http://here.dns.test:8420/v1/tick'],
    ['::', 'http://[fd00::5]:8420/v1/tick'],
    ['::', 'http://10.0.0.5:8420/v1/tick'],
    ['::', 'http://[::1]:8420/v1/tick'],
  ])('at %s, %s is ours under whatever name, and refused', async (host, url) => {
    expect(await judged(host, url)).toBe(refusal)
  })

  test.each([
    ['127.0.0.1', 'http://127.0.0.1:8420/hook/abc'],
    ['0.0.0.0', 'http://10.0.0.5:8420/hook/abc/x'],
    ['127.0.0.1', 'http://127.0.0.1:8421/v1/tick'],
    ['127.0.0.1', 'http://10.0.0.5:8420/v1/tick'],
    ['10.0.0.5', 'http://127.0.0.1:8420/v1/tick'],
    ['10.0.0.5', 'http://10.0.0.6:8420/v1/tick'],
    ['0.0.0.0', 'http://10.0.0.6:8420/v1/tick'],
    ['::', 'http://[fd00::6]:8420/v1/tick'],
  ])('at %s, %s is an inbox or somebody else', async (host, url) => {
    expect(await judged(host, url)).toBeNull()
  })

  test('at 127.0.0.1, an inbox there is called only where CALLBACK_ALLOW covers it', async () => {
    const policy = policyOf({ public_url: 'https://x.example', listening: { host: '127.0.0.1', port: 8420 } })
    const message = await refusalAtCreation(policy, ten, 'http://127.0.0.1:8420/hook/abc')
    expect(message).toBe('must lead to a public address')
  })

  test('the system names its interfaces, loopback among them', () => {
    expect(systemInterfaces()).toContain('127.0.0.1')
  })
})

forEachRacedService(
  'A service behind a proxy',
  (service) => {
    test('is not called by itself, at whatever address it listens', async () => {
      const { api_key } = await service.signUp()
      const create = (path: string) => {
        const callback_url = `${service.url}${path}`
        const body = { callback_url, callback_payload: 1, fire_at: '9999-01-01T00:00:00Z' }
        return service.ask('POST', '/v1/schedules', { key: api_key, body })
      }
      const refused = await create('/v1/tenants')
      expect([refused.status, refused.body.error.details]).toEqual([
        400,
        {
          issues: [
            { path: '/callback_url', message: 'must not be a path of this service other than /hook/' },
          ],
        },
      ])
      expect((await create('/hook/abc')).status).toBe(201)
    })
  },
  { PUBLIC_URL: 'https://x.example', CALLBACK_ALLOW: '127.0.0.0/8' },
)

describe('look-ups at creation', () => {
  const url = 'http://example.com/'

  test('there is one, and one more at each attempt', async () => {
    const { resolve, lookups } = stubResolver()
    const policy = policyOf({ resolve })
    await refusalAtCreation(policy, ten, url)
    expect(lookups.get('example.com')).toBe(1)
    await judge(policy, ten, url)
    expect(lookups.get('example.com')).toBe(2)
  })

  test('an address needs none', async () => {
    const { resolve, lookups } = stubResolver()
    await refusalAtCreation(policyOf({ resolve }), ten, 'http://8.8.8.8/')
    await judge(policyOf({ resolve }), ten, 'http://[2606:4700:4700::1111]/')
    expect(lookups.size).toBe(0)
  })

  test('are told whose they are, and what for', async () => {
    const asked: unknown[] = []
    const policy = policyOf({ resolve: async (...all) => (asked.push(all) ? [] : []) })
    await refusalAtCreation(policy, ten, url)
    await judge(policy, 'ten_2', url)
    expect(asked).toEqual([
      ['ten_1', 'example.com', 'creation'],
      ['ten_2', 'example.com', 'attempt'],
    ])
  })

  test.each([
    ['rejects', async () => Promise.reject(new Error('SERVFAIL'))],
    [
      'throws',
      () => {
        throw new Error('no resolver')
      },
    ],
    ['finds nothing', async () => []],
  ])('a resolver that %s: accepted at creation, dns at the attempt', async (_, resolve) => {
    const policy = policyOf({ resolve })
    expect(await refusalAtCreation(policy, ten, url)).toBeNull()
    expect(await judge(policy, ten, url)).toEqual({ ok: false, why: 'dns', message: 'does not resolve' })
  })
})
