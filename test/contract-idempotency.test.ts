// Idempotency-Key on every route that creates, generated from the list of routes.

import { beforeAll, describe, expect, test } from 'bun:test'
import { operations } from '../conformance/src/operations.ts'
import { day_ms } from '../src/base/clock.ts'
import type { NamedRoute } from '../src/contract/feature.ts'
import { successStatus } from '../src/contract/route.ts'
import { routes } from '../src/features.ts'
import {
  bearer,
  bytesButId,
  call,
  callersOf,
  errorBytes,
  isAuthenticated,
  type Keyring,
  newKeyring,
  ownHeaders,
  ready,
  seenBy,
  titled,
} from './support/contract.ts'
import { exampleBody } from './support/contract-examples.ts'
import { until } from './support/patience.ts'
import { forEachService, forEachWholeService } from './support/service.ts'

const all_creating = routes.filter(({ route }) => route.create)
const creating = titled(all_creating.filter(({ route }) => route.params === undefined))
/** Those of the contract have their check in the conformance suite: idempotency.refused. */
const beside_the_suite = creating.filter(
  ([, { route }]) =>
    !operations.some((one) => one.creates && one.method === route.method && one.path === route.path),
)
/** Those that act on an object, which a second request finds changed. They read no body. */
const acting = titled(all_creating.filter(({ route }) => route.params !== undefined))

