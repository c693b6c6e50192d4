import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { type DnsAnswer, type DnsServer, startDnsServer } from '../../test/support/dns.ts'
import { becomes, until } from '../../test/support/patience.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { strictPolicy, strictSender } from '../../test/support/ssrf.ts'
import type { Resolver } from './guard.ts'
import { Lookups } from './lookups.ts'
import { isLocal, parseAddress } from './ranges.ts'
import { SystemResolver } from './resolver.ts'

const plenty_ms = 10_000
const moment_ms = 50

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Setup {
  resolver: SystemResolver
  server: DnsServer
  clock: TestClock
  write(file: 'hosts' | 'resolv.conf', text: string): void
}

async function setup(
  answers: Record<string, DnsAnswer> = {},
  { hosts, resolv }: { hosts?: string; resolv?: string } = {},
): Promise<Setup> {
  const server = await startDnsServer((name) => (name in answers ? answers[name]! : 'NXDOMAIN'))
  cleanups.push(() => server.stop())
  const folder = mkdtempSync(join(tmpdir(), 'waystation-names-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text)
  if (hosts !== undefined) write('hosts', hosts)
  if (resolv !== undefined) write('resolv.conf', resolv)
  const clock = new TestClock()
  const paths = { hosts_path: join(folder, 'hosts'), resolv_path: join(folder, 'resolv.conf') }
  const resolver = new SystemResolver(clock, { ...paths, servers: [server.address] })
  return { resolver, server, clock, write }
}

const both = { addresses: ['93.184.216.34', '2606:4700::1111', '93.184.216.35'] }
const no_search = 'search .\n'

describe('a look-up', () => {
  const names: [what: string, answer: DnsAnswer, addresses: string[]][] = [
    ['with both families', both, ['93.184.216.34', '93.184.216.35', '2606:4700:0:0:0:0:0:1111']],
    ['with IPv4 only', { addresses: ['1.2.3.4'] }, ['1.2.3.4']],
    ['with IPv6 only', { addresses: ['2606:4700::1'] }, ['2606:4700:0:0:0:0:0:1']],
    ['with an alias', { addresses: ['1.2.3.4'], alias: 'elsewhere.test' }, ['1.2.3.4']],
    ['with no address', { addresses: [] }, []],
    ['that does not exist', 'NXDOMAIN', []],
    ['whose server fails', 'SERVFAIL', []],
    ['whose server refuses', 'REFUSED', []],
  ]
  test.each(names)('of a name %s', async (_, answer, addresses) => {
    const { resolver } = await setup({ 'a.test': answer }, { resolv: no_search })
    const found = await resolver.ask('a.test', plenty_ms)
    const plain = (text: string) => parseAddress(text)!.toNormalizedString()
    expect(found.map(plain)).toEqual(addresses.map(plain))
  })

  test('asks for each family once', async () => {
    const { resolver, server } = await setup({ 'a.test': both }, { resolv: no_search })
    await resolver.ask('a.test', plenty_ms)
    expect(server.queries.toSorted()).toEqual(['A a.test', 'AAAA a.test'])
  })

  test('of a name whose server is silent ends at its limit without an address', async () => {
    const { resolver } = await setup({ 'hang.test': null }, { resolv: no_search })
    expect(await resolver.ask('hang.test', moment_ms)).toEqual([])
  })

  test('ends at its limit with the family that has answered by then', async () => {
    const half: DnsAnswer = { addresses: ['1.2.3.4'], silent_about: 'AAAA' }
    const { resolver } = await setup({ 'half.test': half }, { resolv: no_search })
    // A busy machine may see the limit before the answer. All of these end before the other family would be given up.
    let found: string[] = []
    for (let limit_ms = moment_ms; found.length === 0 && limit_ms < 1_000; limit_ms *= 2) {
      found = await resolver.ask('half.test', limit_ms)
    }
    expect(found).toEqual(['1.2.3.4'])
  })

  test('waits a second for the other family, and not for its limit', async () => {
    const half: DnsAnswer = { addresses: ['1.2.3.4'], silent_about: 'AAAA' }
    const { resolver } = await setup({ 'half.test': half }, { resolv: no_search })
    expect(await resolver.ask('half.test', 2_147_483_647)).toEqual(['1.2.3.4'])
  })

  test('waits for no other: a name is found beside 96 whose servers are silent', async () => {
    const answers: Record<string, DnsAnswer> = { 'a.test': both, 'hang.test': null }
    const { resolver, server } = await setup(answers, { resolv: no_search })
    let ended = 0
    const hanging = Array.from({ length: 96 }, () =>
      resolver.ask('hang.test', plenty_ms).then(() => {
        ended += 1
      }),
    )
    expect(await resolver.ask('a.test', plenty_ms)).toHaveLength(3)
    expect(ended).toBe(0)
    await until(() => server.queries.filter((query) => query === 'A hang.test').length >= 96)
    answers['hang.test'] = 'NXDOMAIN' // to the next try of each
    await Promise.all(hanging)
  })

  test('leaves nothing under way when it has ended', async () => {
    const { resolver, server } = await setup({ 'hang.test': null }, { resolv: no_search })
    await Promise.all(Array.from({ length: 20 }, () => resolver.ask('hang.test', moment_ms)))
    const asked = 2 * 20
    await becomes(() => server.queries.length, asked)
    await Bun.sleep(1_200) // the second try of the client would come after a second
    expect(server.queries).toHaveLength(asked)
  })
})

describe('an answer', () => {
  test('is believed for a second at most, whatever its TTL', async () => {
    const answers: Record<string, DnsAnswer> = { 'a.test': { addresses: ['1.2.3.4'], ttl_seconds: 3_600 } }
    const { resolver, clock } = await setup(answers, { resolv: no_search })
    expect(await resolver.ask('a.test', plenty_ms)).toEqual(['1.2.3.4'])
    answers['a.test'] = { addresses: ['5.6.7.8'] }
    clock.advance(1_000)
    expect(await resolver.ask('a.test', plenty_ms)).toEqual(['5.6.7.8'])
  })

  test('with a TTL of 0 is not believed again', async () => {
    const answers: Record<string, DnsAnswer> = { 'a.test': { addresses: ['1.2.3.4'], ttl_seconds: 0 } }
    const { resolver } = await setup(answers, { resolv: no_search })
    expect(await resolver.ask('a.test', plenty_ms)).toEqual(['1.2.3.4'])
    answers['a.test'] = { addresses: ['10.0.0.5'], ttl_seconds: 0 }
    expect(await resolver.ask('a.test', plenty_ms)).toEqual(['10.0.0.5'])
  })
})

describe('a name that turns private', () => {
  test.each([0, 3_600])(
    'with a TTL of %i s opens no forbidden socket, whatever is remembered',
    async (ttl_seconds) => {
      const answers = { 'a.test': { addresses: ['93.184.216.34'], ttl_seconds } }
      const { resolver, clock } = await setup(answers, { resolv: no_search })
      const lookups = new Lookups(resolver)
      const receiver = await startReceiver()
      const resolve: Resolver = (...question) => lookups.addresses(...question)
      const { sender, peers } = strictSender(receiver.port, { ...strictPolicy(), resolve })
      cleanups.push(receiver.stop, () => sender.close())
      const send = async () => {
        const request = { method: 'POST', url: 'http://a.test/', headers: {}, body: '' }
        return (await sender.send('ten_1', request)).error
      }
      expect(await send()).toBeNull()
      answers['a.test'].addresses = ['10.0.0.5']
      const at_once = await send()
      // A cached answer has passed the guard, and is connected to.
      expect(at_once).toBe(ttl_seconds === 0 ? 'blocked' : null)
      clock.advance(1_000)
      expect(await send()).toBe('blocked')
      expect(new Set(peers)).toEqual(new Set(['93.184.216.34']))
    },
  )
})

describe('/etc/hosts', () => {
  const hosts = `
# 1.1.1.1 commented.test
10.0.0.9	one.test  Alias.test # trailing.test
fd00::9 one.test
127.0.0.1 localhost
not-an-address two.test
`
  const names: [name: string, addresses: string[] | null][] = [
    ['one.test', ['10.0.0.9', 'fd00::9']],
    ['alias.test', ['10.0.0.9']],
    ['localhost', ['127.0.0.1']],
    ['commented.test', null],
    ['trailing.test', null],
    ['two.test', null],
    ['', null],
  ]
  test.each(names)('has for "%s": %j', async (name, addresses) => {
    const { resolver } = await setup({}, { hosts })
    expect(resolver.known(name)).toEqual(addresses)
  })

  test('is read again when it has changed', async () => {
    const { resolver, write } = await setup({}, { hosts })
    expect(resolver.known('new.test')).toBeNull()
    write('hosts', '10.0.0.7 new.test\n')
    expect(resolver.known('new.test')).toEqual(['10.0.0.7'])
    expect(resolver.known('one.test')).toBeNull()
  })

  test.each(['localhost', 'a.localhost'])('that is not there leaves %s on loopback', async (name) => {
    const { resolver } = await setup()
    expect(resolver.known(name)).toEqual(['127.0.0.1', '::1'])
    expect(resolver.known('one.test')).toBeNull()
  })

  test('of this machine has localhost', () => {
    const found = new SystemResolver(new TestClock()).known('localhost')!
    expect(found.filter((address) => !isLocal(parseAddress(address)!))).toEqual([])
  })
})

describe('/etc/resolv.conf', () => {
  const orders: [resolv: string, name: string, asked: string[]][] = [
    ['', 'one.test', ['one.test']],
    ['search x.test y.test', 'worker', ['worker.x.test', 'worker.y.test', 'worker']],
    ['search x.test y.test', 'one.test', ['one.test', 'one.test.x.test', 'one.test.y.test']],
    ['search a.test\nsearch b.test.', 'worker', ['worker.b.test', 'worker']],
    ['search a.test\ndomain b.test c.test', 'worker', ['worker.b.test', 'worker']],
    ['search x.test\noptions edns0 ndots:5', 'one.test', ['one.test.x.test', 'one.test']],
    ['search x.test\noptions ndots:0', 'worker', ['worker', 'worker.x.test']],
    ['search x.test\noptions ndots:99', `${'a.'.repeat(15)}b`, [`${'a.'.repeat(15)}b`]],
    ['# search x.test\n; search y.test', 'one.test', ['one.test']],
    ['search .', 'worker', ['worker']],
  ]
  test.each(orders)('%j: %s is looked for as %j', async (resolv, name, asked) => {
    const { resolver, server } = await setup({}, { resolv })
    expect(await resolver.ask(name, plenty_ms)).toEqual([])
    const found = server.queries.filter((query) => query.startsWith('A ')).map((query) => query.slice(2))
    expect(found.slice(0, asked.length)).toEqual(asked)
  })

  test('names 16 search domains at most', async () => {
    const domains = Array.from({ length: 17 }, (_, i) => `s${i}.test`)
    const { resolver, server } = await setup({}, { resolv: `search ${domains.join(' ')}\n` })
    await resolver.ask('worker', plenty_ms)
    expect(server.queries.filter((query) => query.startsWith('A '))).toEqual([
      ...domains.slice(0, 16).map((domain) => `A worker.${domain}`),
      'A worker',
    ])
  })

  test('the first name of the list that has an address ends the search', async () => {
    const resolv = 'search x.test y.test z.test'
    const { resolver, server } = await setup(
      { 'worker.y.test': both, 'worker.x.test': 'SERVFAIL' },
      { resolv },
    )
    expect(await resolver.ask('worker', plenty_ms)).toHaveLength(3)
    expect(server.queries).not.toContain('A worker.z.test')
  })

  test('a silent server ends the search', async () => {
    const resolv = 'search x.test y.test'
    const { resolver, server } = await setup({ 'worker.x.test': null, 'worker.y.test': both }, { resolv })
    expect(await resolver.ask('worker', moment_ms)).toEqual([])
    expect(server.queries).not.toContain('A worker.y.test')
  })

  test('is read again when it has changed', async () => {
    const { resolver, write } = await setup({ 'worker.y.test': both }, { resolv: 'search x.test' })
    expect(await resolver.ask('worker', plenty_ms)).toEqual([])
    write('resolv.conf', 'search y.test\n')
    expect(await resolver.ask('worker', plenty_ms)).toHaveLength(3)
  })
})
