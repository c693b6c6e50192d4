import { describe, expect, spyOn, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { type Answer, forEachRacedService, served } from '../../test/support/service.ts'
import { hour_ms, minute_ms } from '../base/clock.ts'
import { newKey } from '../base/keys.ts'
import { AddressLimit } from './limits.ts'
import { UrgentLookUps } from './urgent-look-ups.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

const limited = [429, 'RATE_LIMITED', undefined]
const sign_ups_max = 30
const failed_keys_max = 60

let last_address = 0
/** An address that no other test uses. */
function newAddress(): string {
  last_address += 1
  return `198.51.${Math.floor(last_address / 250)}.${(last_address % 250) + 1}`
}

function newName(): string {
  return `n-${crypto.randomUUID().slice(0, 13)}`
}

forEachRacedService(
  "The service's own limits behind a trusted proxy",
  (service) => {
    service.over_http = true
    const signUp = (address: string, name = newName(), headers: Record<string, string> = {}) =>
      served(() =>
        service.ask('POST', '/v1/tenants', {
          headers: { 'x-forwarded-for': address, ...headers },
          body: { name, owner_email: 'owner@example.com' },
        }),
      )
    const statuses = async (count: number, ask: () => Promise<Answer>) => {
      const seen = new Set<number>()
      for (let i = 0; i < count; i++) seen.add((await ask()).status)
      return [...seen]
    }

    describe('30 sign-ups an hour per client address', () => {
      test('the 30th is made, the 31st gets 429 with Retry-After, until the hour is over', async () => {
        const address = newAddress()
        expect(await statuses(1, () => signUp(address))).toEqual([201])
        service.clock.advance(10 * minute_ms)
        expect(await statuses(sign_ups_max - 1, () => signUp(address))).toEqual([201])
        const refused = await signUp(address)
        expect(refusal(refused)).toEqual(limited)
        expect(refused.headers.get('retry-after')).toBe('3000')
        expect((await signUp(newAddress())).status).toBe(201)
        service.clock.advance(50 * minute_ms - 1)
        const still = await signUp(address)
        expect([...refusal(still), still.headers.get('retry-after')]).toEqual([...limited, '1'])
        service.clock.advance(1)
        expect((await signUp(address)).status).toBe(201)
      })

      test('the hour is one of elapsed time: a jump of the wall clock does not end it', async () => {
        const address = newAddress()
        await statuses(sign_ups_max, () => signUp(address))
        service.clock.jump(2 * hour_ms)
        expect(refusal(await signUp(address))).toEqual(limited)
        service.clock.jump(-2 * hour_ms)
      })

      test('replays and failed sign-ups do not count', async () => {
        const address = newAddress()
        const name = newName()
        const once = { 'idempotency-key': crypto.randomUUID() }
        expect(await statuses(5, () => signUp(address, name, once))).toEqual([201])
        expect(await statuses(5, () => signUp(address, name))).toEqual([409])
        expect(await statuses(5, () => signUp(address, 'x'))).toEqual([400])
        expect(await statuses(5, () => signUp(address, newName(), once))).toEqual([422])
        expect(await statuses(sign_ups_max - 1, () => signUp(address))).toEqual([201])
        expect(refusal(await signUp(address))).toEqual(limited)
      })

      test('a repeat of a sign-up that was made is answered though the limit is reached', async () => {
        const address = newAddress()
        const name = newName()
        const once = { 'idempotency-key': crypto.randomUUID() }
        const made = await signUp(address, name, once)
        await statuses(sign_ups_max - 1, () => signUp(address))
        expect(refusal(await signUp(address))).toEqual(limited)
        const again = await signUp(address, name, once)
        expect([again.status, again.text]).toEqual([201, made.text])
      })

      test('a refused sign-up makes no tenant and leaves its Idempotency-Key unused', async () => {
        const address = newAddress()
        const name = newName()
        const once = { 'idempotency-key': crypto.randomUUID() }
        await statuses(sign_ups_max, () => signUp(address))
        expect(refusal(await signUp(address, name, once))).toEqual(limited)
        service.clock.advance(hour_ms)
        const made = await signUp(address, name, once)
        expect([made.status, made.headers.get('idempotent-replayed')]).toEqual([201, null])
      })

      test('of sign-ups at once exactly 30 are made', async () => {
        const address = newAddress()
        const answers = await Promise.all(Array.from({ length: 40 }, () => signUp(address)))
        const made = answers.filter(({ status }) => status === 201)
        const refused = answers.filter(({ status }) => status === 429)
        expect([made.length, refused.length]).toEqual([sign_ups_max, 10])
      })
    })

    describe('60 failed keys a minute per client address', () => {
      const tryKey = (address: string, headers: Record<string, string>) =>
        service.ask('GET', '/v1/kv/a/b', { headers: { 'x-forwarded-for': address, ...headers } })
      const unknown = () => ({ authorization: `Bearer ${newKey('agent')}` })

      test('the 60th gets 401, the 61st 429 with Retry-After, until the minute is over', async () => {
        const address = newAddress()
        expect(await statuses(failed_keys_max, () => tryKey(address, unknown()))).toEqual([401])
        service.clock.advance(20_001)
        const refused = await tryKey(address, unknown())
        expect(refusal(refused)).toEqual(limited)
        expect(refused.headers.get('retry-after')).toBe('40')
        expect((await tryKey(newAddress(), unknown())).status).toBe(401)
        service.clock.advance(minute_ms - 20_001)
        expect((await tryKey(address, unknown())).status).toBe(401)
      })

      test('an address past them has no urgent look-up of an unknown key until the minute is over', async () => {
        const address = newAddress()
        const enter = spyOn(UrgentLookUps.prototype, 'enter')
        const tryUrgent = async () => {
          const headers = { 'x-forwarded-for': address, 'x-admin-key': newKey('admin') }
          const { status } = await service.ask('GET', '/v1/tenants/ten_1', { headers })
          return [status, enter.mock.results.at(-1)!.value]
        }
        try {
          expect(await tryUrgent()).toEqual([401, true])
          await statuses(failed_keys_max - 1, () => tryKey(address, unknown()))
          expect(await tryUrgent()).toEqual([429, true])
          expect(await tryUrgent()).toEqual([429, false])
          service.clock.advance(minute_ms)
          expect(await tryUrgent()).toEqual([401, true])
        } finally {
          enter.mockRestore()
        }
      })

      test('a valid key is never refused', async () => {
        const address = newAddress()
        const tenant = await service.ask('POST', '/v1/tenants', {
          headers: { 'x-forwarded-for': newAddress() },
          body: { name: newName(), owner_email: 'owner@example.com' },
        })
        const { tenant_id, admin_key } = tenant.body
        await statuses(failed_keys_max, () => tryKey(address, unknown()))
        const own = { 'x-forwarded-for': address, 'x-admin-key': admin_key }
        const read = await service.ask('GET', `/v1/tenants/${tenant_id}`, { headers: own })
        const wrong_kind = await service.ask('GET', '/v1/kv/a/b', { headers: own })
        expect([read.status, wrong_kind.status]).toEqual([200, 403])
        expect((await tryKey(address, unknown())).status).toBe(429)
      })

      test.each([
        ['an unknown key', () => unknown()],
        ['a bad checksum', () => ({ authorization: `Bearer ${newKey('agent').slice(0, -1)}!` })],
        ['no key of ours', () => ({ authorization: 'Bearer letmein' })],
        ['another scheme', () => ({ authorization: 'Basic dXNlcjpwYXNz' })],
        ['the wrong header', () => ({ 'x-admin-key': newKey('agent') })],
      ] as [string, () => Record<string, string>][])('%s counts', async (_, headers) => {
        const address = newAddress()
        expect(await statuses(failed_keys_max, () => tryKey(address, headers()))).toEqual([401])
        expect(refusal(await tryKey(address, headers()))).toEqual(limited)
      })

      test('one at /mcp counts as any other, from the address that the proxy names', async () => {
        const address = newAddress()
        const tryMcp = () =>
          service.ask('POST', '/mcp', { headers: { 'x-forwarded-for': address, ...unknown() }, body: {} })
        expect(await statuses(failed_keys_max / 2, tryMcp)).toEqual([401])
        expect(await statuses(failed_keys_max / 2, () => tryKey(address, unknown()))).toEqual([401])
        const refused = await tryMcp()
        expect([...refusal(refused), refused.headers.get('retry-after')]).toEqual([...limited, '60'])
        expect((await tryKey(newAddress(), unknown())).status).toBe(401)
      })

      test('no key at all does not count', async () => {
        const address = newAddress()
        expect(await statuses(failed_keys_max + 1, () => tryKey(address, {}))).toEqual([401])
      })

      test('failed keys and sign-ups are counted apart', async () => {
        const address = newAddress()
        await statuses(failed_keys_max, () => tryKey(address, unknown()))
        expect((await signUp(address)).status).toBe(201)
      })
    })
  },
  { TRUST_PROXY: '127.0.0.1,::1' },
)

forEachRacedService(
  'X-Forwarded-For from a peer that is not a trusted proxy',
  (service) => {
    service.over_http = true
    test('is not believed: the peer itself is limited', async () => {
      const signUp = (address: string) =>
        service.ask('POST', '/v1/tenants', {
          headers: { 'x-forwarded-for': address },
          body: { name: newName(), owner_email: 'owner@example.com' },
        })
      for (let i = 0; i < sign_ups_max; i++) expect((await signUp(newAddress())).status).toBe(201)
      expect(refusal(await signUp(newAddress()))).toEqual(limited)
    })
  },
  { TRUST_PROXY: '192.0.2.0/24' },
)

forEachRacedService('While HOST and PUBLIC_URL are loopback and TRUST_PROXY is unset', (service) => {
  service.over_http = true
  test('both limits are off', async () => {
    for (let i = 0; i <= sign_ups_max; i++) {
      const body = { name: newName(), owner_email: 'owner@example.com' }
      expect((await service.ask('POST', '/v1/tenants', { body })).status).toBe(201)
    }
    for (let i = 0; i <= failed_keys_max; i++) {
      expect((await service.ask('GET', '/v1/kv/a/b', { key: newKey('agent') })).status).toBe(401)
    }
  })
})

forEachRacedService(
  'While PUBLIC_URL is not loopback',
  (service) => {
    service.over_http = true
    test('both limits are on', async () => {
      for (let i = 0; i < failed_keys_max; i++) {
        expect((await service.ask('GET', '/v1/kv/a/b', { key: newKey('agent') })).status).toBe(401)
      }
      expect(refusal(await service.ask('GET', '/v1/kv/a/b', { key: newKey('agent') }))).toEqual(limited)
      for (let i = 0; i < sign_ups_max; i++) {
        const body = { name: newName(), owner_email: 'owner@example.com' }
        expect((await service.ask('POST', '/v1/tenants', { body })).status).toBe(201)
      }
      const body = { name: newName(), owner_email: 'owner@example.com' }
      expect(refusal(await service.ask('POST', '/v1/tenants', { body }))).toEqual(limited)
    })
  },
  { PUBLIC_URL: 'https://waystation.example.com' },
)

describe('A limit per address', () => {
  const takes = (limit: AddressLimit, address: string) => limit.acquire(address) !== null

  test('takes its number in a window that begins with the first', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 2, 1_000)
    expect([takes(limit, 'a'), takes(limit, 'a'), takes(limit, 'a')]).toEqual([true, true, false])
    expect(takes(limit, 'b')).toBe(true)
    clock.advance(999)
    expect(takes(limit, 'a')).toBe(false)
    clock.advance(1)
    expect([takes(limit, 'a'), takes(limit, 'a'), takes(limit, 'a')]).toEqual([true, true, false])
  })

  test('retryAfter is whole seconds, rounded up, at least 1', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 1, 2_500)
    takes(limit, 'a')
    const seen = [limit.retryAfter('a')]
    for (const ms of [500, 1, 998, 1_000, 1]) {
      clock.advance(ms)
      seen.push(limit.retryAfter('a'))
    }
    expect(seen).toEqual([3, 2, 2, 2, 1, 1])
    expect(limit.retryAfter('unknown')).toBe(1)
  })

  test('releases what did not count, and never falls below zero', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 1, 1_000)
    const counted = limit.acquire('a')!
    expect(takes(limit, 'a')).toBe(false)
    limit.release(counted)
    const early = limit.acquire('a')!
    clock.advance(1_000)
    expect(takes(limit, 'a')).toBe(true)
    limit.release(early)
    expect(takes(limit, 'a')).toBe(false)
  })

  test('releases where it was counted, although it would be counted elsewhere now', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 1, 1_000)
    fill(limit, 9_999, ipv4(10))
    clock.advance(500)
    fill(limit, 1, ipv4(11))
    const counted = limit.acquire('198.51.0.1')!
    expect(Array.from({ length: 10 }, (_, i) => takes(limit, `198.51.1.${i}`))).toEqual([
      ...Array(9).fill(true),
      false,
    ])
    clock.advance(500)
    const own = limit.acquire('198.51.0.1')!
    expect(own).not.toBeNull()
    limit.release(counted)
    expect(takes(limit, '198.51.0.1')).toBe(false)
  })

  test('remembers nothing of what it refuses or only looks up', () => {
    const limit = new AddressLimit(new TestClock(), 2, 1_000)
    fill(limit, 20, (i) => `2001:db8:7:${i.toString(16)}::1`)
    const { size } = limit
    expect(size).toEqual({ clients: 20, sites: 1, providers: 0 })
    fill(limit, 1_000, (i) => `2001:db8:7:${(i + 256).toString(16)}::1`)
    expect([limit.retryAfter('198.51.100.1'), limit.retryAfter('2001:db8:9::1')]).toEqual([1, 1])
    expect(limit.size).toEqual(size)
  })

  test('remembers no network of a client whose provider has used up its number', () => {
    const limit = new AddressLimit(new TestClock(), 1, 1_000)
    fill(limit, 10_000, ipv4(10))
    fill(limit, 10, (i) => `2001:db8:${i}::1`)
    const { size } = limit
    expect(size).toEqual({ clients: 10_000, sites: 10, providers: 1 })
    expect(takes(limit, '2001:db8:ffff::1')).toBe(false)
    expect(limit.size).toEqual(size)
  })

  const fill = (limit: AddressLimit, count: number, address: (i: number) => string) => {
    for (let i = 0; i < count; i++) takes(limit, address(i))
  }
  const ipv4 = (first: number) => (i: number) => `${first}.${i >> 16}.${(i >> 8) & 255}.${i & 255}`

  test('counts IPv6 by the /64, whichever of its addresses asks', () => {
    const limit = new AddressLimit(new TestClock(), 2, 1_000)
    const seen = ['2001:db8::1', '2001:db8::2', '2001:db8:0:0:ffff::1', '2001:db8:0:1::1'].map((address) =>
      takes(limit, address),
    )
    expect(seen).toEqual([true, true, false, true])
  })

  test('counts IPv6 by the /48 as well, at ten times the number, and says when that ends', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 2, 5_000)
    const counted = limit.acquire('2001:db8:7::1')!
    const taken = Array.from({ length: 20 }, (_, i) => takes(limit, `2001:db8:7:${(i + 1).toString(16)}::1`))
    expect([true, ...taken]).toEqual([...Array(20).fill(true), false])
    expect(limit.retryAfter('2001:db8:7:99::1')).toBe(5)
    expect(takes(limit, '2001:db8:8::1')).toBe(true)
    limit.release(counted)
    expect([takes(limit, '2001:db8:7:99::1'), takes(limit, '2001:db8:7:98::1')]).toEqual([true, false])
    clock.advance(5_000)
    expect(takes(limit, '2001:db8:7:98::1')).toBe(true)
  })

  test('remembers at most 10,000 clients: what has ended goes, what has not is not forgotten for others', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 1, 1_000)
    takes(limit, '198.51.100.1')
    fill(limit, 20_001, ipv4(10))
    expect(takes(limit, '198.51.100.1')).toBe(false)
    clock.advance(1_000)
    expect(takes(limit, '198.51.100.1')).toBe(true)
  })

  test('counts new clients past that by their provider, at ten times the number', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 2, 1_000)
    fill(limit, 9_999, ipv4(10))
    expect(takes(limit, '192.0.2.1')).toBe(true)
    const counted = limit.acquire('198.51.0.1')!
    const taken = Array.from({ length: 20 }, (_, i) => takes(limit, `198.51.${i + 1}.1`))
    expect([true, ...taken]).toEqual([...Array(20).fill(true), false])
    expect(limit.retryAfter('198.51.99.1')).toBe(1)
    expect([takes(limit, '198.52.0.1'), takes(limit, '192.0.2.1'), takes(limit, '192.0.2.1')]).toEqual([
      ...[true, true, false],
    ])
    limit.release(counted)
    expect([takes(limit, '198.51.98.1'), takes(limit, '198.51.97.1')]).toEqual([true, false])
    clock.advance(1_000)
    expect(takes(limit, '198.51.97.1')).toBe(true)
  })

  test('has room for 10,000 providers, and then forgets the one whose window ends first', () => {
    const clock = new TestClock()
    const limit = new AddressLimit(clock, 1, 1_000)
    fill(limit, 10_000, ipv4(10))
    const provider = (i: number) =>
      `2a${(i >> 16).toString(16).padStart(2, '0')}:${(i & 0xffff).toString(16)}`
    for (let i = 0; i < 10; i++) takes(limit, `${provider(0)}:${i}::1`)
    expect(takes(limit, `${provider(0)}:a::1`)).toBe(false)
    fill(limit, 10_000, (i) => `${provider(i + 1)}::1`)
    expect(takes(limit, `${provider(0)}:a::1`)).toBe(true)
  })
})