forEachWholeService('an Idempotency-Key', (service) => {
  let a: Keyring
  let b: Keyring
  beforeAll(async () => {
    a = await newKeyring(service)
    b = await newKeyring(service)
  })
  const fresh = () => `key-${crypto.randomUUID()}`
  const send = (named: NamedRoute, key: string, body: unknown, headers: Record<string, string>) =>
    call(
      service,
      named,
      { path: named.route.path, body: undefined },
      { body, headers: { ...headers, 'idempotency-key': key } },
    )

  test.each(creating)('%s: repeated, it gets the first answer again and has one effect', async (_, named) => {
    for (const [who, headers] of callersOf(named.route, a)) {
      const key = fresh()
      const body = exampleBody(named.route)
      const first = await send(named, key, body, headers)
      const before = await seenBy(service, a)
      for (let i = 0; i < 2; i++) {
        const again = await send(named, key, body, headers)
        expect([who, again.status, again.text]).toEqual([who, first.status, first.text])
        expect(again.headers.get('idempotent-replayed')).toBe('true')
        expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
      }
      expect(first.status).toBe(successStatus(named.route))
      expect(first.headers.get('idempotent-replayed')).toBeNull()
      expect(await seenBy(service, a)).toEqual(before)
    }
  })

  test.each(creating)('%s: with another body it gets 422', async (_, named) => {
    const [, headers] = callersOf(named.route, a)[0]!
    const key = fresh()
    const body = { ...exampleBody(named.route), unknown: 1 }
    expect((await send(named, key, body, headers)).status).toBe(successStatus(named.route))
    const other = await send(named, key, { ...body, unknown: 2 }, headers)
    expect(bytesButId(other)).toBe(errorBytes('IDEMPOTENCY_KEY_REUSED', named.route))
    expect((await send(named, key, body, headers)).headers.get('idempotent-replayed')).toBe('true')
  })

  test.each(creating.filter(([, named]) => isAuthenticated(named)))(
    '%s: each principal has its own, which outlives a rotation of its key',
    async (_, named) => {
      const { route } = named
      const owner = await newKeyring(service)
      const two = await service.addAgent(owner.keys.admin, 'agent-two')
      const principals: Record<string, string>[] = [
        ...route.auth.map((kind) => ownHeaders(owner, kind)),
        ...(route.auth.includes('agent') ? [{ 'x-agent-id': two.agent_id, 'x-api-key': two.api_key }] : []),
        ...route.auth.map((kind) => ownHeaders(b, kind)),
      ]
      const key = fresh()
      for (const headers of principals) {
        const answer = await send(named, key, exampleBody(route), headers)
        expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([
          successStatus(route),
          null,
        ])
      }
      expect(principals.length).toBeGreaterThanOrEqual(2)

      const kind = route.auth.find((each) => each !== 'approval')!
      const again = fresh()
      const body = exampleBody(route)
      const first = await send(named, again, body, ownHeaders(owner, kind))
      const subject = kind === 'admin' ? `tenants/${owner.tenant_id}` : `agents/${owner.agent_id}`
      const rotated = await service.ask('POST', `/v1/${subject}/rotate-key`, { key: owner.keys.admin })
      const new_key = kind === 'admin' ? rotated.body.admin_key : rotated.body.api_key
      const replay = await send(named, again, body, bearer(new_key))
      expect([replay.text, replay.headers.get('idempotent-replayed')]).toEqual([first.text, 'true'])
    },
  )

  test.each(creating)('%s: after 24 hours, and no sooner, it makes a new request', async (_, named) => {
    const [, headers] = callersOf(named.route, a)[0]!
    const key = fresh()
    const body = exampleBody(named.route)
    const first = await send(named, key, body, headers)
    service.clock.advance(day_ms - 1)
    expect((await send(named, key, body, headers)).headers.get('idempotent-replayed')).toBe('true')
    service.clock.advance(1)
    const later = await send(named, key, body, headers)
    expect(later.headers.get('idempotent-replayed')).toBeNull()
    expect(later.text).not.toBe(first.text)
  })

  test.each(creating.filter(([, { route }]) => route.prepare))(
    '%s: when its 24 hours end while a repeat is answered, it makes a new request',
    async (_, named) => {
      const [, headers] = callersOf(named.route, a)[0]!
      const key = fresh()
      const body = exampleBody(named.route)
      const first = await send(named, key, body, headers)
      service.clock.advance(day_ms - 1)
      let looks = 0
      service.app.db.onStatement((name) => {
        if (name === 'idempotency.find' && ++looks === 1) service.clock.advance(1)
      })
      const later = await send(named, key, body, headers)
      service.app.db.onStatement(null)
      expect([looks, later.headers.get('idempotent-replayed')]).toEqual([1, null])
      expect(later.text).not.toBe(first.text)
      if (later.status !== first.status) {
        // Of what has a name of its own there is one already.
        expect(later.body.error.code).toEndWith('_TAKEN')
        return
      }
      const again = await send(named, key, body, headers)
      expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([later.text, 'true'])
    },
  )

  test.each(creating)('%s: it is 1 to 255 visible ASCII characters', async (_, named) => {
    const [, headers] = callersOf(named.route, a)[0]!
    const all_visible = Array.from({ length: 94 }, (_char, i) => String.fromCharCode(0x21 + i)).join('')
    const one = String.fromCharCode(0x21 + (Bun.hash.crc32(named.name) % 94))
    for (const key of [one, fresh().padEnd(255, 'x'), `${fresh()}${all_visible}`, `"${fresh()}"`]) {
      const answer = await send(named, key, exampleBody(named.route), headers)
      expect([key, answer.status]).toEqual([key, successStatus(named.route)])
    }
    for (const key of ['', fresh().padEnd(256, 'x'), 'two words', 'tab\tbed', 'é', '\x7f']) {
      const answer = await send(named, key, exampleBody(named.route), headers)
      expect([key, answer.status, answer.body.error.code]).toEqual([key, 400, 'VALIDATION_FAILED'])
      expect(answer.body.error.details).toEqual({
        issues: [{ path: 'header.Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' }],
      })
    }
  })

  test.each(beside_the_suite)('%s: a refused request leaves it unused', async (_, named) => {
    const [, headers] = callersOf(named.route, a)[0]!
    const key = fresh()
    const refused = await send(named, key, '[]', headers)
    expect(refused.status).toBe(400)
    const answer = await send(named, key, exampleBody(named.route), headers)
    expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([
      successStatus(named.route),
      null,
    ])
  })

  describe('of a call on an object', () => {
    /** A call that succeeds once, and how it is sent with a key. */
    async function target(named: NamedRoute) {
      const made = await ready(service, named, a)
      const [, own] = callersOf(named.route, made.keyring)[0]!
      const sendAs = (key: string, body: unknown = made.body, headers = own) =>
        call(
          service,
          named,
          { path: made.path, body: undefined },
          { headers: { ...headers, 'idempotency-key': key }, ...(body === undefined ? {} : { body }) },
        )
      return { made, sendAs }
    }

    /** A replayed message is sent on at once, beside the request: the last event is the failure of that. */
    async function attempted({ keys }: Keyring) {
      await until(async () => {
        const { items } = (await service.ask('GET', '/v1/events?type=message.*', { key: keys.admin })).body
        return items.at(-1).type === 'message.forward_failed'
      })
    }

    test.each(acting)('%s: repeated, it gets the first answer again and has one effect', async (_, named) => {
      const { made, sendAs } = await target(named)
      const key = fresh()
      const first = await sendAs(key)
      expect(first.status).toBe(successStatus(named.route))
      expect(first.headers.get('idempotent-replayed')).toBeNull()
      if (named.name === 'replayMessage') await attempted(made.keyring)
      const before = await seenBy(service, made.keyring)
      for (let i = 0; i < 2; i++) {
        const again = await sendAs(key)
        expect([again.status, again.text]).toEqual([first.status, first.text])
        expect(again.headers.get('idempotent-replayed')).toBe('true')
        expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
      }
      expect(await seenBy(service, made.keyring)).toEqual(before)
    })

    test.each(acting)('%s: each principal has its own', async (_, named) => {
      const { made, sendAs } = await target(named)
      const two = await service.addAgent(made.keyring.keys.admin, `two-${crypto.randomUUID().slice(0, 8)}`)
      const principals = [
        ...named.route.auth.map((kind) => ownHeaders(made.keyring, kind)),
        { 'x-agent-id': two.agent_id, 'x-api-key': two.api_key },
        ...named.route.auth.map((kind) => ownHeaders(b, kind)),
      ]
      const key = fresh()
      for (const headers of principals) {
        const answer = await sendAs(key, undefined, headers)
        expect(answer.headers.get('idempotent-replayed')).toBeNull()
      }
      expect((await sendAs(key, undefined, principals[0])).headers.get('idempotent-replayed')).toBe('true')
    })

    test.each(acting)('%s: after 24 hours, and no sooner, it makes a new request', async (_, named) => {
      const { sendAs } = await target(named)
      const key = fresh()
      await sendAs(key)
      service.clock.advance(day_ms - 1)
      expect((await sendAs(key)).headers.get('idempotent-replayed')).toBe('true')
      service.clock.advance(1)
      expect((await sendAs(key)).headers.get('idempotent-replayed')).toBeNull()
    })

    test.each(acting)('%s: it is 1 to 255 visible ASCII characters', async (_, named) => {
      for (const key of ['!', fresh().padEnd(255, '~')]) {
        const { sendAs } = await target(named)
        expect((await sendAs(key)).status).toBe(successStatus(named.route))
      }
      const { sendAs } = await target(named)
      for (const key of ['', fresh().padEnd(256, 'x'), 'two words', 'é']) {
        expect(await sendAs(key)).toMatchObject({
          status: 400,
          body: { error: { code: 'VALIDATION_FAILED' } },
        })
      }
    })
  })

  test.each(creating.filter(([, { route }]) => route.sign_up))(
    '%s: under 16 characters it could be guessed, so the body is part of it',
    async (_, named) => {
      const bodies = () => [exampleBody(named.route), exampleBody(named.route)]
      const short = 'k'.repeat(15)
      const long = 'k'.repeat(16)
      const [one, two] = bodies()
      for (const body of [one, two]) {
        const answer = await send(named, short, body, {})
        expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, null])
      }
      const again = await send(named, short, two, {})
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
      const [three, four] = bodies()
      expect((await send(named, long, three, {})).status).toBe(201)
      expect(bytesButId(await send(named, long, four, {}))).toBe(
        errorBytes('IDEMPOTENCY_KEY_REUSED', named.route),
      )
    },
  )
})

forEachService(
  'an Idempotency-Key of a public route',
  (service) => {
    service.over_http = true
    test.each(creating.filter(([, { route }]) => route.sign_up))(
      '%s: belongs to the client address',
      async (_, named) => {
        const key = 'k'.repeat(16)
        for (const address of ['192.0.2.1', '192.0.2.2']) {
          const headers = { 'x-forwarded-for': address, 'idempotency-key': key }
          const answer = await call(
            service,
            named,
            { path: named.route.path, body: exampleBody(named.route) },
            { headers },
          )
          expect([address, answer.status, answer.headers.get('idempotent-replayed')]).toEqual([
            address,
            201,
            null,
          ])
        }
      },
    )
  },
  { TRUST_PROXY: '127.0.0.1' },
)
