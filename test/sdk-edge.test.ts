// client.kv with keys of any form, client.inboxes and client.rateLimit against the service.

import { expect, test } from 'bun:test'
import { WaystationTimeoutError } from '../sdk/src/index.ts'
import { setPlan } from '../src/tenants/service.ts'
import { all, clientsOf, failureOf, TestPlatform } from './support/sdk.ts'
import { forEachService } from './support/service.ts'

forEachService('client.kv', (service) => {
  test.each(['%2e', '.%2E', '%2e%2e', '%2F', '...', 'a/../b'])(
    'puts, reads and deletes the key %s',
    async (key) => {
      const { agent } = await clientsOf(service, await service.signUp())
      await agent.kv.put('state', key, 1)
      expect((await all(agent.kv.list('state'))).map((entry) => entry.key)).toEqual([key])
      expect(await agent.kv.get('state', key)).toMatchObject({ key, value: 1 })
      await agent.kv.delete('state', key)
      expect(await agent.kv.find('state', key)).toBeNull()
    },
  )
})

forEachService('client.inboxes', (service) => {
  const send = (url: string, body: unknown) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

  test('creates, lists in pages, reads and deletes', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const made = []
    for (const label of ['a', 'b', 'c']) {
      service.clock.advance(1)
      made.unshift(await agent.inboxes.create({ label, ttl: 3600 }))
    }
    const list = agent.inboxes.list({ limit: 2 })
    expect((await all(list)).map(({ id }) => id)).toEqual(made.map(({ id }) => id))
    expect((await all(list.pages())).map(({ items, next_cursor }) => [items.length, next_cursor])).toEqual([
      [2, '2'],
      [1, null],
    ])
    expect((await all(agent.inboxes.list({ offset: 2 }))).map(({ label }) => label)).toEqual(['a'])

    await send(`${made[0]!.url}/sub?x=1&x=2`, { n: 1 })
    const { inbox, messages } = await agent.inboxes.get(made[0]!.id)
    expect(inbox).toMatchObject({ label: 'c', messageCount: 1, forwardUrl: null })
    expect(messages).toHaveLength(1)
    expect(messages[0]).toMatchObject({ path: '/sub', body: { n: 1 }, query: { x: ['1', '2'] } })
    expect(messages[0]!.headers['content-type']).toBe('application/json')
    expect(await agent.inboxes.delete(made[0]!.id)).toEqual({ deleted: true })
    expect(await failureOf(agent.inboxes.get(made[0]!.id))).toMatchObject({
      code: 'INBOX_NOT_FOUND',
      status: 404,
    })
  })

  test('messages come oldest first, over all pages, from a cursor on', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const { id, url } = await agent.inboxes.create()
    for (let n = 1; n <= 5; n++) {
      service.clock.advance(1)
      await send(url, n)
    }
    const list = agent.inboxes.messages(id, { limit: 2 })
    const messages = await all(list)
    expect(messages.map(({ body }) => body)).toEqual([1, 2, 3, 4, 5])
    const first = await list.page()
    expect(first.items.map(({ body }) => body)).toEqual([1, 2])
    const rest = agent.inboxes.messages(id, { after: first.next_cursor! })
    expect((await all(rest)).map(({ body }) => body)).toEqual([3, 4, 5])
  })

  test('follow waits for what comes, and ends when the inbox has expired and all was read', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const { id, url } = await agent.inboxes.create({ ttl: 60 })
    await send(url, 1)
    const bodies: unknown[] = []
    for await (const { body } of agent.inboxes.messages(id, { follow: true, wait_seconds: 1 })) {
      bodies.push(body)
      if (bodies.length === 1) void send(url, 2)
      if (bodies.length === 2) {
        await send(url, 3)
        service.clock.advance(60_000)
      }
    }
    expect(bodies).toEqual([1, 2, 3])
  })

  test('follow asks again, at most about once a second, when the service does not let it wait', async () => {
    const { agent, platform } = await clientsOf(service, await service.signUp())
    const { id, url } = await agent.inboxes.create({ ttl: 60 })
    platform.onSleep = async () => {
      if (platform.slept.length === 2) await send(url, 'late')
      if (platform.slept.length === 4) service.clock.advance(60_000)
    }
    const messages = await all(agent.inboxes.messages(id, { follow: true, wait_seconds: 0 }))
    expect(messages.map(({ body }) => body)).toEqual(['late'])
    expect(platform.slept).toEqual([1_500, 1_500, 1_500, 1_500])
  })

  test('follow goes on although our clock says that the inbox has expired: that of the service counts', async () => {
    const ahead = new TestPlatform(() => service.clock.now() + 3_600_000)
    const tenant = await service.signUp()
    const { agent: hasty } = await clientsOf(service, tenant, service.url, { platform: ahead })
    const { id, url } = await hasty.inboxes.create({ ttl: 60 })
    ahead.onSleep = async () => {
      if (ahead.slept.length === 2) await send(url, 'late')
      if (ahead.slept.length === 4) service.clock.advance(60_000)
    }
    const messages = await all(hasty.inboxes.messages(id, { follow: true, wait_seconds: 0 }))
    expect(messages.map(({ body }) => body)).toEqual(['late'])
  })

  test('follow ends with the inbox although our clock says that it has not expired', async () => {
    const behind = new TestPlatform(() => service.clock.now() - 3_600_000)
    const tenant = await service.signUp()
    const { agent: slow } = await clientsOf(service, tenant, service.url, { platform: behind })
    const { id, url } = await slow.inboxes.create({ ttl: 60 })
    await send(url, 1)
    behind.onSleep = () => {
      if (behind.slept.length > 3) throw new Error('It goes on.')
    }
    const bodies: unknown[] = []
    for await (const { body } of slow.inboxes.messages(id, { follow: true, wait_seconds: 1 })) {
      bodies.push(body)
      service.clock.advance(60_000)
    }
    expect(bodies).toEqual([1])
  })

  test('follow goes on when another inbox is gone while it looks whether its own is listed', async () => {
    const ahead = new TestPlatform(() => service.clock.now() + 3_600_000)
    const tenant = await service.signUp()
    await setPlan(service.app.db, tenant.tenant_id, 'enterprise')
    let newest = ''
    const { agent } = await clientsOf(service, tenant, service.url, {
      platform: ahead,
      fetch: async (url, init) => {
        if (url.endsWith('offset=100') && newest !== '') {
          const { api_key: key } = tenant
          expect((await service.ask('DELETE', `/api/webhook/${newest}`, { key })).status).toBe(200)
          newest = ''
        }
        return fetch(url, init)
      },
    })
    const { id, url } = await agent.inboxes.create({ ttl: 60 })
    for (let n = 0; n < 100; n++) {
      service.clock.advance(1)
      newest = (await agent.inboxes.create({ ttl: 3_600 })).id
    }
    ahead.onSleep = async () => {
      if (ahead.slept.length === 1) await send(url, 'late')
      if (ahead.slept.length === 2) service.clock.advance(60_000)
    }
    const messages = await all(agent.inboxes.messages(id, { follow: true, wait_seconds: 0 }))
    expect([messages.map(({ body }) => body), newest]).toEqual([['late'], ''])
  })

  test('follow asks for the end of the inbox once', async () => {
    const asked: string[] = []
    const { agent, platform } = await clientsOf(service, await service.signUp(), service.url, {
      fetch: (url, init) => {
        asked.push(`${init.method} ${new URL(url).pathname.split('/').slice(3).length}`)
        return fetch(url, init)
      },
    })
    const { id } = await agent.inboxes.create({ ttl: 60 })
    asked.length = 0
    platform.onSleep = () => {
      if (platform.slept.length === 3) service.clock.advance(60_000)
    }
    expect(await all(agent.inboxes.messages(id, { follow: true, wait_seconds: 0 }))).toEqual([])
    // Messages, the inbox, messages three more times, the list, and a last look.
    expect(asked).toEqual(['GET 2', 'GET 1', 'GET 2', 'GET 2', 'GET 2', 'GET 0', 'GET 2'])
  })

  test('follow outlives a service that is away for a minute', async () => {
    let failing = 0
    const { agent, platform } = await clientsOf(service, await service.signUp(), service.url, {
      fetch: (url, init) => (failing-- > 0 ? Promise.reject(new Error('gone')) : fetch(url, init)),
    })
    const { id, url } = await agent.inboxes.create({ ttl: 60 })
    await send(url, 1)
    const bodies: unknown[] = []
    for await (const { body } of agent.inboxes.messages(id, { follow: true, wait_seconds: 1 })) {
      bodies.push(body)
      if (bodies.length === 2) break
      await send(url, 2)
      failing = 20
    }
    expect(bodies).toEqual([1, 2])
    expect(platform.slept.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(60_000)
  })

  test('without follow messages are asked for as often as every list', async () => {
    let asked = 0
    const { agent } = await clientsOf(service, await service.signUp(), service.url, {
      fetch: () => {
        asked += 1
        return Promise.reject(new Error('gone'))
      },
    })
    await failureOf(all(agent.inboxes.messages('inb_1')))
    expect(asked).toBe(5)
    await failureOf(all(agent.inboxes.messages('inb_1', { follow: true, retries: 2 })))
    expect(asked).toBe(8)
  })

  test('follow ends with its signal', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const { id } = await agent.inboxes.create()
    const controller = new AbortController()
    const following = failureOf(all(agent.inboxes.messages(id, { follow: true, signal: controller.signal })))
    controller.abort('enough')
    expect(await following).toBe('enough')
  })
})

