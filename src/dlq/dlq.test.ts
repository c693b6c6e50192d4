import { afterAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Between, withChangesBetween } from '../../test/support/between.ts'
import {
  type Answer,
  forEachRacedService,
  type TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { day_ms, iso } from '../base/clock.ts'
import { type ErrorCode, errors } from '../base/errors.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { default_plans } from '../features.ts'
import { type DlqStatus, moves, statuses } from './item.ts'
import * as store from './store.ts'

const body_bytes_max = 1_048_576
const kib = 1_024

const LOCK = unnamedAcrossTenants<{ lock_token_hash: string }>(
  'test.lock',
  'select lock_token_hash from dlq_items where tenant_id = :tenant_id and id = :id',
)

/** The envelope, and nothing else. */
function expectRefusal(answer: Answer, code: ErrorCode, details?: object): void {
  const request_id = answer.headers.get('x-request-id')
  // The sentence of a 402 also names the plan and the way on: src/quotas/quota.ts.
  const over = expect.stringMatching(
    /^The plan free allows \d+ \w+, and \d+ are used\. Remove some, or ask the operator/,
  )
  const message = code === 'QUOTA_EXCEEDED' ? over : errors[code].message
  const error = { code, message, ...(details && { details }), request_id }
  expect(answer.body).toEqual({ error })
  expect(answer.status).toBe(errors[code].status)
  expect(answer.headers.get('content-type')).toBe('application/json')
}

/** 400 with issues at exactly these paths. */
function expectInvalid(answer: Answer, ...paths: string[]): void {
  const issues = paths.map((path) => ({ path, message: expect.any(String) }))
  expectRefusal(answer, 'VALIDATION_FAILED', { issues })
}

async function capture(service: TestService, { api_key }: TestTenant, body: object = {}) {
  service.clock.advance(1) // ids made in one millisecond are in no order
  const answer = await service.ask('POST', '/v1/dlq', {
    key: api_key,
    body: { payload: { n: 1 }, error: 'boom', ...body },
  })
  expect(answer.status).toBe(201)
  return answer.body
}

function move(
  service: TestService,
  { api_key }: { api_key: string },
  id: string,
  verb: string,
  body?: object,
) {
  return service.ask('POST', `/v1/dlq/${id}/${verb}`, { key: api_key, ...(body && { body }) })
}

function read(service: TestService, { api_key }: { api_key: string }, id: string) {
  return service.ask('GET', `/v1/dlq/${id}`, { key: api_key })
}

async function idsOf(service: TestService, { api_key }: { api_key: string }, query = ''): Promise<string[]> {
  const list = await service.ask('GET', `/v1/dlq${query}`, { key: api_key })
  expect(list.status).toBe(200)
  return list.body.items.map(({ id }: { id: string }) => id)
}

/** Which verbs bring a new item to a status. */
const ways: Record<DlqStatus, string[]> = {
  failed: [],
  claimed: ['claim'],
  archived: ['claim', 'fail'],
  resolved: ['resolve'],
}

async function itemIn(service: TestService, tenant: TestTenant, status: DlqStatus) {
  const { id } = await capture(service, tenant)
  for (const verb of ways[status]) expect((await move(service, tenant, id, verb)).status).toBe(200)
  const item = (await read(service, tenant, id)).body
  expect(item.status).toBe(status)
  return item
}

forEachRacedService('Dead letters', (service) => {
  describe('a captured failure', () => {
    test('starts as failed, with every field', async () => {
      const tenant = await service.signUp()
      const answer = await service.ask('POST', '/v1/dlq', {
        key: tenant.api_key,
        body: { payload: { order: 7 }, error: 'card declined', workflow_id: 'wf-1', lock_seconds: 60 },
      })
      expect(answer.status).toBe(201)
      expect(answer.headers.get('content-type')).toBe('application/json')
      const created_at = iso(service.clock.now())
      expect(answer.body).toEqual({
        id: expect.stringMatching(/^dlq_[0-9a-z]{26}$/),
        status: 'failed',
        payload: { order: 7 },
        error: 'card declined',
        cause: 'card declined',
        workflow_id: 'wf-1',
        source: 'agent',
        source_id: null,
        agent_id: 'agent-one',
        lock_seconds: 60,
        locked_by: null,
        locked_until: null,
        claims: 0,
        created_at,
        updated_at: created_at,
        resolved_at: null,
        redriven_as: null,
      })
      for (const key of [tenant.api_key, tenant.admin_key]) {
        const found = await service.ask('GET', `/v1/dlq/${answer.body.id}`, { key })
        expect(found.status).toBe(200)
        expect(found.text).toBe(answer.text)
      }
    })

    test('has no workflow and a lock of 300 s unless told otherwise', async () => {
      const tenant = await service.signUp()
      expect(await capture(service, tenant)).toMatchObject({ workflow_id: null, lock_seconds: 300 })
      expect(await capture(service, tenant, { workflow_id: null, lock_seconds: null })).toMatchObject({
        workflow_id: null,
        lock_seconds: 300,
      })
    })

    test('names unknown fields, and takes none of what the server decides', async () => {
      const { api_key } = await service.signUp()
      const body = { payload: 1, error: 'e', status: 'resolved', tenant_id: 'ten_x', source: 'schedule' }
      const answer = await service.ask('POST', '/v1/dlq', { key: api_key, body })
      expect(answer.headers.get('x-ignored-fields')).toBe('status, tenant_id, source')
      expect(answer.body).toMatchObject({ status: 'failed', source: 'agent' })
    })

    test('is made once for one Idempotency-Key', async () => {
      const tenant = await service.signUp()
      const ask = {
        key: tenant.api_key,
        headers: { 'idempotency-key': 'once' },
        body: { payload: 1, error: 'e' },
      }
      const first = await service.ask('POST', '/v1/dlq', ask)
      const second = await service.ask('POST', '/v1/dlq', ask)
      expect([first.headers.get('idempotent-replayed'), second.headers.get('idempotent-replayed')]).toEqual([
        null,
        'true',
      ])
      expect([second.status, second.text]).toEqual([201, first.text])
      expect(await idsOf(service, tenant)).toEqual([first.body.id])
      expectRefusal(
        await service.ask('POST', '/v1/dlq', { ...ask, body: { payload: 2, error: 'e' } }),
        'IDEMPOTENCY_KEY_REUSED',
      )
    })

    test.each([
      ['no payload', '{"error":"e"}', ['/payload']],
      ['no error', '{"payload":1}', ['/error']],
      ['null as error', '{"payload":1,"error":null}', ['/error']],
      ['an error that is not a text', '{"payload":1,"error":{"m":1}}', ['/error']],
      ['an error with NUL', '{"payload":1,"error":"a\\u0000b"}', ['/error']],
      ['an error with half a surrogate pair', '{"payload":1,"error":"\\ud800"}', ['/error']],
      ['nothing', '{}', ['/error', '/payload']],
    ])('with %s is refused', async (_, body, paths) => {
      const { api_key } = await service.signUp()
      const answer = await service.ask('POST', '/v1/dlq', { key: api_key, body })
      expect(answer.status).toBe(400)
      expect(answer.body.error.code).toBe('VALIDATION_FAILED')
      expect(answer.body.error.details.issues.map(({ path }: { path: string }) => path).sort()).toEqual(paths)
    })
  })

  test.each([
    ['null', 'null'],
    ['false', 'false'],
    ['an empty text', '""'],
    ['30 digits', '123456789012345678901234567890'],
    ['a number beyond double precision', '1e400'],
    ['a number with zeros at the end', '1.500'],
    ['order and repeats of names', '{"b":1,"a":2,"b":3}'],
    ['white space', '{ "a" :\n[ 1,\t2 ] }'],
    ['escapes as they were', '"\\u0041\\/\\ud83d\\ude00\\u0000\\ud800"'],
    ['text beyond ASCII', '"Grüße, 世界 😀"'],
    ['63 levels', `${'['.repeat(63)}${']'.repeat(63)}`],
  ])('a payload comes back byte for byte: %s', async (_, text) => {
    const tenant = await service.signUp()
    const created = await service.ask('POST', '/v1/dlq', {
      key: tenant.api_key,
      body: `{"error":"e", "payload" : ${text} }`,
    })
    expect(created.status).toBe(201)
    const { id } = created.body
    const answers = [
      created,
      await read(service, tenant, id),
      await move(service, tenant, id, 'claim'),
      await move(service, tenant, id, 'release'),
      await service.ask('POST', '/v1/dlq/claim', { key: tenant.api_key }),
      await move(service, tenant, id, 'fail'),
      await move(service, tenant, id, 'resolve'),
    ]
    for (const answer of answers) expect(answer.text).toContain(`"payload":${text}`)
  })

  describe('limits', () => {
    test('a payload may fill a body of 1 MiB; a larger body is 413', async () => {
      const tenant = await service.signUp()
      const envelope = '{"error":"e","payload":""}'
      const filling = 'x'.repeat(body_bytes_max - envelope.length)
      const body = `{"error":"e","payload":"${filling}"}`
      expect(body.length).toBe(body_bytes_max)
      const created = await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body })
      expect(created.status).toBe(201)
      expect((await move(service, tenant, created.body.id, 'claim')).body.payload).toBe(filling)
      const larger = await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body: `${body} ` })
      expectRefusal(larger, 'PAYLOAD_TOO_LARGE')
    })

    test.each([
      ['x', 64 * kib],
      ['ü', 32 * kib],
      ['😀', 16 * kib],
    ])('an error of %s has at most 64 KiB', async (character, count_max) => {
      const tenant = await service.signUp()
      const error = character.repeat(count_max)
      expect((await capture(service, tenant, { error })).error).toBe(error)
      const answer = await service.ask('POST', '/v1/dlq', {
        key: tenant.api_key,
        body: { payload: 1, error: `${error}x` },
      })
      expectRefusal(answer, 'PAYLOAD_TOO_LARGE')
    })

    test('a workflow_id has at most 256 characters', async () => {
      const tenant = await service.signUp()
      const workflow_id = 'w'.repeat(256)
      expect((await capture(service, tenant, { workflow_id })).workflow_id).toBe(workflow_id)
      const body = { payload: 1, error: 'e', workflow_id: `${workflow_id}w` }
      expectInvalid(await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body }), '/workflow_id')
    })

    test.each([
      ['1', 1],
      ['60.0', 60],
      ['86400', 86_400],
    ])('lock_seconds may be %s, at capture and at both claims', async (text, seconds) => {
      const tenant = await service.signUp()
      const { api_key } = tenant
      const created = await service.ask('POST', '/v1/dlq', {
        key: api_key,
        body: `{"payload":1,"error":"e","lock_seconds":${text}}`,
      })
      expect(created.body.lock_seconds).toBe(seconds)
      const other = await capture(service, tenant)
      const locked_until = iso(service.clock.now() + seconds * 1_000)
      const body = `{"lock_seconds":${text}}`
      const oldest = await service.ask('POST', '/v1/dlq/claim', { key: api_key, body })
      expect(oldest.body).toMatchObject({ id: created.body.id, locked_until, lock_seconds: seconds })
      const claimed = await service.ask('POST', `/v1/dlq/${other.id}/claim`, { key: api_key, body })
      expect(claimed.body).toMatchObject({ id: other.id, locked_until, lock_seconds: 300 })
    })

    test.each(['0', '-1', '86401', '1.5', '"60"', 'true', '1e400'])(
      'lock_seconds may not be %s',
      async (text) => {
        const tenant = await service.signUp()
        const item = await capture(service, tenant)
        for (const path of ['/v1/dlq', '/v1/dlq/claim', `/v1/dlq/${item.id}/claim`]) {
          const body = `{"payload":1,"error":"e","lock_seconds":${text}}`
          expectInvalid(await service.ask('POST', path, { key: tenant.api_key, body }), '/lock_seconds')
        }
        expect((await read(service, tenant, item.id)).body).toEqual(item)
      },
    )
  })

  describe('a claim', () => {
    test.each([
      ['of the item', undefined, 120],
      ['of its own', { lock_seconds: 7 }, 7],
      ['of the item when null', { lock_seconds: null }, 120],
    ])('answers payload and lock_token, and holds for the lock_seconds %s', async (_, body, seconds) => {
      const tenant = await service.signUp()
      const item = await capture(service, tenant, { lock_seconds: 120 })
      service.clock.advance(5)
      const claimed = await move(service, tenant, item.id, 'claim', body)
      expect(claimed.status).toBe(200)
      const held = {
        ...item,
        status: 'claimed',
        locked_by: 'agent-one',
        locked_until: iso(service.clock.now() + seconds * 1_000),
        claims: 1,
        updated_at: iso(service.clock.now()),
      }
      const { lock_token, ...rest } = claimed.body
      expect(lock_token).toMatch(/^lck_[0-9a-z]{26}$/)
      expect(rest).toEqual(held)
      expect((await read(service, tenant, item.id)).body).toEqual(held)
    })

    test('of a claimed item is ALREADY_CLAIMED, for the holder too', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const item = await itemIn(service, tenant, 'claimed')
      for (const agent of [tenant, other]) {
        expectRefusal(await move(service, agent, item.id, 'claim'), 'ALREADY_CLAIMED')
      }
      expect((await read(service, tenant, item.id)).body).toEqual(item)
    })

    test('has one winner of twenty', async () => {
      const tenant = await service.signUp()
      const item = await capture(service, tenant)
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => move(service, tenant, item.id, 'claim')),
      )
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(answers.filter(({ body }) => body.error?.code === 'ALREADY_CLAIMED')).toHaveLength(19)
      expect((await read(service, tenant, item.id)).body.claims).toBe(1)
    })

    test('of an item that is released while it is refused takes the item', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const { tenant_id } = tenant
      const { id } = await itemIn(service, tenant, 'claimed')
      const { lock_token_hash } = (await service.app.db.one(LOCK, { tenant_id, id }))!
      const released: Between = {
        name: 'dlq.find',
        change: async (tx) => {
          const hold = { agent_id: 'agent-one', lock_token_hash, at: tx.now }
          await store.release(tx, tenant_id, id, hold)
        },
      }
      const claim = () => move(service, other, id, 'claim')
      const { status, body } = await withChangesBetween(service.app.db, [released], claim)
      expect([status, body.status, body.locked_by]).toEqual([200, 'claimed', 'agent-two'])
    })

    test('runs out on the millisecond, for every reader at once and before any sweep', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const item = await capture(service, tenant, { lock_seconds: 10 })
      const first = (await move(service, tenant, item.id, 'claim')).body

      service.clock.advance(9_999)
      expect((await read(service, other, item.id)).body.status).toBe('claimed')
      expect(await idsOf(service, other, '?status=claimed')).toEqual([item.id])
      expect(await idsOf(service, other, '?status=failed')).toEqual([])
      expectRefusal(await move(service, other, item.id, 'claim'), 'ALREADY_CLAIMED')
      expect((await service.ask('POST', '/v1/dlq/claim', { key: other.api_key })).status).toBe(204)

      service.clock.advance(1)
      const expired = { ...item, claims: 1, updated_at: first.updated_at }
      expect((await read(service, other, item.id)).body).toEqual(expired)
      const { payload: _, ...listed } = expired
      for (const query of ['', '?status=failed']) {
        const list = await service.ask('GET', `/v1/dlq${query}`, { key: tenant.admin_key })
        expect(list.body).toEqual({ items: [listed], next_cursor: null })
      }
      expect(await idsOf(service, other, '?status=claimed')).toEqual([])
      const second = await move(service, other, item.id, 'claim')
      expect(second.body).toMatchObject({ status: 'claimed', locked_by: 'agent-two', claims: 2 })
      expect(second.body.lock_token).not.toBe(first.lock_token)
    })

    test('of an expired item shuts out the token of the claim before, also of the same agent', async () => {
      const tenant = await service.signUp()
      const item = await capture(service, tenant, { lock_seconds: 10 })
      const { lock_token } = (await move(service, tenant, item.id, 'claim')).body
      service.clock.advance(10_000)
      const again = (await move(service, tenant, item.id, 'claim')).body
      for (const verb of ['extend', 'release', 'fail', 'resolve']) {
        expectRefusal(await move(service, tenant, item.id, verb, { lock_token }), 'LOCK_NOT_HELD')
      }
      const { lock_token: current, ...claimed } = again
      expect((await read(service, tenant, item.id)).body).toEqual(claimed)
      const released = await move(service, tenant, item.id, 'release', { lock_token: current })
      expect(released.body.status).toBe('failed')
    })
  })

  describe('extend', () => {
    test.each([
      ['of the item', {}, 120],
      ['in the body', { lock_seconds: 600 }, 600],
      ['in the body, fewer than are left', { lock_seconds: 1 }, 1],
      ['of the item when null', { lock_seconds: null }, 120],
    ])('answers as the claim did, and holds for the lock_seconds %s from now', async (_, body, seconds) => {
      const tenant = await service.signUp()
      const item = await capture(service, tenant, { lock_seconds: 120 })
      const claimed = (await move(service, tenant, item.id, 'claim')).body
      service.clock.advance(100_000)
      const { lock_token } = claimed
      const extended = await move(service, tenant, item.id, 'extend', { ...body, lock_token })
      const locked_until = iso(service.clock.now() + seconds * 1_000)
      const expected = { ...claimed, locked_until, updated_at: iso(service.clock.now()) }
      expect([extended.status, extended.body]).toEqual([200, expected])

      service.clock.advance(seconds * 1_000 - 1)
      expect((await read(service, tenant, item.id)).body).toMatchObject({ status: 'claimed', locked_until })
      service.clock.advance(1)
      expect((await read(service, tenant, item.id)).body).toMatchObject({ status: 'failed', claims: 1 })
      expectRefusal(await move(service, tenant, item.id, 'extend', { lock_token }), 'INVALID_STATE', {
        status: 'failed',
      })
    })

    test('may be repeated as long as the lock holds', async () => {
      const tenant = await service.signUp()
      const { id } = await capture(service, tenant, { lock_seconds: 10 })
      const { lock_token } = (await move(service, tenant, id, 'claim')).body
      for (let round = 0; round < 3; round++) {
        service.clock.advance(9_999)
        expect((await move(service, tenant, id, 'extend', { lock_token })).body.lock_token).toBe(lock_token)
      }
      expect((await read(service, tenant, id)).body).toMatchObject({ status: 'claimed', claims: 1 })
    })

    test.each([
      ['0', 400],
      ['1', 200],
      ['86400', 200],
      ['86401', 400],
      ['1.5', 400],
    ])('takes lock_seconds from 1 to 86,400: %s', async (text, status) => {
      const tenant = await service.signUp()
      const { id } = await itemIn(service, tenant, 'claimed')
      const path = `/v1/dlq/${id}/extend`
      const answer = await service.ask('POST', path, {
        key: tenant.api_key,
        body: `{"lock_seconds":${text}}`,
      })
      expect(answer.status).toBe(status)
    })
  })

  describe('POST /v1/dlq/claim', () => {
    test('takes the oldest claimable item, expired ones among them; 204 when there is none', async () => {
      const tenant = await service.signUp()
      const claim = (body?: object) =>
        service.ask('POST', '/v1/dlq/claim', { key: tenant.api_key, ...(body && { body }) })
      const lapsing = await capture(service, tenant, { lock_seconds: 10 })
      await move(service, tenant, lapsing.id, 'claim')
      await itemIn(service, tenant, 'resolved')
      await itemIn(service, tenant, 'archived')
      const older = await capture(service, tenant)
      const newer = await capture(service, tenant)
      expect((await claim()).body).toMatchObject({ id: older.id, status: 'claimed', claims: 1 })
      service.clock.advance(10_000)
      const second = await claim({ lock_seconds: 20 })
      expect(second.status).toBe(200)
      const { lock_token, ...item } = second.body
      expect(lock_token).toMatch(/^lck_/)
      expect(item).toEqual({
        ...lapsing,
        status: 'claimed',
        locked_by: 'agent-one',
        locked_until: iso(service.clock.now() + 20_000),
        claims: 2,
        updated_at: iso(service.clock.now()),
      })
      expect((await claim()).body.id).toBe(newer.id)
      const none = await claim()
      expect([none.status, none.text]).toEqual([204, ''])
      expect(none.headers.get('x-request-id')).toMatch(/^req_/)
      expect(none.headers.get('content-type')).toBeNull()
    })

    test('gives each of twenty who ask at once another item, as long as there are any', async () => {
      const tenant = await service.signUp()
      const made: string[] = []
      for (let i = 0; i < 5; i++) made.push((await capture(service, tenant)).id)
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => service.ask('POST', '/v1/dlq/claim', { key: tenant.api_key })),
      )
      const won = answers.filter(({ status }) => status === 200).map(({ body }) => body.id)
      expect(won.toSorted()).toEqual(made.toSorted())
      expect(answers.filter(({ status }) => status === 204)).toHaveLength(15)
    })
  })

  describe('moves', () => {
    const walked = statuses.flatMap((status) =>
      (Object.keys(moves) as (keyof typeof moves)[])
        .filter((verb) => verb !== 'discard') // of many at once: operations.test.ts
        .map((verb) => [verb, status] as const),
    )

    test.each(walked)('%s of a %s item is allowed or refused as the table says', async (verb, status) => {
      const tenant = await service.signUp()
      const before = await itemIn(service, tenant, status)
      service.clock.advance(5)
      const answer = await move(service, tenant, before.id, verb)
      const after = (await read(service, tenant, before.id)).body
      if ((moves[verb].from as readonly DlqStatus[]).includes(status)) {
        expect(answer.status).toBe(200)
        const { lock_token: _, ...shown } = answer.body
        expect(shown).toEqual(after)
        expect(after.status).toBe(moves[verb].to)
        return
      }
      const details = verb === 'redrive' ? { status, redriven_as: null } : { status }
      const is_claim = verb === 'claim' || verb === 'redrive'
      const expected: [ErrorCode, object?] =
        is_claim && status === 'claimed' ? ['ALREADY_CLAIMED'] : ['INVALID_STATE', details]
      expectRefusal(answer, ...expected)
      expect(after).toEqual(before)
    })

    test.each(walked)('%s of a %s item by another agent of the tenant', async (verb, status) => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const before = await itemIn(service, tenant, status)
      const answer = await move(service, other, before.id, verb)
      if (status === 'claimed' && (verb === 'extend' || verb === 'release' || verb === 'fail')) {
        expectRefusal(answer, 'LOCK_NOT_HELD')
        expect((await read(service, tenant, before.id)).body).toEqual(before)
        return
      }
      const allowed = (moves[verb].from as readonly DlqStatus[]).includes(status)
      expect(answer.status).toBe(allowed ? 200 : 409)
    })

    test.each(statuses)('DELETE of a %s item removes it for good', async (status) => {
      const tenant = await service.signUp()
      const { id } = await itemIn(service, tenant, status)
      const removed = await service.ask('DELETE', `/v1/dlq/${id}`, { key: tenant.api_key })
      expect([removed.status, removed.text]).toEqual([204, ''])
      expectRefusal(await service.ask('DELETE', `/v1/dlq/${id}`, { key: tenant.api_key }), 'DLQ_NOT_FOUND')
      expectRefusal(await read(service, tenant, id), 'DLQ_NOT_FOUND')
      expect(await idsOf(service, tenant)).toEqual([])
    })

    test('release makes the item failed, and anybody may claim it', async () => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      const item = await capture(service, tenant)
      await move(service, tenant, item.id, 'claim')
      service.clock.advance(5)
      const released = await move(service, tenant, item.id, 'release')
      expect(released.body).toEqual({ ...item, claims: 1, updated_at: iso(service.clock.now()) })
      expect((await move(service, other, item.id, 'claim')).body).toMatchObject({
        claims: 2,
        locked_by: 'agent-two',
      })
    })

    test('fail archives the item', async () => {
      const tenant = await service.signUp()
      const item = await capture(service, tenant)
      const { lock_token } = (await move(service, tenant, item.id, 'claim')).body
      service.clock.advance(5)
      const failed = await move(service, tenant, item.id, 'fail', { lock_token })
      expect(failed.body).toEqual({
        ...item,
        status: 'archived',
        claims: 1,
        updated_at: iso(service.clock.now()),
      })
    })

    test.each(statuses.filter((status) => status !== 'resolved'))(
      'resolve of a %s item keeps when, takes any lock away, and changes nothing when repeated',
      async (status) => {
        const tenant = await service.signUp()
        const other = await service.addAgent(tenant.admin_key, 'agent-two')
        const before = await itemIn(service, tenant, status)
        service.clock.advance(5)
        const at = iso(service.clock.now())
        const first = await move(service, other, before.id, 'resolve')
        expect(first.body).toEqual({
          ...before,
          status: 'resolved',
          locked_by: null,
          locked_until: null,
          updated_at: at,
          resolved_at: at,
        })
        service.clock.advance(5)
        for (const body of [undefined, {}, { lock_token: 'whatever' }]) {
          const again = await move(service, tenant, before.id, 'resolve', body)
          expect([again.status, again.text]).toEqual([200, first.text])
        }
      },
    )
  })

  describe('a lock_token', () => {
    /** The caller and its token of a claimed item, and the answer of each verb. */
    const held: [string, 'holder' | 'other', 'current' | 'stale' | 'none', Record<string, number>][] = [
      [
        'the holder without a token',
        'holder',
        'none',
        { extend: 200, release: 200, fail: 200, resolve: 200 },
      ],
      [
        'the holder with the current token',
        'holder',
        'current',
        { extend: 200, release: 200, fail: 200, resolve: 200 },
      ],
      [
        'the holder with a stale token',
        'holder',
        'stale',
        { extend: 409, release: 409, fail: 409, resolve: 409 },
      ],
      [
        'another agent without a token',
        'other',
        'none',
        { extend: 409, release: 409, fail: 409, resolve: 200 },
      ],
      [
        "another agent with the holder's token",
        'other',
        'current',
        { extend: 409, release: 409, fail: 409, resolve: 200 },
      ],
      [
        'another agent with a stale token',
        'other',
        'stale',
        { extend: 409, release: 409, fail: 409, resolve: 409 },
      ],
    ]

    test.each(held)('of a claimed item: %s', async (_, who, which, expected) => {
      const tenant = await service.signUp()
      const other = await service.addAgent(tenant.admin_key, 'agent-two')
      for (const [verb, status] of Object.entries(expected)) {
        const { id } = await capture(service, tenant)
        const stale = (await move(service, tenant, id, 'claim')).body.lock_token
        await move(service, tenant, id, 'release')
        const current = (await move(service, tenant, id, 'claim')).body.lock_token
        const before = (await read(service, tenant, id)).body
        const token = { current, stale, none: undefined }[which]
        const asking = who === 'holder' ? tenant : other
        const answer = await move(
          service,
          asking,
          id,
          verb,
          token === undefined ? undefined : { lock_token: token },
        )
        expect(answer.status).toBe(status)
        if (status !== 409) continue
        expectRefusal(answer, 'LOCK_NOT_HELD')
        expect((await read(service, tenant, id)).body).toEqual(before)
      }
    })

    test.each(['failed', 'expired', 'archived'] as const)(
      'of a %s item is INVALID_STATE, whatever the token',
      async (situation) => {
        const tenant = await service.signUp()
        const { id } = await capture(service, tenant, { lock_seconds: 10 })
        const { lock_token } = (await move(service, tenant, id, 'claim')).body
        if (situation === 'expired') service.clock.advance(10_000)
        else await move(service, tenant, id, situation === 'failed' ? 'release' : 'fail')
        const status = situation === 'archived' ? 'archived' : 'failed'
        for (const token of [lock_token, 'lck_other', '']) {
          for (const verb of ['extend', 'release', 'fail', 'resolve']) {
            const answer = await move(service, tenant, id, verb, { lock_token: token })
            expectRefusal(answer, 'INVALID_STATE', { status })
          }
        }
        for (const verb of ['extend', 'release', 'fail']) {
          expectRefusal(await move(service, tenant, id, verb), 'INVALID_STATE', { status })
        }
      },
    )

    test('is kept as its hash: extend answers the one that was sent, and null when none was', async () => {
      const tenant = await service.signUp()
      const { id } = await capture(service, tenant)
      const { lock_token } = (await move(service, tenant, id, 'claim')).body
      const kept = await service.app.db.one(LOCK, { tenant_id: tenant.tenant_id, id })
      expect(kept).toEqual({ lock_token_hash: createHash('sha256').update(lock_token).digest('hex') })
      expect((await move(service, tenant, id, 'extend', { lock_token })).body.lock_token).toBe(lock_token)
      const extended = await move(service, tenant, id, 'extend')
      expect([extended.status, extended.body.lock_token]).toEqual([200, null])
      const hash_as_token = { lock_token: kept!.lock_token_hash }
      expectRefusal(await move(service, tenant, id, 'release', hash_as_token), 'LOCK_NOT_HELD')
      expect((await move(service, tenant, id, 'release', { lock_token })).status).toBe(200)
    })

    test('is shown by claim and extend alone', async () => {
      const tenant = await service.signUp()
      const { id } = await itemIn(service, tenant, 'claimed')
      const list = await service.ask('GET', '/v1/dlq', { key: tenant.api_key })
      for (const shown of [(await read(service, tenant, id)).body, list.body.items[0]]) {
        expect(shown).not.toHaveProperty('lock_token')
      }
    })
  })

  describe('a list', () => {
    test('is newest first, by status, in pages, without payloads', async () => {
      const tenant = await service.signUp()
      const made: Record<DlqStatus, string[]> = { failed: [], claimed: [], resolved: [], archived: [] }
      for (let round = 0; round < 3; round++) {
        for (const status of statuses) made[status].unshift((await itemIn(service, tenant, status)).id)
      }
      const all = await service.ask('GET', '/v1/dlq', { key: tenant.admin_key })
      const ids = all.body.items.map(({ id }: { id: string }) => id)
      expect(ids).toEqual(Object.values(made).flat().toSorted().toReversed())
      expect(all.body.next_cursor).toBeNull()
      for (const item of all.body.items) expect(item).not.toHaveProperty('payload')
      const { payload: _, ...first } = (await read(service, tenant, ids[0])).body
      expect(all.body.items[0]).toEqual(first)
      for (const status of statuses) {
        const query = `/v1/dlq?status=${status}&limit=2`
        const page = await service.ask('GET', query, { key: tenant.api_key })
        expect(page.body.items.map(({ id }: { id: string }) => id)).toEqual(made[status].slice(0, 2))
        const rest = await service.ask('GET', `${query}&cursor=${page.body.next_cursor}`, {
          key: tenant.api_key,
        })
        expect(rest.body.items.map(({ id }: { id: string }) => id)).toEqual(made[status].slice(2))
        expect(rest.body.next_cursor).toBeNull()
      }
    })

    test.each([
      ['status=open', 'query.status'],
      ['limit=0', 'query.limit'],
      ['cursor=AAAA', 'query.cursor'],
    ])('with %s is refused', async (query, path) => {
      const { api_key } = await service.signUp()
      expectInvalid(await service.ask('GET', `/v1/dlq?${query}`, { key: api_key }), path)
    })
  })

  const on_one = [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/claim'],
    ['POST', '/extend'],
    ['POST', '/release'],
    ['POST', '/fail'],
    ['POST', '/resolve'],
  ] as const

  test.each(on_one)("%s …%s of another tenant's item answers as of none at all", async (method, suffix) => {
    const [owner, stranger] = [await service.signUp(), await service.signUp()]
    const item = await itemIn(service, owner, 'claimed')
    for (const id of [item.id, 'dlq_01k9x3m6v2h8qa4n0r5t7w1z9c', 'x'.repeat(300), '%F0%9F%98%80']) {
      const answer = await service.ask(method, `/v1/dlq/${id}${suffix}`, { key: stranger.api_key })
      expectRefusal(answer, 'DLQ_NOT_FOUND')
    }
    expect((await read(service, owner, item.id)).body).toEqual(item)
    expect(await idsOf(service, stranger)).toEqual([])
    expect((await service.ask('POST', '/v1/dlq/claim', { key: stranger.api_key })).status).toBe(204)
  })

  test.each([['POST', '/v1/dlq'], ['POST', '/v1/dlq/claim'], ...on_one.slice(1)] as [string, string][])(
    '%s %s is for agents, not for the admin key',
    async (method, path) => {
      const tenant = await service.signUp()
      const { id } = await capture(service, tenant)
      const full_path = path.startsWith('/v1') ? path : `/v1/dlq/${id}${path}`
      expectRefusal(await service.ask(method, full_path, { key: tenant.admin_key }), 'FORBIDDEN', {
        ...{ key_kind: 'admin', accepted_key_kinds: ['agent'] },
      })
      expectRefusal(await service.ask(method, full_path), 'UNAUTHORIZED')
    },
  )
})

