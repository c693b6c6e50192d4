// When the SDK sends a request again, and that it then has one effect.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { WaystationError, WaystationNetworkError, WaystationTimeoutError } from '../sdk/src/index.ts'
import { repeats } from '../sdk/src/repeats.ts'
import { type Operations, operations } from '../sdk/src/types.ts'
import {
  all,
  type Clients,
  clientsOf,
  type FakeAnswer,
  failureOf,
  type LossyProxy,
  startProxy,
} from './support/sdk.ts'
import { changingCall, creatingCall, operationsBeside } from './support/sdk-made.ts'
import { forEachWholeService, type TestTenant } from './support/service.ts'

type Operation = keyof Operations

const callback_url = 'http://127.0.0.1:9/'
const fire_at = '2030-01-01T00:00:00.000Z'
const error_of = (code: string) => JSON.stringify({ error: { code, message: 'm', request_id: 'req_1' } })
const unavailable: FakeAnswer = { status: 503, body: error_of('UNAVAILABLE') }
const outcome_unknown: FakeAnswer = { status: 503, body: error_of('OUTCOME_UNKNOWN') }

/** Every creating call: what it answers to be told apart by, how many there are by then, and what it needs before. */
const creating: Record<
  string,
  [
    create: (c: Clients, made: string) => Promise<string>,
    ids: (c: Clients, tenant: TestTenant, made: string) => Promise<string[]>,
    make?: (c: Clients) => Promise<string>,
  ]
> = {
  createAgent: [
    async (c) => (await c.admin.agents.create({ name: 'made-once' })).agent_id,
    async (c) =>
      (await all(c.admin.agents.list())).map(({ agent_id }) => agent_id).filter((id) => id !== 'agent-one'),
  ],
  createApprovalKey: [
    async (c) => (await c.admin.approvalKeys.create({ label: 'once' })).approval_key_id,
    async (c) =>
      (await all(c.admin.approvalKeys.list()))
        .filter(({ label }) => label === 'once')
        .map(({ approval_key_id }) => approval_key_id),
  ],
  appendEntry: [
    async (c) => (await c.agent.audit.append({ action: 'once' })).id,
    async (c) => (await all(c.agent.audit.list())).map(({ id }) => id),
  ],
  captureItem: [
    async (c) => (await c.agent.dlq.create({ payload: 1, error: 'once' })).id,
    async (c) => (await all(c.agent.dlq.list())).map(({ id }) => id),
  ],
  redriveItems: [
    async (c) => (await c.agent.dlq.redriveMany({ filter: { cause: 'none' } })).id,
    async (c) => (await all(c.agent.dlq.operations())).map(({ id }) => id),
  ],
  discardItems: [
    async (c) => discarding(c),
    async (c) => (await all(c.agent.dlq.operations())).map(({ id }) => id),
  ],
  redriveItem: [
    async (c, id) => (await c.agent.dlq.redrive(id)).id,
    async (c) => (await all(c.agent.dlq.list())).map(({ id }) => id),
    letter,
  ],
  createComment: [
    async (c, id) => (await c.agent.checkpoints.comment(id, { text: 'x' })).id,
    async (c, _, id) => (await all(c.agent.checkpoints.comments(id!))).map((made) => made.id),
    checkpoint,
  ],
  createSchedule: [
    async (c) => (await c.agent.schedules.create({ callback_url, callback_payload: 1, fire_at })).id,
    async (c) => (await all(c.agent.schedules.list())).map(({ id }) => id),
  ],
  retrySchedule: [
    async (c, id) => (await c.agent.schedules.retry(id)).id,
    async (c, _, id) =>
      (await all(c.agent.schedules.list())).filter(({ retry_of }) => retry_of === id).map(({ id }) => id),
    fired,
  ],
  createCheckpoint: [
    async (c) => (await c.agent.checkpoints.create({ title: 'once?', callback_url })).id,
    async (c) => (await all(c.agent.checkpoints.list())).map(({ id }) => id),
  ],
  createInbox: [
    async (c) => (await c.agent.inboxes.create({ label: 'once' })).id,
    async (c) => (await all(c.agent.inboxes.list())).map(({ id }) => id),
  ],
  replayMessage: [
    async (c, made) => {
      const [, id, message_id] = made.split(' ')
      return (await c.agent.inboxes.replay(id!, message_id!)).id
    },
    // Forwarded once when it came, and once more.
    async (c, _, made) => {
      await c.cron.tick()
      const [target, , message_id] = made.split(' ')
      const { items } = await c.agent.inboxes.messages(target!).page()
      return items.slice(1).map(() => message_id!)
    },
    forwarded,
  ],
}

const an_effect = { type: 'refund', key: 'order-7', payload: { amount: 30 } }
const lease_token = 'a-token-of-the-test-01'
/** Of the lease that was released before. */
const other_token = 'a-token-of-the-test-02'

