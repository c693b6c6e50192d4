// The journal, generated from the list of routes: a call leaves the events that its route declares and no others, and one
// that is refused, repeated or changes nothing leaves none.

import { beforeAll, describe, expect, test } from 'bun:test'
import type { NamedRoute } from '../src/contract/feature.ts'
import { type Route, successStatus } from '../src/contract/route.ts'
import { event_types, features, routes } from '../src/features.ts'
import {
  bearer,
  call,
  callersOf,
  idParams,
  isAuthenticated,
  type Keyring,
  neverExisted,
  newKeyring,
  ownHeaders,
  pathWith,
  type Ready,
  ready,
  readyToRefuse,
  titled,
} from './support/contract.ts'
import { exampleQuery } from './support/contract-examples.ts'
import { eventsOf, type StoredEvent } from './support/journal.ts'
import { type Answer, forEachWholeService, type TestService } from './support/service.ts'
import { code, codeOf, source, textOf } from './support/source.ts'

/** Calls whose example changes nothing, or not what the route is for: the call that comes before. */
const before_example: Readonly<Record<string, string[]>> = {
  redriveItem: ['claimItem', 'failItem'],
}

/** Types that a call leaves only sometimes: by type, or by route and type. A test of the folder names each. */
const only_sometimes: Readonly<Record<string, string>> = {
  'claimEffect effect.proposed': 'when it needs an approval',
  'claimEffect checkpoint.created': 'when it needs an approval',
  'claimEffect effect.started': 'when it is free again',
  'claimEffect effect.rejected': 'when its permit has expired',
  'startEffect effect.rejected': 'when its permit has expired',
  'claimEffect effect.unknown': 'when its permit has expired, and its last lease was not reported',
  'startEffect effect.unknown': 'when its permit has expired, and its last lease was not reported',
  'revokeApproval effect.unknown': 'when the last lease under it ran out, and was not reported',
  'succeedEffect checkpoint.cancelled': 'when a person was asked what became of it',
  'failEffect checkpoint.cancelled': 'when a person was asked what became of it',
  'failEffect effect.retried': 'when it may be started again',
  'resolveEffect checkpoint.cancelled': 'when a person was asked what became of it',
  'dlq.lock_expired': 'when the call ends a lock that has expired',
  'redriveItem dlq.resolved': 'when it is the dead letter of a schedule or a checkpoint',
  'redriveItem schedule.retried': 'when it is the dead letter of a schedule',
  'redriveItem schedule.created': 'when it is the dead letter of a schedule',
  'redriveItem callback.redriven': 'when it is the dead letter of the callback of a checkpoint',
  'kv.put': 'in a namespace that asks for events',
  'kv.deleted': 'in a namespace that asks for events',
  'kv.expired': 'in a namespace that asks for events, when the key has expired',
  'updateNamespace kv.events_disabled': 'when it asked for events before',
  'retrySchedule dlq.resolved': 'when its failure left a dead letter',
  'updateSchedule schedule.workflow_left': 'when it is moved to another workflow',
  'updateSchedule schedule.workflow_joined': 'when it is moved to another workflow',
  'approval_key.used': 'when the decision is made with an approval key',
  'checkpoint.voted': 'when the checkpoint counts votes',
  'rejectCheckpoint dlq.created': 'when its timeout_action is dlq',
  'createInbox inbox.deleted': 'when others that have expired make room for it',
  'updateSubscription subscription.updated': 'when something but the pause changes',
  'updateSubscription subscription.paused': 'when it is paused',
  'updateSubscription subscription.resumed': 'when it is resumed',
  'confirmMail subscription.confirmed': 'when it was not confirmed before',
  'unsubscribeMail subscription.paused': 'when it was not paused before',
  'cancelOperation dlq_operation.cancelled': 'when it still runs',
}

let made = 0
function newRequestId(): string {
  made += 1
  return `req_of_a_test.${made}`
}

const declaring = routes.filter(({ route }) => route.emits !== undefined)
const without_events = routes.filter(({ route }) => (route.emits ?? []).length === 0)