const folder = mkdtempSync(join(tmpdir(), 'waystation-plans-'))
const plans_file = join(folder, 'plans.json')
const free = { ...default_plans.free, dlq_items: 3 }
writeFileSync(plans_file, JSON.stringify({ ...default_plans, free }))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

forEachRacedService(
  'The quota dlq_items',
  (service) => {
    const limit = 3
    const used = async ({ tenant_id, admin_key }: TestTenant) => {
      const tenant = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
      return tenant.body.quota.dlq_items
    }
    const tryCapture = ({ api_key }: TestTenant) =>
      service.ask('POST', '/v1/dlq', { key: api_key, body: { payload: 1, error: 'e' } })

    test('counts failed and claimed items, and refuses the next one with its details', async () => {
      const tenant = await service.signUp()
      await itemIn(service, tenant, 'failed')
      await itemIn(service, tenant, 'claimed')
      await itemIn(service, tenant, 'resolved')
      await itemIn(service, tenant, 'archived')
      expect(await used(tenant)).toEqual({ used: 2, limit })
      await capture(service, tenant)
      expectRefusal(await tryCapture(tenant), 'QUOTA_EXCEEDED', { quota: 'dlq_items', used: 3, limit })
      expect(await used(tenant)).toEqual({ used: 3, limit })
      expect(await idsOf(service, tenant)).toHaveLength(5)
    })

    test('is exact when many ask at once', async () => {
      const tenant = await service.signUp()
      const answers = await Promise.all(Array.from({ length: 12 }, () => tryCapture(tenant)))
      expect(answers.map(({ status }) => status).toSorted()).toEqual([
        ...Array(3).fill(201),
        ...Array(9).fill(402),
      ])
      expect(await idsOf(service, tenant)).toHaveLength(3)
      const resolved = await Promise.all(
        (await idsOf(service, tenant)).flatMap((id) =>
          Array.from({ length: 4 }, () => move(service, tenant, id, 'resolve')),
        ),
      )
      expect(resolved.map(({ status }) => status)).toEqual(Array(12).fill(200))
      expect(await used(tenant)).toEqual({ used: 0, limit })
    })

    const freeing: [string, DlqStatus, (tenant: TestTenant, id: string) => Promise<unknown>, number][] = [
      ['resolve of a failed item', 'failed', (t, id) => move(service, t, id, 'resolve'), 1],
      ['resolve of a claimed item', 'claimed', (t, id) => move(service, t, id, 'resolve'), 1],
      ['resolve of an archived item', 'archived', (t, id) => move(service, t, id, 'resolve'), 0],
      ['a repeated resolve', 'resolved', (t, id) => move(service, t, id, 'resolve'), 0],
      ['fail', 'claimed', (t, id) => move(service, t, id, 'fail'), 1],
      ['a refused fail', 'failed', (t, id) => move(service, t, id, 'fail'), 0],
      ['claim', 'failed', (t, id) => move(service, t, id, 'claim'), 0],
      ['extend', 'claimed', (t, id) => move(service, t, id, 'extend'), 0],
      ['release', 'claimed', (t, id) => move(service, t, id, 'release'), 0],
      ...statuses.map(
        (status) =>
          [
            `DELETE of a ${status} item`,
            status,
            ({ api_key }: TestTenant, id: string) => service.ask('DELETE', `/v1/dlq/${id}`, { key: api_key }),
            status === 'failed' || status === 'claimed' ? 1 : 0,
          ] as (typeof freeing)[number],
      ),
    ]

    test.each(freeing)('%s frees what it should', async (_, status, act, freed) => {
      const tenant = await service.signUp()
      await capture(service, tenant)
      const { id } = await itemIn(service, tenant, status)
      const before = (await used(tenant)).used
      await act(tenant, id)
      expect(await used(tenant)).toEqual({ used: before - freed, limit })
    })

    test('an expired lock frees nothing, and deleting the item frees one', async () => {
      const tenant = await service.signUp()
      const { id } = await itemIn(service, tenant, 'claimed')
      service.clock.advance(300_000)
      expect(await used(tenant)).toEqual({ used: 1, limit })
      await service.ask('DELETE', `/v1/dlq/${id}`, { key: tenant.api_key })
      expect(await used(tenant)).toEqual({ used: 0, limit })
    })

    test('refuses nothing that the service itself gives up on', async () => {
      const tenant = await service.signUp()
      for (let i = 0; i < limit; i++) await capture(service, tenant)
      const checkpoint = await service.ask('POST', '/v1/checkpoints', {
        key: tenant.api_key,
        body: {
          title: 'ok?',
          callback_url: 'http://127.0.0.1:9/',
          timeout_action: 'dlq',
          timeout_seconds: 60,
        },
      })
      expect(checkpoint.status).toBe(201)
      service.clock.advance(60_000)
      await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
      expect(await idsOf(service, tenant)).toHaveLength(limit + 1)
      expect(await used(tenant)).toEqual({ used: limit + 1, limit })
      expectRefusal(await tryCapture(tenant), 'QUOTA_EXCEEDED', {
        quota: 'dlq_items',
        used: limit + 1,
        limit,
      })
    })
  },
  { PLANS_FILE: plans_file },
)