/** The id of an effect that the token has the lease of. */
async function heldEffect(c: Clients): Promise<string> {
  return (await c.agent.effects.claim({ ...an_effect, lease_token })).id
}

/** The id of one that may be started again. */
async function freeEffect(c: Clients): Promise<string> {
  const id = await heldEffect(c)
  await c.agent.effects.fail(id, { lease_token, error: 'no', retry: true })
  return id
}

/** The id of its approval. */
async function approvedEffect(c: Clients): Promise<string> {
  const { checkpoint_id } = await c.agent.effects.claim({ ...an_effect, approval: { title: 't' } })
  await c.admin.checkpoints.approve(checkpoint_id!)
  return checkpoint_id!
}

/** Of every other operation that changes something: `make` what it needs, then the call. */
const changing: [
  operation: Operation,
  how: string,
  outcome: 'is sent again' | 'is not sent again',
  make: (c: Clients, tenant: TestTenant) => Promise<string>,
  call: (c: Clients, made: string) => Promise<unknown>,
  answer?: unknown,
][] = [
  ['claimEffect', '', 'is not sent again', async () => '', (c) => c.agent.effects.claim(an_effect)],
  [
    'claimEffect',
    'with a lease_token',
    'is sent again',
    async () => '',
    (c) => c.agent.effects.claim({ ...an_effect, lease_token }),
    { status: 'running', fence: 1, lease_token },
  ],
  ['startEffect', '', 'is not sent again', freeEffect, (c, id) => c.agent.effects.start(id)],
  [
    'startEffect',
    'with a lease_token',
    'is sent again',
    freeEffect,
    (c, id) => c.agent.effects.start(id, { lease_token: other_token }),
    { status: 'running', fence: 2, lease_token: other_token },
  ],
  [
    'extendEffect',
    '',
    'is sent again',
    heldEffect,
    (c, id) => c.agent.effects.extend(id, { lease_token }),
    { status: 'running' },
  ],
  [
    'succeedEffect',
    '',
    'is sent again',
    heldEffect,
    (c, id) => c.agent.effects.succeed(id, { lease_token, result: 9 }),
    { status: 'succeeded', result: 9 },
  ],
  [
    'failEffect',
    '',
    'is sent again',
    heldEffect,
    (c, id) => c.agent.effects.fail(id, { lease_token, error: 'no', retry: true }),
    { status: 'ready', error: 'no' },
  ],
  [
    'resolveEffect',
    '',
    'is not sent again',
    freeEffect,
    (c, id) => c.admin.effects.resolve(id, { outcome: 'failed', error: 'late' }),
  ],
  [
    'resolveEffect',
    'with a fence',
    'is sent again',
    freeEffect,
    (c, id) => c.admin.effects.resolve(id, { outcome: 'failed', error: 'late', fence: 1 }),
    { status: 'failed', error: 'late' },
  ],
  [
    'setEffectPolicy',
    '',
    'is not sent again',
    async () => 'refund',
    (c, type) => c.admin.effectPolicies.set(type, { approval: 'required' }),
  ],
  [
    'deleteEffectPolicy',
    '',
    'is not sent again',
    async (c) => (await c.admin.effectPolicies.set('refund', { approval: 'required' })).type,
    (c, type) => c.admin.effectPolicies.delete(type),
  ],
  [
    'deleteTenant',
    '',
    'is sent again',
    tenantId,
    (c, id) => c.admin.tenants.delete(id, { confirm: 'DELETE ALL DATA' }),
    { status: 'pending_deletion' },
  ],
  ['restoreTenant', '', 'is not sent again', deletedTenant, (c, id) => c.admin.tenants.restore(id)],
  [
    'freezeTenant',
    '',
    'is sent again',
    tenantId,
    (c, id) => c.admin.tenants.freeze(id, { reason: 'runs wild' }),
    { frozen_reason: 'runs wild' },
  ],
  [
    'resumeTenant',
    '',
    'is not sent again',
    frozenTenant,
    (c, freeze) => c.admin.tenants.resume(freeze.split(' ')[0]!),
  ],
  [
    'resumeTenant',
    'with a frozen_at',
    'is sent again',
    frozenTenant,
    (c, freeze) => c.admin.tenants.resume(freeze.split(' ')[0]!, { frozen_at: freeze.split(' ')[1]! }),
    { frozen_at: null },
  ],
  [
    'updateAgent',
    '',
    'is not sent again',
    async () => 'agent-one',
    (c, id) => c.admin.agents.update(id, { mode: 'read' }),
  ],
  [
    'pauseAgent',
    '',
    'is sent again',
    async () => 'agent-one',
    (c, id) => c.admin.agents.pause(id, { reason: 'asks twice' }),
    { paused_reason: 'asks twice' },
  ],
  [
    'resumeAgent',
    '',
    'is not sent again',
    async (c) => (await c.admin.agents.pause('agent-one')).agent_id,
    (c, id) => c.admin.agents.resume(id),
  ],
  ['rotateTenantKey', '', 'is not sent again', tenantId, (c, id) => c.admin.tenants.rotateKey(id)],
  [
    'rotateSigningSecret',
    '',
    'is not sent again',
    tenantId,
    (c, id) => c.admin.tenants.rotateSigningSecret(id),
  ],
  [
    'rotateAgentKey',
    '',
    'is not sent again',
    async () => 'agent-one',
    (c, id) => c.admin.agents.rotateKey(id),
  ],
  ['deleteAgent', '', 'is not sent again', async () => 'agent-one', (c, id) => c.admin.agents.delete(id)],
  [
    'deleteApprovalKey',
    '',
    'is sent again',
    approvalKey,
    (c, id) => c.admin.approvalKeys.delete(id),
    undefined,
  ],
  [
    'putValue',
    'without a condition',
    'is sent again',
    key,
    (c, k) => c.agent.kv.put('state', k, 2),
    { version: 3 },
  ],
  [
    'putValue',
    'with cas_version',
    'is not sent again',
    key,
    (c, k) => c.agent.kv.put('state', k, 2, { cas_version: 1 }),
  ],
  [
    'deleteValue',
    'without a condition',
    'is sent again',
    key,
    (c, k) => c.agent.kv.delete('state', k),
    undefined,
  ],
  [
    'deleteValue',
    'with if_version',
    'is not sent again',
    key,
    (c, k) => c.agent.kv.delete('state', k, { if_version: 1 }),
  ],
  ['claimItem', '', 'is not sent again', letter, (c, id) => c.agent.dlq.claim(id)],
  ['claimOldestItem', '', 'is not sent again', letter, (c) => c.agent.dlq.claimOldest()],
  [
    'extendItem',
    'with its token',
    'is sent again',
    claimed,
    (c, made) => c.agent.dlq.extend(...held(made)),
    { status: 'claimed', claims: 1 },
  ],
  [
    'extendItem',
    'without a token',
    'is not sent again',
    claimed,
    (c, made) => c.agent.dlq.extend(held(made)[0]),
  ],
  [
    'releaseItem',
    'with its token',
    'is sent again',
    claimed,
    (c, made) => c.agent.dlq.release(...held(made)),
    { status: 'failed', payload: 1 },
  ],
  [
    'releaseItem',
    'without a token',
    'is not sent again',
    claimed,
    (c, made) => c.agent.dlq.release(held(made)[0]),
  ],
  [
    'failItem',
    'with its token',
    'is sent again',
    claimed,
    (c, made) => c.agent.dlq.fail(...held(made)),
    { status: 'archived', payload: 1 },
  ],
  ['failItem', 'without a token', 'is not sent again', claimed, (c, made) => c.agent.dlq.fail(held(made)[0])],
  [
    'resolveItem',
    '',
    'is sent again',
    claimed,
    (c, made) => c.agent.dlq.resolve(held(made)[0]),
    { status: 'resolved' },
  ],
  [
    'resolveItem',
    'with its token',
    'is sent again',
    claimed,
    (c, made) => c.agent.dlq.resolve(...held(made)),
    { status: 'resolved' },
  ],
  ['deleteItem', '', 'is sent again', letter, (c, id) => c.agent.dlq.delete(id), undefined],
  [
    'cancelOperation',
    '',
    'is sent again',
    discarding,
    (c, id) => c.agent.dlq.cancelOperation(id),
    { status: 'succeeded' },
  ],
  [
    'updateSchedule',
    'without fire_at',
    'is sent again',
    schedule,
    (c, id) => c.agent.schedules.update(id, { callback_payload: 2 }),
    { callback_payload: 2 },
  ],
  [
    'updateSchedule',
    'with fire_at',
    'is not sent again',
    schedule,
    (c, id) => c.agent.schedules.update(id, { fire_at }),
  ],
  ['cancelSchedule', '', 'is sent again', schedule, (c, id) => c.agent.schedules.cancel(id), undefined],
  [
    'updateSubscription',
    '',
    'is sent again',
    subscription,
    (c, id) => c.admin.subscriptions.update(id, { name: 'ops' }),
    { name: 'ops' },
  ],
  [
    'updateSubscription',
    'with a pause',
    'is not sent again',
    subscription,
    (c, id) => c.admin.subscriptions.update(id, { paused: true }),
  ],
  [
    'replaySubscription',
    '',
    'is sent again',
    subscription,
    (c, id) => c.admin.subscriptions.replay(id, { after: 0 }),
    { after: 0 },
  ],
  [
    'approveCheckpoint',
    '',
    'is sent again',
    checkpoint,
    (c, id) => c.admin.checkpoints.approve(id, { reason: 'r' }),
    { status: 'approved', reason: 'r' },
  ],
  [
    'approveCheckpoint',
    'with an edit to null',
    'is not sent again',
    checkpoint,
    (c, id) => c.admin.checkpoints.approve(id, { effective_payload: null }),
  ],
  [
    'rejectCheckpoint',
    '',
    'is sent again',
    checkpoint,
    (c, id) => c.admin.checkpoints.reject(id),
    { status: 'rejected' },
  ],
  [
    'revokeApproval',
    '',
    'is sent again',
    approvedEffect,
    (c, id) => c.admin.checkpoints.revoke(id),
    { status: 'approved', uses_left: 0 },
  ],
  ['cancelCheckpoint', '', 'is sent again', checkpoint, (c, id) => c.agent.checkpoints.cancel(id), undefined],
  [
    'updateNamespace',
    '',
    'is sent again',
    async () => 'state',
    (c, namespace) => c.admin.namespaces.update(namespace, { events: true }),
    { namespace: 'state', events: true },
  ],
  [
    'waitForEvent',
    '',
    'is sent again',
    async () => '',
    async (c) => await c.agent.wait({ any: [{ type: 'agent.created' }], after: 0 }),
    { type: 'agent.created', subject: { kind: 'agent' } },
  ],
  ['deleteInbox', '', 'is sent again', inbox, (c, id) => c.agent.inboxes.delete(id), { deleted: true }],
  [
    'checkRateLimit',
    '',
    'is not sent again',
    async () => 'k',
    (c, k) => c.agent.rateLimit.check(k, { limit: 5, windowSeconds: 60 }),
  ],
  ['resetRateLimit', '', 'is not sent again', async () => 'k', (c, k) => c.agent.rateLimit.reset(k)],
  ['advanceClock', '', 'is not sent again', async () => '', (c) => c.admin.clock.advance(1)],
  ['tick', '', 'is sent again', async () => '', (c) => c.cron.tick(), { tenants_purged: 0 }],
]