forEachWholeService('the journal', (service) => {
  let a: Keyring
  beforeAll(async () => {
    a = await newKeyring(service)
  })

  /** The call, and the events that it has left. */
  async function leaves(
    named: NamedRoute,
    target: Pick<Ready, 'path' | 'body'>,
    headers: Record<string, string>,
  ): Promise<{ answer: Answer; events: StoredEvent[] }> {
    const request_id = newRequestId()
    const answer = await call(service, named, target, { headers: { ...headers, 'x-request-id': request_id } })
    return { answer, events: await eventsOf(service.app.db, request_id) }
  }

  test.each(titled(declaring))('%s leaves exactly the events that it declares', async (_, named) => {
    const { route } = named
    for (const [who, headers] of callersOf(route, a)) {
      const target = await changing(service, named, a)
      const own = isAuthenticated(named) ? ownHeaders(target.keyring, who as 'admin') : headers
      const { answer, events } = await leaves(named, target, { ...own, 'x-workflow-id': 'of the call' })
      expect([who, answer.status]).toEqual([who, successStatus(route)])
      const types = new Set(events.map(({ type }) => type))
      expect([who, [...types].filter((type) => !route.emits!.includes(type))]).toEqual([who, []])
      const always = route.emits!.filter((type) => !isOnlySometimes(named, type))
      expect([who, always.filter((type) => !types.has(type))]).toEqual([who, []])
      for (const event of events) expectCausedBy(event, who, target.keyring, route)
    }
  })

  test.each(titled(without_events))('%s leaves no event', async (_, named) => {
    for (const [who, headers] of callersOf(named.route, a)) {
      const target = await ready(service, named, a)
      const own = isAuthenticated(named) ? ownHeaders(target.keyring, who as 'admin') : headers
      const { answer, events } = await leaves(named, target, own)
      expect([who, answer.status, events]).toEqual([who, successStatus(named.route), []])
    }
  })

  const changing_routes = routes.filter(({ route }) => (route.emits ?? []).length > 0)

  test.each(titled(changing_routes))('%s leaves none when it is refused', async (_, named) => {
    const { route } = named
    const target = await readyToRefuse(service, named, a)
    const own = callersOf(route, target.keyring)[0]![1]
    const wrong: [string, Pick<Ready, 'path' | 'body'>, Record<string, string>][] = [
      ['a garbage key', target, bearer('garbage')],
      ['a wrong workflow', target, { ...own, 'x-workflow-id': '' }],
    ]
    if (route.body) wrong.push(['a body that is not an object', { ...target, body: [] as never }, own])
    if (idParams(route).length > 0) {
      const never = `${pathWith(route, neverExisted(route))}${exampleQuery(route)}`
      wrong.push(['an id that never was', { ...target, path: never }, own])
    }
    for (const [what, other, headers] of wrong) {
      const { answer, events } = await leaves(named, other, headers)
      const reads_no_key = answer.status < 400 && !isAuthenticated(named)
      if (!reads_no_key) expect([what, answer.status >= 400, events]).toEqual([what, true, []])
    }
  })

  test.each(titled(changing_routes.filter(({ route }) => idParams(route).length > 0)))(
    '%s leaves none when the first call has made it impossible, or has left nothing to change',
    async (_, named) => {
      const target = await changing(service, named, a)
      const headers = callersOf(named.route, target.keyring)[0]![1]
      await leaves(named, target, headers)
      const { answer, events } = await leaves(named, target, headers)
      if (answer.status >= 400) expect(events).toEqual([])
    },
  )

  test.each(titled(changing_routes.filter(({ route }) => route.create)))(
    '%s leaves none when its Idempotency-Key is repeated',
    async (_, named) => {
      const target = await changing(service, named, a)
      const headers = callersOf(named.route, target.keyring)[0]![1]
      const keyed = { ...headers, 'idempotency-key': crypto.randomUUID() }
      expect((await leaves(named, target, keyed)).events.length).toBeGreaterThan(0)
      const { answer, events } = await leaves(named, target, keyed)
      expect([answer.headers.get('idempotent-replayed'), events]).toEqual(['true', []])
    },
  )

  function expectCausedBy(event: StoredEvent, who: string, keyring: Keyring, { auth }: Route): void {
    const { agent_id, approval_key_id, tenant_id } = keyring
    const actors: Record<string, string> = {
      ...{
        admin: 'admin',
        agent: agent_id,
        approval: `approval_key:${approval_key_id}`,
        anybody: 'anonymous',
      },
    }
    expect([event.type, event.actor]).toEqual([event.type, actors[who]!])
    expect(event.at).toBe(service.clock.now())
    if (auth.length === 0) return
    expect([event.type, event.tenant_id]).toEqual([event.type, tenant_id])
    expect([event.type, event.agent_id]).toEqual([event.type, who === 'agent' ? agent_id : null])
    expect([event.type, event.workflow_id]).toEqual([event.type, 'of the call'])
  }
})