forEachService('client.rateLimit', (service) => {
  const rule = { limit: 2, windowSeconds: 60 }

  test('answers allowed and blocked checks alike, as results', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    expect(await agent.rateLimit.check('mail', rule)).toMatchObject({ allowed: true, count: 1, remaining: 1 })
    await agent.rateLimit.check('mail', rule)
    const blocked = await agent.rateLimit.check('mail', rule)
    expect(blocked).toMatchObject({ allowed: false, count: 3, remaining: 0, retryAfter: 60, limit: 2 })
    expect(await agent.rateLimit.status('mail')).toMatchObject({
      key: 'mail',
      count: 3,
      windowExpired: false,
    })
    expect(await agent.rateLimit.reset('mail')).toEqual({ key: 'mail', reset: true })
    expect(
      await agent.rateLimit.check('mail', { ...rule, algorithm: 'sliding_window', cost: 2 }),
    ).toMatchObject({
      allowed: true,
      remaining: 0,
    })
    expect(await agent.rateLimit.status('a/b c')).toMatchObject({
      key: 'a/b c',
      count: 0,
      windowExpired: true,
    })
  })

  test('wait returns once there is room, after as long as it was told to wait', async () => {
    const { agent, platform } = await clientsOf(service, await service.signUp())
    platform.onSleep = (ms) => service.clock.advance(ms)
    for (let n = 0; n < 2; n++)
      expect(await agent.rateLimit.wait('mail', rule)).toMatchObject({ allowed: true })
    expect(platform.slept).toEqual([])
    expect(await agent.rateLimit.wait('mail', rule)).toMatchObject({ allowed: true, count: 1 })
    expect(platform.slept).toEqual([60_500])
  })

  test.each([
    [0, [], 'no time is'],
    [59_999, [], 'only 59.999 s are'],
    [60_000, [60_000], 'no time is'],
    [60_501, [60_500], 'only 0.001 s are'],
  ])(
    'wait gives up rather than waiting for longer than max_wait_ms: %d',
    async (max_wait_ms, slept, left) => {
      const { agent, platform } = await clientsOf(service, await service.signUp())
      for (let n = 0; n < 2; n++) await agent.rateLimit.check('mail', rule)
      const error = await failureOf(agent.rateLimit.wait('mail', rule, { max_wait_ms }))
      expect(error).toBeInstanceOf(WaystationTimeoutError)
      expect(error).toHaveProperty('message', `Still blocked for 60 s, and ${left} left to wait.`)
      expect(platform.slept).toEqual(slept)
    },
  )

  test('a wait of as long as the window is blocked ends with the window', async () => {
    const { agent, platform } = await clientsOf(service, await service.signUp())
    platform.onSleep = (ms) => service.clock.advance(ms)
    for (let n = 0; n < 2; n++) await agent.rateLimit.check('mail', rule)
    const allowed = await agent.rateLimit.wait('mail', rule, { max_wait_ms: 60_000 })
    expect(allowed).toMatchObject({ allowed: true, count: 1 })
    expect(platform.slept).toEqual([60_000])
  })

  test('wait with a max_wait_ms that is NaN, which would wait for ever, is refused and counts nothing', async () => {
    const { agent } = await clientsOf(service, await service.signUp())
    const error = await failureOf(agent.rateLimit.wait('mail', rule, { max_wait_ms: Number.NaN }))
    expect(error).toBeInstanceOf(TypeError)
    expect(await agent.rateLimit.status('mail')).toMatchObject({ count: 0 })
  })
})