async function tenantId(_: Clients, { tenant_id }: TestTenant) {
  return tenant_id
}
/** Its id, and since when. */
async function frozenTenant(c: Clients, { tenant_id }: TestTenant): Promise<string> {
  const { frozen_at } = await c.admin.tenants.freeze(tenant_id)
  return `${tenant_id} ${frozen_at}`
}

async function deletedTenant(c: Clients, { tenant_id }: TestTenant) {
  await c.admin.tenants.delete(tenant_id, { confirm: 'DELETE ALL DATA' })
  return tenant_id
}
async function approvalKey(c: Clients) {
  return (await c.admin.approvalKeys.create()).approval_key_id
}
async function key(c: Clients) {
  await c.agent.kv.put('state', 'k', 1)
  return 'k'
}
async function letter(c: Clients) {
  return (await c.agent.dlq.create({ payload: 1, error: 'e' })).id
}
async function discarding(c: Clients) {
  return (await c.agent.dlq.discardMany({ filter: { cause: 'none' } })).id
}
async function claimed(c: Clients) {
  const { id, lock_token } = await c.agent.dlq.claim(await letter(c))
  return `${id} ${lock_token}`
}
function held(made: string): [id: string, { lock_token: string }] {
  const [id, lock_token] = made.split(' ')
  return [id!, { lock_token: lock_token! }]
}
async function schedule(c: Clients) {
  return (await c.agent.schedules.create({ callback_url, callback_payload: 1, fire_at })).id
}
async function subscription(c: Clients) {
  return (await c.admin.subscriptions.create({ url: callback_url, types: ['subscription.paused'] })).id
}
/** Its callback is an inbox. */
async function fired(c: Clients) {
  const { url } = await c.agent.inboxes.create()
  const long_ago = '2020-01-01T00:00:00.000Z'
  const { id } = await c.agent.schedules.create({ callback_url: url, callback_payload: 1, fire_at: long_ago })
  await c.cron.tick()
  return id
}
/** The inbox that it is forwarded to, its own, and the message. */
async function forwarded(c: Clients) {
  const target = await c.agent.inboxes.create()
  const { id, url } = await c.agent.inboxes.create({ forwardUrl: target.url })
  await fetch(url, { method: 'POST', body: 'x' })
  await c.cron.tick()
  const { items } = await c.agent.inboxes.messages(id).page()
  return `${target.id} ${id} ${items[0]!.id}`
}
async function checkpoint(c: Clients) {
  return (await c.agent.checkpoints.create({ title: 't', callback_url })).id
}
async function inbox(c: Clients) {
  return (await c.agent.inboxes.create()).id
}