forEachRacedService('The sweep of dead letters', (service) => {
  const tick = async () => {
    const answer = await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
    expect(answer.status).toBe(200)
    return answer.body
  }

  test('releases locks that have run out, counts them, and changes nothing that anybody sees', async () => {
    const tenant = await service.signUp()
    await tick()
    const short = await capture(service, tenant, { lock_seconds: 10 })
    const long = await capture(service, tenant, { lock_seconds: 11 })
    const { lock_token } = (await move(service, tenant, short.id, 'claim')).body
    await move(service, tenant, long.id, 'claim')
    service.clock.advance(10_000)
    const seen = await read(service, tenant, short.id)
    expect(await tick()).toEqual({
      schedules: { due: 0, fired: 0, retrying: 0, failed: 0 },
      checkpoints: { rejected: 0, expired: 0, callbacks: 0 },
      dlq: { locks_released: 1 },
      effects: { ran_out: 0 },
      expired: { kv_keys: 0, inboxes: 0, idempotency_keys: 0 },
      tenants_purged: 0,
      duration_ms: expect.any(Number),
    })
    expect((await read(service, tenant, short.id)).text).toBe(seen.text)
    expect((await read(service, tenant, long.id)).body.status).toBe('claimed')
    for (const verb of ['extend', 'release', 'fail', 'resolve']) {
      const answer = await move(service, tenant, short.id, verb, { lock_token })
      expectRefusal(answer, 'INVALID_STATE', { status: 'failed' })
    }
    service.clock.advance(1_000)
    expect((await tick()).dlq).toEqual({ locks_released: 1 })
    expect((await tick()).dlq).toEqual({ locks_released: 0 })
  })

  test('leaves one event for each lock that ran out, in the order in which they ended, no matter who looks and how often', async () => {
    const tenant = await service.signUp()
    const made = []
    for (const lock_seconds of [30, 20, 10, 40]) {
      const { body } = await service.ask('POST', '/v1/dlq', {
        key: tenant.api_key,
        body: { payload: 1, error: 'e', workflow_id: `w${lock_seconds}`, lock_seconds },
      })
      const { locked_until } = (await move(service, tenant, body.id, 'claim')).body
      made.push({ subject_id: body.id, workflow_id: `w${lock_seconds}`, locked_until })
    }
    service.clock.advance(30_000)
    await Promise.all([tick(), tick(), tick()])
    await tick()
    const EVENTS = unnamedAcrossTenants<{ subject_id: string; data: string }>(
      'test.lock_events',
      `select subject_id, workflow_id, actor, agent_id, data from events
        where tenant_id = :tenant_id and type = 'dlq.lock_expired' order by position`,
    )
    expect(await service.app.db.all(EVENTS, { tenant_id: tenant.tenant_id })).toEqual(
      [made[2]!, made[1]!, made[0]!].map(({ locked_until, ...item }) => ({
        ...{ ...item, actor: 'service', agent_id: null },
        data: JSON.stringify({ locked_until }),
      })),
    )
  })

  test('removes resolved and archived items after 90 days, and no others', async () => {
    const tenant = await service.signUp()
    const items = []
    for (const status of statuses) items.push(await itemIn(service, tenant, status))
    const [failed, claimed] = items
    service.clock.advance(90 * day_ms - 1 - (service.clock.now() - Date.parse(items[2].updated_at)))
    await tick()
    expect(await idsOf(service, tenant)).toHaveLength(4)
    service.clock.advance(1)
    await tick()
    expectRefusal(await read(service, tenant, items[2].id), 'DLQ_NOT_FOUND')
    expect(await idsOf(service, tenant)).toHaveLength(3)
    service.clock.advance(10)
    await tick()
    expect(await idsOf(service, tenant)).toEqual([claimed.id, failed.id])
    const usage = await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })
    expect(usage.body.quota.dlq_items.used).toBe(2)
  })
})