describe('the types of events', () => {
  const types = [...event_types.keys()]
  const always = new Set(
    declaring.flatMap((named) => named.route.emits!.filter((type) => !isOnlySometimes(named, type))),
  )
  const emitting = source.filter((file) => !file.endsWith('/events.ts')).map(codeOf)
  const tests = code.filter((file) => file.endsWith('.test.ts') && file !== 'test/contract-events.test.ts')

  test('are named noun.verb, have a sentence, and data of strings, integers, booleans and nulls', () => {
    const strange = [...event_types.values()].filter(({ name, about, subject, data }) => {
      const members = Object.values(data).flatMap(
        (member) => (member as { anyOf?: object[] }).anyOf ?? [member],
      )
      const plain = members.every((member) => {
        const { type, enum: values } = member as { type?: string; enum?: unknown[] }
        return values !== undefined || ['string', 'integer', 'boolean', 'null'].includes(type ?? '')
      })
      return !(
        /^[a-z_]+\.[a-z_]+$/.test(name) &&
        /^[A-Z].*\.$/.test(about) &&
        /^[a-z_]+$/.test(subject) &&
        plain
      )
    })
    expect(strange).toEqual([])
    expect(types.length).toBeGreaterThan(20)
  })

  test('are each emitted somewhere', () => {
    const templates = emitting.flatMap((text) =>
      [...text.matchAll(/\bevents\[`([^`$]+)\$\{/g)].map(([, prefix]) => prefix!),
    )
    const unused = types.filter((type) => {
      const is_named = emitting.some((text) => text.includes(`events['${type}']`))
      return !is_named && !templates.some((prefix) => type.startsWith(prefix))
    })
    expect(unused).toEqual([])
  })

  test('are each left by an example above, or by a test that names them', () => {
    const untested = types.filter(
      (type) => !always.has(type) && !tests.some((file) => textOf(file).includes(`'${type}'`)),
    )
    expect(untested).toEqual([])
  })

  test('are said by every route that is not a GET, where its feature has events', () => {
    const silent = features
      .filter(({ events }) => events !== undefined)
      .flatMap(({ routes = [] }) => routes)
      .filter(({ route }) => route.method !== 'GET' && route.emits === undefined)
    expect(silent.map(({ name }) => name)).toEqual([])
    expect(declaring.flatMap(({ route }) => route.emits!).filter((type) => !event_types.has(type))).toEqual(
      [],
    )
  })

  test('that a call leaves only sometimes are those of a route that is there', () => {
    const known = declaring.flatMap(({ name, route }) =>
      route.emits!.flatMap((type) => [type, `${name} ${type}`]),
    )
    expect(Object.keys(only_sometimes).filter((name) => !known.includes(name))).toEqual([])
  })
})

/** A call that is ready to change what its route is for. */
async function changing(service: TestService, named: NamedRoute, keyring: Keyring): Promise<Ready> {
  const target = await ready(service, named, keyring)
  for (const name of before_example[named.name] ?? []) {
    const before = routes.find((other) => other.name === name)!
    const path = pathWith(before.route, target.params)
    const [, headers] = callersOf(before.route, target.keyring)[0]!
    expect((await call(service, before, { path, body: {} }, { headers })).status).toBe(200)
  }
  return target
}

function isOnlySometimes(named: NamedRoute, type: string): boolean {
  return Object.hasOwn(only_sometimes, type) || Object.hasOwn(only_sometimes, `${named.name} ${type}`)
}