/** An operation without a row above: with the example of its body, on an object that its collection makes. */
for (const operation of operationsBeside(Object.keys(creating))) {
  if (!operation.creates || operation.id === 'createTenant') continue
  const { create, shown } = creatingCall(operation)
  creating[operation.id] = [create, shown]
}
for (const operation of operationsBeside(changing.map(([name]) => name))) {
  if (operation.method === 'GET' || operation.creates) continue
  const { make, call, sent_again } = changingCall(operation)
  changing.push([
    ...[operation.id as Operation, ''],
    ...[sent_again ? 'is sent again' : 'is not sent again', make, call, undefined],
  ] as (typeof changing)[number])
}

/** Called by the pages of the links in emails; the SDK has no methods for them. */
const of_links = ['confirmMail', 'unsubscribeMail']

describe('The table of repeats', () => {
  const others = Object.entries(operations)
    .filter(([, { method, creates }]) => method !== 'GET' && !creates)
    .map(([name]) => name)
    .filter((name) => !of_links.includes(name))

  test('has a row for every operation that changes something without an Idempotency-Key', () => {
    expect(Object.keys(repeats).toSorted()).toEqual(others.toSorted())
    expect([...new Set(changing.map(([operation]) => operation))].toSorted()).toEqual(
      others.toSorted() as Operation[],
    )
  })

  test('and that of creating calls for each of those', () => {
    const creates = Object.entries(operations).flatMap(([name, spec]) => (spec.creates ? [name] : []))
    expect(['createTenant', ...Object.keys(creating)].toSorted()).toEqual(creates.toSorted())
  })

  test('is the table in docs/sdk.md', () => {
    const page = readFileSync(new URL('../docs/sdk.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^\| `[\w.]+` \| (yes|no|with.+) \| (.+) \|$/gm)].map(([, again, why]) => [
      /^(yes|without .+)$/.test(again!),
      why,
    ])
    expect(rows).toEqual(Object.values(repeats).map(({ repeat, why }) => [repeat({}), why]))
  })
})

