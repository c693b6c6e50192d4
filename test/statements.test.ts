// How many statements a request costs, by name. A route without a line here fails.

import { beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { second_ms } from '../src/base/clock.ts'
import { newKey } from '../src/base/keys.ts'
import type { NamedRoute } from '../src/contract/feature.ts'
import { successStatus } from '../src/contract/route.ts'
import { features, routes } from '../src/features.ts'
import { call, callersOf, type Keyring, newKeyring, ready, titled } from './support/contract.ts'
import { requireKnown } from './support/contract-credentials.ts'
import { until } from './support/patience.ts'
import { startReceiver } from './support/receiver.ts'
import { cron_secret, forEachWholeService, type TestService } from './support/service.ts'

const expiring = features.filter(({ quotas = [] }) => quotas.some(({ countExpired }) => countExpired))
/** One statement for each feature whose rows expire, and count until they are swept. */
const tenant_view = [
  'tenants.find',
  ...expiring.map(({ name }) => `${name.replaceAll('-', '_')}.count_expired`),
  'quotas.used',
]

/** Once for each namespace and once at the end. */
const a_name_each = 'kv.scan'

const src = join(import.meta.dir, '..', 'src')

/** The file of a feature that has one: operation to statements, and under `tick` those of its sweep. */
const own_budgets = new Map<string, Record<string, string[]>>(
  [...new Bun.Glob('*/statements.json').scanSync(src)].map((file) => [
    dirname(file),
    JSON.parse(readFileSync(join(src, file), 'utf8')),
  ]),
)

/** A test clock does all that is due, and looks at what has happened. */
const settled = [
  ...['jobs.due', 'jobs.oldest_due', 'kv.tenants_due', 'dlq.tenants_expired', 'inbox.tenants_expired'],
  ...['effects.tenants_run_out', 'jobs.oldest_due', 'journal.any_unnumbered', 'journal.page_seq'],
]

/** Operation to the statements of one successful call, in order; its key was used a moment ago. */
const budgets: Record<string, string[]> = {
  createTenant: [
    ...['lookups.claim', 'secrets.sealing', 'tenants.insert', 'quotas.create', 'audit.begin'],
    ...['credentials.insert', 'lookups.claim', 'journal.insert', 'quotas.used'],
  ],
  getTenant: ['quotas.calls', ...tenant_view],
  getUsage: ['usage.list'],
  deleteTenant: ['tenants.mark_deleted', 'jobs.active', 'journal.insert'],
  restoreTenant: [...['quotas.calls', 'tenants.restore', 'jobs.paused', 'journal.insert'], ...tenant_view],
  freezeTenant: [
    ...['quotas.calls', 'tenants.freeze', 'jobs.active_waiting', 'jobs.paused_going_on', 'journal.insert'],
    ...tenant_view,
  ],
  resumeTenant: [
    ...['quotas.calls', 'tenants.lock_freeze', 'tenants.resume', 'journal.insert'],
    ...[
      'checkpoints.lock_movable',
      'checkpoints.move',
      'dlq.lock_movable',
      'dlq.move',
      'effects.lock_movable',
    ],
    ...['effects.move', 'tenants.end_resume', 'jobs.paused'],
    ...tenant_view,
  ],
  rotateTenantKey: [
    'quotas.calls',
    ...['tenants.mark_rotated', 'credentials.find'],
    ...['credentials.revoke', 'credentials.insert', 'lookups.claim', 'journal.insert'],
    ...tenant_view,
    'lookups.remove',
  ],
  rotateSigningSecret: [
    'quotas.calls',
    'secrets.sealing',
    'tenants.rotate_signing_secret',
    'journal.insert',
    ...tenant_view,
  ],
  createAgent: ['agents.insert', 'quotas.reserve', 'credentials.insert', 'lookups.claim', 'journal.insert'],
  listAgents: ['agents.list'],
  getAgent: ['agents.find'],
  deleteAgent: ['agents.delete', 'credentials.revoke', 'quotas.release', 'journal.insert', 'lookups.remove'],
  rotateAgentKey: [
    ...['agents.mark_rotated', 'agents.find', 'credentials.revoke', 'credentials.insert', 'lookups.claim'],
    ...['journal.insert', 'lookups.remove'],
  ],
  updateAgent: ['agents.set_mode', 'journal.insert', 'agents.find'],
  pauseAgent: ['agents.pause', 'journal.insert', 'agents.find'],
  resumeAgent: ['agents.resume', 'journal.insert', 'agents.find'],
  createApprovalKey: ['approval_keys.insert', 'credentials.insert', 'lookups.claim', 'journal.insert'],
  listApprovalKeys: ['approval_keys.list'],
  deleteApprovalKey: ['approval_keys.delete', 'credentials.revoke', 'journal.insert', 'lookups.remove'],
  getValue: ['kv.find'],
  putValue: ['kv.put', 'quotas.reserve_key'],
  deleteValue: ['kv.delete', 'quotas.release'],
  listKeys: ['kv.scan'],
  listNamespaces: [a_name_each],
  getNamespace: ['kv.find_namespace'],
  updateNamespace: [
    ...['tenants.lock_event_namespaces', 'kv.find_namespace', 'kv.insert_namespace'],
    ...['tenants.add_event_namespace', 'journal.insert'],
  ],
  listNamespaceKeys: ['kv.scan'],
  getNamespaceKey: ['kv.find'],
  appendEntry: ['audit.next', 'audit.insert', 'journal.insert'],
  listEntries: ['audit.list'],
  getEntry: ['audit.find'],
  captureItem: ['dlq.insert', 'quotas.reserve', 'journal.insert', 'dlq.find'],
  listItems: ['dlq.list_any'],
  getItem: ['dlq.find'],
  deleteItem: ['dlq.delete', 'quotas.release', 'journal.insert'],
  claimOldestItem: ['dlq.claim_oldest', 'journal.insert'],
  claimItem: ['dlq.claim', 'journal.insert'],
  extendItem: ['dlq.find', 'dlq.extend', 'journal.insert'],
  releaseItem: ['dlq.find', 'dlq.release', 'journal.insert'],
  failItem: ['dlq.find', 'dlq.archive', 'quotas.release', 'journal.insert'],
  resolveItem: ['dlq.find', 'dlq.resolve', 'quotas.release', 'journal.insert'],
  createSchedule: ['schedules.insert', 'quotas.reserve', 'jobs.enqueue', 'schedules.find', 'journal.insert'],
  listSchedules: ['schedules.list'],
  getSchedule: ['schedules.find'],
  updateSchedule: ['jobs.retarget', 'schedules.update', 'schedules.find', 'journal.insert'],
  cancelSchedule: ['jobs.cancel', 'schedules.cancel', 'quotas.release', 'journal.insert'],
  listScheduleAttempts: ['schedules.find', 'jobs.attempts'],
  createCheckpoint: ['checkpoints.insert', 'jobs.enqueue', 'journal.insert'],
  listCheckpoints: ['checkpoints.list'],
  getCheckpoint: ['checkpoints.find'],
  getApproval: ['checkpoints.find'],
  cancelCheckpoint: ['checkpoints.cancel', 'jobs.cancel', 'journal.insert'],
  approveCheckpoint: ['checkpoints.resolve', 'jobs.cancel', 'jobs.enqueue', 'journal.insert'],
  rejectCheckpoint: ['checkpoints.resolve', 'jobs.cancel', 'jobs.enqueue', 'journal.insert'],
  listCheckpointAttempts: ['checkpoints.find', 'jobs.attempts'],
  createInbox: [
    ...['secrets.sealing', 'inbox.insert', 'lookups.claim', 'inbox.lock_expired', 'quotas.reserve'],
    'journal.insert',
  ],
  listInboxes: ['inbox.list', 'quotas.used_one', 'inbox.count_expired'],
  getInbox: ['inbox.find', 'inbox.latest_sizes', 'inbox.between'],
  deleteInbox: ['inbox.uncount', 'inbox.delete', 'quotas.release', 'journal.insert'],
  listMessages: ['inbox.find', 'inbox.page'],
  ...Object.fromEntries(
    ['Get', 'Post', 'Put', 'Patch', 'Delete'].flatMap((method) => [
      [`receive${method}`, ['inbox.receive', 'inbox.add', 'journal.insert']],
      [`receive${method}Below`, ['inbox.receive', 'inbox.add', 'journal.insert']],
    ]),
  ),
  listRateLimits: ['ratelimit.count', 'ratelimit.list'],
  checkRateLimit: ['ratelimit.hit_fixed', 'ratelimit.start', 'quotas.reserve_key'],
  checkRateLimitByQuery: ['ratelimit.hit_fixed', 'ratelimit.start', 'quotas.reserve_key'],
  resetRateLimit: ['ratelimit.reset', 'ratelimit.find'],
  getRateLimitNamedReset: ['ratelimit.find'],
  getRateLimit: ['ratelimit.find'],
  tick: [
    ...['tenants.pause_pending', 'jobs.due', 'jobs.oldest_due'],
    ...[
      'kv.tenants_due',
      'kv.tenants_expired',
      'kv.tenants_with_tombstones',
      'dlq.tenants_expired',
      'dlq.tenants_ended',
    ],
    ...[
      'inbox.tenants_expired',
      'inbox.clearable',
      'inbox.deletable',
      'quotas.tenants_old_calls',
      'usage.tenants_old',
    ],
    ...['idempotency.sweep', 'credentials.sweep', 'tenants.purgeable'],
  ],
  advanceClock: [
    ...['clock.begin', 'journal.any_unnumbered', 'journal.head'],
    // Its own events from before are sealed.
    ...['journal.any_unnumbered', 'seal.head', 'journal.page_seq', 'journal.head', 'seal.head'],
    ...settled,
    ...['kv.next_expiry', 'dlq.next_expiry', 'inbox.next_expiry', 'effects.next_expiry', 'jobs.next_at'],
    'clock.move',
    ...settled,
    ...settled, // after the sweep
    'clock.end',
  ],
  livez: [],
  readyz: [],
  openapi: [],
}
for (const { tick = [], ...own } of own_budgets.values()) {
  for (const [operation, names] of Object.entries(own)) {
    if (budgets[operation]) throw new Error(`${operation} has two budgets`)
    budgets[operation] = names
  }
  budgets.tick!.push(...tick)
}
// At its end it sweeps once.
budgets.advanceClock!.push(...budgets.tick!.filter((name) => !/^jobs\.|^tenants\.pause/.test(name)))

/** Where there may be other nodes, an advance looks four times for what they have left. */
function budgetOf(name: string, engine: TestService['engine']): string[] {
  const looks = name === 'advanceClock' && engine === 'postgres' ? 4 : 0
  return [...budgets[name]!, ...Array(looks).fill('journal.next_unnumbered_tenant')]
}

/**
 * Counts of the requests before: of stored bytes on SQLite with a commit, whatever number of requests share it
 * (src/db/stored.test.ts), and of calls where an answer shows them; and the last use of an approval key, which is noted once a
 * minute at most, and for which no request waits; and the look of each request at a test clock on PostgreSQL.
 */
const of_earlier_requests = ['stored.add', 'usage.add', 'quotas.add_calls', 'credentials.used', 'clock.find']

/** Finds out before the transaction what a creation needs. */
function looksAhead(name: string): boolean {
  return /^dlq\.(reach|match)_|^journal\.any_unnumbered$/.test(name)
}

function ofTheRequest(all: string[]): string[] {
  return all.filter((name, at) => name !== a_name_each || all[at - 1] !== a_name_each)
}

forEachWholeService(
  'statements',
  (service) => {
    let a: Keyring
    beforeAll(async () => {
      // From then on no key is forgotten that was used a moment ago.
      const heard = 'signals from other nodes are heard'
      if (service.engine === 'postgres')
        await until(() => service.logged.some(({ message }) => message === heard))
      a = await newKeyring(service)
      // The first use of a quota makes its counter: see the last test.
      const reserving = Object.keys(budgets).filter((name) =>
        budgets[name]!.some((statement) => statement.startsWith('quotas.reserve')),
      )
      // And the first checkpoint the key that signs.
      for (const name of [...reserving, 'getSeal']) await useOnce(named(name))
    })

    const named = (name: string) => routes.find((route) => route.name === name)!

    async function counted(work: () => Promise<unknown>): Promise<string[]> {
      const names: string[] = []
      service.app.db.onStatement((name) => {
        if (!of_earlier_requests.includes(name)) names.push(name)
      })
      try {
        await work()
      } finally {
        service.app.db.onStatement(null)
      }
      return names
    }

    /** A call that is ready, by a caller whose key was used a moment ago. */
    async function warm(named: NamedRoute) {
      const made = await ready(service, named, a)
      // Decisions made to get there are delivered first, so that no delivery runs meanwhile.
      await service.ask('POST', '/v1/tick', { key: cron_secret })
      const [, headers] = callersOf(named.route, made.keyring)[0]!
      await requireKnown(service, made.keyring.keys[named.route.auth[0] ?? 'admin'])
      return { made, headers }
    }

    async function useOnce(named: NamedRoute): Promise<void> {
      const { made, headers } = await warm(named)
      expect((await call(service, named, made, { headers })).status).toBe(successStatus(named.route))
    }

    test('every route has its budget, and no budget is for a route that is gone', () => {
      expect(Object.keys(budgets).toSorted()).toEqual(routes.map(({ name }) => name).toSorted())
      for (const [folder, { tick = [], ...own }] of own_budgets) {
        const feature = features.find(({ name }) => name === folder)
        const known = (feature?.routes ?? []).map(({ name }) => name)
        expect([folder, Object.keys(own).filter((name) => !known.includes(name))]).toEqual([folder, []])
        const noun = `${folder.replaceAll('-', '_')}.`
        expect(tick.filter((name) => !name.startsWith(noun))).toEqual([])
      }
    })

    test.each(titled(routes))('%s runs the statements of its budget', async (_, named) => {
      const { made, headers } = await warm(named)
      const names = await counted(async () => {
        expect((await call(service, named, made, { headers })).status).toBe(successStatus(named.route))
      })
      // A tick sweeps while it waits, so the two come in no order; an advance looks for several next times at once.
      const ordered = (list: string[]) =>
        ['tick', 'advanceClock'].includes(named.name) ? list.toSorted() : list
      expect(ordered(ofTheRequest(names))).toEqual(ordered(budgetOf(named.name, service.engine)))
    })

    test('a change of a key looks if it leaves an event where a namespace of the tenant does, and then leaves it', async () => {
      const { admin_key, api_key } = await service.signUp()
      const set = { key: admin_key, body: { events: true } }
      await service.ask('PUT', '/v1/namespaces/watched', set)
      for (const name of ['state', 'watched'])
        await service.ask('PUT', `/v1/kv/${name}/first`, { key: api_key, body: { value: 1 } })
      const put = (path: string, body: object = {}) =>
        counted(() =>
          service.ask('PUT', `/v1/kv/${path}`, { key: api_key, body: { value: 1, ...body } }),
        ).then((names) => names.filter((name) => name !== 'quotas.reserve_key'))
      const remove = (path: string) =>
        counted(() => service.ask('DELETE', `/v1/kv/${path}`, { key: api_key }))
      const look = 'kv.find_namespace'
      expect(await put('state/k')).toEqual([look, 'kv.put'])
      expect(await put('watched/k')).toEqual([look, 'kv.put_live', 'journal.insert'])
      expect(await put('watched/k', { cas_version: 1 })).toEqual([
        ...[look, 'kv.find', 'kv.put_if_version', 'journal.insert'],
      ])
      expect(await put('watched/n', { cas_version: 0, ttl_seconds: 1 })).toEqual([
        ...[look, 'kv.find', 'kv.put_if_tombstone', 'journal.insert'],
      ])
      service.clock.advance(second_ms)
      await service.ask('GET', '/v1/kv/state', { key: api_key })
      expect(await put('watched/n')).toEqual([
        ...[
          look,
          'kv.put_live',
          'kv.expire',
          'quotas.release',
          'journal.insert',
          'kv.put_live',
          'journal.insert',
        ],
      ])
      expect(await remove('watched/n')).toEqual(['kv.delete', 'quotas.release', look, 'journal.insert'])
      expect(await remove('state/k')).toEqual(['kv.delete', 'quotas.release', look])
    })

    test('the hot paths keep to theirs: kv get 1, kv put 2 and over an existing key 1, audit append 3', async () => {
      const lengths = ['getValue', 'putValue', 'appendEntry'].map((name) => budgets[name]!.length)
      expect(lengths).toEqual([1, 2, 3])
      const put = { key: a.keys.agent, body: { value: 1 } }
      await service.ask('PUT', '/v1/kv/state/twice', put)
      expect(await counted(() => service.ask('PUT', '/v1/kv/state/twice', put))).toEqual(['kv.put'])
    })

    /** Schedules of a new tenant that have failed, and their dead letters, oldest first. */
    async function failedSchedules(count: number) {
      const receiver = await startReceiver()
      receiver.answer = () => ({ status: 410 })
      try {
        const tenant = await service.signUp()
        for (let i = 0; i < count; i++) {
          service.clock.advance(1)
          const sent = { callback_url: receiver.url, callback_payload: i, fire_at: '2020-01-01T00:00:00Z' }
          await service.ask('POST', '/v1/schedules', {
            ...{ key: tenant.api_key, body: { ...sent, dlq_on_failure: true } },
          })
        }
        const list = async () => (await service.ask('GET', '/v1/dlq', { key: tenant.api_key })).body.items
        while ((await list()).length < count) await service.ask('POST', '/v1/tick', { key: cron_secret })
        const ids: string[] = (await list()).map((item: { id: string }) => item.id).toReversed()
        return { ...tenant, ids }
      } finally {
        await receiver.stop()
      }
    }

    const sent_again = [
      ...['dlq.find_locked', 'schedules.find', 'quotas.reserve', 'schedules.repeat', 'schedules.insert'],
      ...[
        'jobs.enqueue',
        'journal.insert',
        'journal.insert',
        'dlq.redrive',
        'quotas.release',
        'journal.insert',
      ],
    ]

    test(`a redrive of the dead letter of a schedule: ${sent_again.length}`, async () => {
      const { api_key, ids } = await failedSchedules(1)
      const redrive = () => service.ask('POST', `/v1/dlq/${ids[0]}/redrive`, { key: api_key })
      expect(await counted(async () => expect((await redrive()).status).toBe(200))).toEqual(sent_again)
    })

    test(`a step of a redrive of many: ${sent_again.length + 1} for each, and the same few for all`, async () => {
      const { api_key, ids } = await failedSchedules(3)
      const begin = () => service.ask('POST', '/v1/dlq/redrive', { key: api_key, body: { filter: {} } })
      expect(await counted(begin)).toEqual([
        ...['dlq.reach_failed_ahead', 'dlq.match_failed', 'dlq.insert_operation', 'dlq.insert_part'],
        ...['jobs.enqueue', 'journal.insert', 'dlq.find_operation'],
      ])
      const ticked = await counted(() => service.ask('POST', '/v1/tick', { key: cron_secret }))
      const all = ticked.filter((name) => !budgets.tick!.includes(name))
      const from = all.indexOf('dlq.find_operation')
      expect(all.slice(from, all.indexOf('jobs.complete') + 1)).toEqual([
        ...['dlq.find_operation', 'jobs.repeat', 'dlq.find_part', 'tenants.find', 'quotas.used_one'],
        ...ids.map(() => 'dlq.lock'),
        ...ids.flatMap(() => sent_again),
        ...['dlq.set_part', 'dlq.advance_operation', 'journal.insert', 'jobs.complete'],
      ])
    })

    test.each([
      ['cas_version', {}, { value: 1, cas_version: 1 }],
      ['If-Match', { 'if-match': '1' }, { value: 1 }],
    ])('a put with %s looks first: 2', async (how, headers, body) => {
      const path = `/v1/kv/state/${how}`
      await service.ask('PUT', path, { key: a.keys.agent, body: { value: 1 } })
      const names = await counted(() => service.ask('PUT', path, { key: a.keys.agent, headers, body }))
      expect(names).toEqual(['kv.find', 'kv.put_if_version'])
    })

    test('a key that was not used for 900 ms costs one look-up, and only the first request', async () => {
      service.clock.advance(second_ms)
      const get = () => service.ask('GET', '/v1/kv/state/nothing', { key: a.keys.agent })
      expect(await counted(get)).toEqual(['credentials.find', 'kv.find'])
      expect(await counted(get)).toEqual(['kv.find'])
      service.clock.advance(899)
      expect(await counted(get)).toEqual(['kv.find'])
      service.clock.advance(1)
      expect(await counted(get)).toEqual(['credentials.find', 'kv.find'])
    })

    test('a key whose checksum is wrong costs none, an unknown one costs one each time', async () => {
      const { agent } = a.keys
      const bad = agent.slice(0, -1) + (agent.endsWith('a') ? 'b' : 'a')
      expect(await counted(() => service.ask('GET', '/v1/audit', { key: bad }))).toEqual([])
      const unknown = newKey('agent')
      for (let i = 0; i < 2; i++)
        expect(await counted(() => service.ask('GET', '/v1/audit', { key: unknown }))).toEqual([
          'lookups.find',
        ])
    })

    test('the first use of a quota makes its counter: one more, once for each tenant', async () => {
      const { api_key } = await service.signUp()
      const capture = (text: string) =>
        counted(() => service.ask('POST', '/v1/dlq', { key: api_key, body: { payload: {}, error: text } }))
      const [insert, take, emit, find] = budgets.captureItem!
      expect((await capture('first')).slice(-5)).toEqual([insert!, take!, 'quotas.start', emit!, find!])
      expect(await capture('second')).toEqual([insert!, take!, emit!, find!])
    })

    test.each(titled(routes.filter(({ route }) => route.create)))(
      '%s with an Idempotency-Key runs two more, and a repeat runs two in all',
      async (_, named) => {
        const { made, headers } = await warm(named)
        const sent = { headers: { ...headers, 'idempotency-key': crypto.randomUUID() } }
        const once = () => call(service, named, made, sent)
        // Where something has to be found out first, a repeat must not ask for it again.
        const asked = named.route.prepare ? ['idempotency.find'] : []
        const budget = budgets[named.name]!
        expect(await counted(once)).toEqual([
          ...asked,
          ...budget.filter((name) => looksAhead(name)),
          'idempotency.claim',
          ...budget.filter((name) => !looksAhead(name)),
          'idempotency.keep',
        ])
        expect(await counted(once)).toEqual([...asked, 'idempotency.claim', 'idempotency.find'])
      },
    )
  },
  {},
  { background: false },
)