forEachWholeService('A try without an answer', (service) => {
  let proxy: LossyProxy
  beforeAll(async () => {
    proxy = await startProxy(service.url)
  })
  afterAll(() => proxy.stop())

  async function world() {
    const tenant = await service.signUp()
    const direct = await clientsOf(service, tenant)
    const through = await clientsOf(service, tenant, proxy.url)
    proxy.seen.length = 0
    return { tenant, direct, through }
  }

  test.each(Object.keys(creating))(
    '%s has one effect and a good answer, however often the answer is lost',
    async (name) => {
      const { tenant, direct, through } = await world()
      const [create, ids, make] = creating[name]!
      const made = (await make?.(direct)) ?? ''
      proxy.next = ['lose_answer', 'lose_request', outcome_unknown, 'lose_answer']
      const id = await create(through, made)
      expect(await ids(direct, tenant, made)).toEqual([id])
      const keys = proxy.seen.map(({ headers }) => headers['idempotency-key'])
      expect(keys).toHaveLength(5)
      expect([...new Set(keys)]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)])
    },
  )

  test('rows that are made for operations without one hold for some that have one', async () => {
    const { direct, through } = await world()
    const found = (name: string) => operationsBeside([]).find(({ id }) => id === name)!
    const { create, shown } = creatingCall(found('createSchedule'))
    proxy.next = ['lose_answer']
    expect([await create(through)]).toEqual(await shown(direct))
    expect(proxy.seen).toHaveLength(2)
    const { make, call, sent_again } = changingCall(found('cancelSchedule'))
    const made = await make(direct)
    proxy.next = ['lose_answer']
    expect([sent_again, await call(through, made)]).toEqual([true, undefined])
    expect(changingCall(found('claimItem')).sent_again).toBe(false)
  })

  test('createTenant has one effect and shows the admin key that works', async () => {
    const { through, direct } = await world()
    const name = `sdk-${crypto.randomUUID().slice(0, 13)}`
    proxy.next = ['lose_answer', 'lose_answer']
    const made = await through.nobody.tenants.create({ name, owner_email: 'owner@example.com' })
    expect(proxy.seen).toHaveLength(3)
    const again = await failureOf(direct.nobody.tenants.create({ name, owner_email: 'owner@example.com' }))
    expect(again).toMatchObject({ code: 'TENANT_NAME_TAKEN' })
    const found = await service.ask('GET', `/v1/tenants/${made.tenant_id}`, { key: made.admin_key })
    expect(found.body).toMatchObject({ tenant_id: made.tenant_id, status: 'active' })
  })

  test("a caller's own Idempotency-Key is the one that is sent", async () => {
    const { through } = await world()
    const first = await through.agent.audit.append({ action: 'a' }, { idempotency_key: 'mine' })
    const second = await through.agent.audit.append({ action: 'a' }, { idempotency_key: 'mine' })
    expect(second).toEqual(first)
    expect(proxy.seen.map(({ headers }) => headers['idempotency-key'])).toEqual(['mine', 'mine'])
  })

  const titled = changing.map((row) => [`${row[0]}${row[1] && ` ${row[1]}`} ${row[2]}`, row] as const)
  test.each(titled)('%s', async (_, [, , outcome, make, call, answer]) => {
    const { tenant, direct, through } = await world()
    const made = await make(direct, tenant)
    proxy.next = ['lose_answer']
    if (outcome === 'is not sent again') {
      const error = await failureOf(call(through, made))
      expect(error).toBeInstanceOf(WaystationNetworkError)
      expect(proxy.seen).toHaveLength(1)
    } else {
      const got = await call(through, made)
      expect(proxy.seen.length).toBeGreaterThanOrEqual(2)
      expect(typeof answer).toBe(typeof got)
      expect({ got }).toMatchObject({ got: answer })
    }
  })

  test.each(['approve', 'reject'] as const)(
    'checkpoints.%s with an approval key, which may not read, says how it is settled',
    async (verb) => {
      const { direct, through } = await world()
      const id = await checkpoint(direct)
      proxy.next = ['lose_answer']
      const error = await failureOf(through.approval.checkpoints[verb](id))
      const status = verb === 'approve' ? 'approved' : 'rejected'
      expect(error).toMatchObject({ code: 'CHECKPOINT_ALREADY_RESOLVED', details: { status } })
    },
  )

  describe('a vote among several', () => {
    const asked = async (c: Clients) =>
      (
        await c.agent.checkpoints.create({
          title: 't',
          callback_url: null,
          required_approvals: 2,
          required_rejections: 2,
        })
      ).id

    test.each(['approve', 'reject'] as const)('counts once when its answer is lost: %s', async (verb) => {
      const { direct, through } = await world()
      const id = await asked(direct)
      proxy.next = ['lose_answer']
      const { status, approvals, rejections } = await through.admin.checkpoints[verb](id)
      expect([status, approvals + rejections]).toEqual(['pending', 1])
      expect(await failureOf(through.admin.checkpoints[verb](id))).toMatchObject({ code: 'ALREADY_VOTED' })
    })

    test('for something else ends in the error of the first try, with the refusal as its cause', async () => {
      const { direct, through } = await world()
      const id = await asked(direct)
      await direct.admin.checkpoints.reject(id)
      proxy.next = ['lose_answer']
      const error = await failureOf(through.admin.checkpoints.approve(id))
      expect(error).toMatchObject({
        may_have_arrived: true,
        cause: { code: 'ALREADY_VOTED', details: { decision: 'rejected' } },
      })
    })

    test('with an approval key, which may not read, says how it was cast', async () => {
      const { direct, through } = await world()
      const id = await asked(direct)
      proxy.next = ['lose_answer']
      const error = await failureOf(through.approval.checkpoints.approve(id))
      expect(error).toMatchObject({ code: 'ALREADY_VOTED', details: { decision: 'approved', approvals: 1 } })
    })

    test('that edits is not sent again: it would void the votes after it', async () => {
      const { direct, through } = await world()
      const { checkpoint } = await direct.agent.effects.claim({
        ...{ type: 'refund', key: crypto.randomUUID(), payload: { amount: 40 } },
        approval: { title: 't', editable: true, required_approvals: 2 },
      })
      proxy.next = ['lose_answer']
      const error = await failureOf(
        through.admin.checkpoints.approve(checkpoint!.id, { effective_payload: { amount: 30 } }),
      )
      expect(error).toBeInstanceOf(WaystationNetworkError)
      expect(proxy.seen).toHaveLength(1)
    })
  })

  describe('of what loosens a limit undoes none that comes after it:', () => {
    const required = { approval: 'required' } as const
    const refund = async (c: Clients) => (await c.admin.effectPolicies.set('refund', required)).type
    const limits: [
      name: string,
      make: (c: Clients) => Promise<string>,
      loosen: (c: Clients, id: string) => Promise<unknown>,
      limit: (c: Clients, id: string) => Promise<unknown>,
      read: (c: Clients, id: string) => Promise<object>,
      held: object,
    ][] = [
      [
        'a pause of an agent',
        async (c) => (await c.admin.agents.pause('agent-one')).agent_id,
        (c, id) => c.admin.agents.resume(id),
        (c, id) => c.admin.agents.pause(id, { reason: 'asks twice' }),
        (c, id) => c.admin.agents.get(id),
        { paused_reason: 'asks twice' },
      ],
      [
        'a mode of an agent',
        async (c) => (await c.admin.agents.update('agent-one', { mode: 'read' })).agent_id,
        (c, id) => c.admin.agents.update(id, { mode: 'full' }),
        (c, id) => c.admin.agents.update(id, { mode: 'propose' }),
        (c, id) => c.admin.agents.get(id),
        { mode: 'propose' },
      ],
      [
        'a policy after another',
        refund,
        (c, type) => c.admin.effectPolicies.set(type, { approval: 'optional' }),
        refund,
        (c, type) => c.admin.effectPolicies.get(type),
        required,
      ],
      [
        'a policy after none',
        refund,
        (c, type) => c.admin.effectPolicies.delete(type),
        refund,
        (c, type) => c.admin.effectPolicies.get(type),
        required,
      ],
      [
        'a pause of a subscription',
        async (c) => (await c.admin.subscriptions.update(await subscription(c), { paused: true })).id,
        (c, id) => c.admin.subscriptions.update(id, { paused: false }),
        (c, id) => c.admin.subscriptions.update(id, { paused: true }),
        (c, id) => c.admin.subscriptions.get(id),
        { status: 'paused' },
      ],
      [
        'a hit of a rate limit',
        async (c) => c.agent.rateLimit.check('k', { limit: 2, windowSeconds: 60 }).then(() => 'k'),
        (c, k) => c.agent.rateLimit.reset(k),
        (c, k) => c.agent.rateLimit.check(k, { limit: 2, windowSeconds: 60 }),
        (c, k) => c.agent.rateLimit.status(k),
        { count: 1 },
      ],
    ]
    test.each(limits)('%s', async (_, make, loosen, limit, read, held) => {
      const { direct, through } = await world()
      const id = await make(direct)
      proxy.next = ['lose_answer']
      through.platform.onSleep = async () => void (await limit(direct, id))
      await loosen(through, id).catch(() => limit(direct, id))
      expect(await read(direct, id)).toMatchObject(held)
    })
  })

  test('a read is sent again', async () => {
    const { direct, through } = await world()
    await key(direct)
    proxy.next = ['lose_answer', 'lose_request']
    expect(await through.agent.kv.get('state', 'k')).toMatchObject({ value: 1, version: 1 })
    expect(proxy.seen).toHaveLength(3)
  })

  test('ends in an error after the last retry, which tells that the request may have arrived', async () => {
    const { direct, through } = await world()
    proxy.next = Array(5).fill('lose_answer')
    const error = (await failureOf(through.agent.audit.append({ action: 'a' }))) as WaystationNetworkError
    expect(error).toBeInstanceOf(WaystationNetworkError)
    expect([error.may_have_arrived, proxy.seen.length]).toEqual([true, 5])
    expect(await all(direct.agent.audit.list())).toHaveLength(1)
    expect(error.cause).toBeDefined()
  })

  test('when nobody listens is sent again, claims included', async () => {
    const { tenant } = await world()
    const gone = await startProxy(service.url)
    await gone.stop()
    const { agent, platform } = await clientsOf(service, tenant, gone.url)
    const error = (await failureOf(agent.dlq.claimOldest())) as WaystationNetworkError
    expect([error.name, error.may_have_arrived]).toEqual(['WaystationNetworkError', false])
    expect(platform.slept).toHaveLength(4)
  })
})

forEachWholeService('A try that is refused for now', (service) => {
  let proxy: LossyProxy
  let tenant: TestTenant
  beforeAll(async () => {
    proxy = await startProxy(service.url)
    tenant = await service.signUp()
  })
  afterAll(() => proxy.stop())

  async function fresh(options = {}) {
    const clients = await clientsOf(service, tenant, proxy.url, options)
    proxy.seen.length = 0
    return clients
  }

  test.each([
    ['503 UNAVAILABLE', unavailable],
    ['429 RATE_LIMITED', { status: 429, body: error_of('RATE_LIMITED') }],
    ['429 of a gateway', { status: 429, body: 'slow down' }],
  ])('by %s is sent again, claims included', async (_, answer) => {
    const { agent } = await fresh()
    proxy.next = [answer, answer]
    expect(await agent.dlq.claimOldest()).toBeNull()
    expect(proxy.seen).toHaveLength(3)
  })

  test.each([
    ['503 OUTCOME_UNKNOWN', outcome_unknown],
    ['502 of a gateway', { status: 502, body: '<html>' }],
    ['504 of a gateway', { status: 504, body: '' }],
  ])('by %s may have had its effect: reads are sent again, claims are not', async (_, answer) => {
    const { agent } = await fresh()
    proxy.next = [answer]
    expect(await all(agent.dlq.list())).toEqual([])
    proxy.next = [answer]
    expect(await failureOf(agent.dlq.claimOldest())).toBeInstanceOf(WaystationError)
    expect(proxy.seen).toHaveLength(3)
  })

  test.each([
    ['400', 'VALIDATION_FAILED'],
    ['401', 'UNAUTHORIZED'],
    ['402', 'QUOTA_EXCEEDED'],
    ['409', 'INVALID_STATE'],
    ['500', 'INTERNAL'],
    ['507', 'STORAGE_FULL'],
  ])('by %s %s is not sent again', async (status, code) => {
    const { agent } = await fresh()
    proxy.next = [{ status: Number(status), body: error_of(code) }]
    expect(await failureOf(agent.kv.get('state', 'k'))).toMatchObject({ code, status: Number(status) })
    expect(proxy.seen).toHaveLength(1)
  })

  test('because its first is still running is sent again, under the same key', async () => {
    const { agent } = await fresh()
    proxy.next = [{ status: 409, headers: { 'retry-after': '1' }, body: error_of('IDEMPOTENCY_IN_PROGRESS') }]
    await agent.audit.append({ action: 'a' })
    expect(new Set(proxy.seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(proxy.seen).toHaveLength(2)
  })

  test.each([
    [0, [0, 0, 0, 0, 0, 0, 0]],
    [0.5, [125, 250, 500, 1_000, 2_000, 4_000, 4_000]],
    [0.999999, [249, 499, 999, 1_999, 3_999, 7_999, 7_999]],
  ])('waits for a random part of twice as long each time, 8 s at most: %p', async (random, waits) => {
    const { agent, platform } = await fresh({ retries: 7 })
    platform.random_value = random
    proxy.next = Array(8).fill(unavailable)
    await failureOf(agent.kv.get('state', 'k'))
    expect(platform.slept).toEqual(waits)
  })

  test.each([
    ['0', [125]],
    ['7', [7_125]],
    ['60', [60_125]],
    ['61', []],
  ])('waits as long as Retry-After asks, up to a minute: %s', async (retry_after, waits) => {
    const { agent, platform } = await fresh({ retries: 1 })
    const answer = { ...unavailable, headers: { 'retry-after': retry_after } }
    proxy.next = [answer, answer]
    const error = (await failureOf(agent.kv.get('state', 'k'))) as WaystationError
    proxy.next = []
    expect([platform.slept, error.code] as unknown[]).toEqual([waits, 'UNAVAILABLE'])
  })

  test.each([0, 1, 20])('is sent again as often as retries says: %d', async (retries) => {
    const { agent } = await fresh()
    proxy.next = Array(21).fill(unavailable)
    await failureOf(agent.kv.get('state', 'k', { retries }))
    proxy.next = []
    expect(proxy.seen).toHaveLength(retries + 1)
  })

  test.each([-1, 21, Number.NaN])('retries may not be %d', async (retries) => {
    const { agent } = await fresh()
    expect(await failureOf(agent.kv.get('state', 'k', { retries }))).toBeInstanceOf(TypeError)
    expect(proxy.seen).toEqual([])
  })
})

forEachWholeService('A call that takes too long', (service) => {
  const never = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_resolve, reject) =>
      signal!.addEventListener('abort', () => reject(signal!.reason), { once: true }),
    )

  test('ends each try at timeout_ms, and is sent again', async () => {
    let asked = 0
    const clients = await clientsOf(service, await service.signUp(), service.url, {
      timeout_ms: 1_234,
      retries: 2,
      fetch: (url, init) => {
        asked += 1
        queueMicrotask(() => {
          for (const { ms, fire } of clients.platform.timers.values()) if (ms === 1_234) fire()
        })
        return never(url, init)
      },
    })
    const error = (await failureOf(clients.agent.kv.get('state', 'k'))) as WaystationTimeoutError
    expect(error).toBeInstanceOf(WaystationTimeoutError)
    expect([error.waited_ms, error.message, asked]).toEqual([1_234, 'No answer within 1234 ms.', 3])
    expect(clients.platform.timers.size).toBe(0)
  })

  test('gives a request that is held back that much more time', async () => {
    const seen: number[] = []
    const clients = await clientsOf(service, await service.signUp(), service.url, {
      fetch: async () => {
        seen.push(...[...clients.platform.timers.values()].map(({ ms }) => ms))
        return new Response('{"id":"chk_1","status":"approved"}')
      },
    })
    await clients.agent.checkpoints.get('chk_1')
    await clients.agent.checkpoints.get('chk_1', { wait: 50 })
    await clients.agent.checkpoints.get('chk_1', { wait: 5, timeout_ms: 1_000 })
    expect(seen).toEqual([30_000, 80_000, 6_000])
  })

  test('is ended by its signal with the reason of it, while it is asked and between tries', async () => {
    const tenant = await service.signUp()
    const asking = new AbortController()
    const { agent } = await clientsOf(service, tenant, service.url, {
      fetch: (url, init) => {
        queueMicrotask(() => asking.abort('enough'))
        return never(url, init)
      },
    })
    expect(await failureOf(agent.kv.get('state', 'k', { signal: asking.signal }))).toBe('enough')
    expect(await failureOf(agent.kv.get('state', 'k', { signal: asking.signal }))).toBe('enough')

    const waiting = new AbortController()
    const between = await clientsOf(service, tenant, service.url, {
      fetch: async () => new Response(unavailable.body, { status: 503 }),
    })
    between.platform.onSleep = () => waiting.abort('that too')
    expect(await failureOf(between.agent.kv.get('state', 'k', { signal: waiting.signal }))).toBe('that too')
    expect(between.platform.slept).toHaveLength(1)
  })
})
