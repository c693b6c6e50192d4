// Between a commit and its flush, generated from the list of routes: a new route is covered without a word here. No answer
// leaves before the flush that covers it, nothing is shown before, and after a flush that failed or hangs no write succeeds.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { NamedRoute } from '../src/contract/feature.ts'
import { successStatus } from '../src/contract/route.ts'
import { routes } from '../src/features.ts'
import {
  call,
  callersOf,
  type Keyring,
  newKeyring,
  type Ready,
  ready,
  seenBy,
  titled,
} from './support/contract.ts'
import type { HeldFlush } from './support/held-flush.ts'
import type { Answer, TestService } from './support/service.ts'
import { startUnflushed, type Unflushed } from './support/unflushed.ts'

let unflushed: Unflushed
let flush: HeldFlush
let service: TestService
let owner: Keyring

async function start(): Promise<void> {
  unflushed = await startUnflushed()
  ;({ flush, service } = unflushed)
  owner = await newKeyring(service)
}

const stop = () => unflushed.stop()

interface Made extends Ready {
  named: NamedRoute
  headers: Record<string, string>
}

async function made(named: NamedRoute): Promise<Made> {
  const its = await ready(service, named, owner)
  const [, headers] = callersOf(named.route, its.keyring)[0]!
  return { ...its, named, headers }
}

const send = (its: Made, headers: Record<string, string> = {}): Promise<Answer> =>
  call(service, its.named, its, { headers: { ...its.headers, ...headers } })

/** False when the answer comes without a flush. */
const flushes = (answer: Promise<unknown>): Promise<boolean> =>
  Promise.race([flush.begun(1).then(() => true), answer.then(() => false)])

/** Changes something, by its method; to wait for an event is to read. */
const changes = ({ name, route }: NamedRoute): boolean => route.method !== 'GET' && name !== 'waitForEvent'

/** Calls that find nothing to change as the contract tests make them, though their method changes something. */
const without_change: Record<string, string> = {
  cancelOperation: 'an operation on no dead letters has ended',
  redriveItem: 'the dead letter waits to be claimed already',
  resetRateLimit: 'there is no such counter',
  tick: 'nothing is due',
}

/** Reads that write first, when there is something to write. */
const writes_first: Record<string, string> = {
  getUsage: 'the calls that are counted, and not written yet',
  getWorkflow: 'the numbers of events that have none yet',
  ...Object.fromEntries(
    ['getBundle', 'getConsistencyProof', 'getInclusionProof', 'getSeal'].map((name) => [
      name,
      'the numbers and hashes of events that have none yet',
    ]),
  ),
  waitForEvent: 'the numbers of events that have none yet',
}

/** Reads that leave a write for which no answer waits. */
const writes_beside: Record<string, string> = {
  getApproval: 'the last use of its key, no more than once a minute',
}

/** Reads of the journal, which give numbers first to the events that have none yet. */
const numbers_first = ({ route }: NamedRoute): boolean =>
  route.method === 'GET' && /^\/v1\/(events|workflows|seal)\b/.test(route.path)

/** Calls whose refusal while the same call is under way says nothing of what it has changed. */
const refused_at_once: Record<string, string> = { advanceClock: 'another call moves the time' }

const writing = routes.filter((named) => changes(named) && !without_change[named.name])

describe('a commit that is not flushed yet', () => {
  beforeAll(start)
  afterEach(() => flush.release())
  afterAll(stop)

  test.each(titled(routes))('%s is answered, and what it did is shown, after the flush', async (_, named) => {
    const its = await made(named)
    const before = await seenBy(service, its.keyring)
    flush.hold()
    const answer = send(its)
    const is_beside = named.name in writes_beside
    const is_flushed = is_beside ? await answer.then(() => false) : await flushes(answer)
    if (changes(named) && !without_change[named.name]) expect(is_flushed).toBe(true)
    if (is_flushed) {
      expect(await unflushed.answered([answer])).toBe(0)
      expect(await seenBy(service, its.keyring)).toEqual(before)
    }
    flush.release()
    expect((await answer).status).toBe(successStatus(named.route))
  })

  test.each(titled(writing))(
    '%s twice: the second answer, a refusal too, waits for the first flush',
    async (_, named) => {
      const its = await made(named)
      flush.hold()
      const first = send(its)
      await flush.begun(1)
      const second = send(its)
      const at_once = named.name in refused_at_once
      if (at_once) expect([named.name, (await second).status]).toEqual([named.name, 409])
      expect(await unflushed.answered(at_once ? [first] : [first, second])).toBe(0)
      flush.release()
      expect((await first).status).toBe(successStatus(named.route))
      await second
    },
  )

  test.each(titled(routes.filter(({ route }) => route.create)))(
    '%s twice with one Idempotency-Key: one effect, and the same bytes after its flush',
    async (_, named) => {
      const its = await made(named)
      const key = { 'idempotency-key': crypto.randomUUID() }
      flush.hold()
      const first = send(its, key)
      await flush.begun(1)
      const second = send(its, key)
      expect(await unflushed.answered([first, second])).toBe(0)
      flush.release()
      const [one, other] = await Promise.all([first, second])
      expect([other.text, other.headers.get('idempotent-replayed')]).toEqual([one.text, 'true'])
    },
  )
})

describe('a disk that does not flush', () => {
  beforeEach(start)
  afterEach(stop)

  const codeOf = ({ status, body }: Answer) => [status, body?.error?.code]
  const unavailable = [503, 'UNAVAILABLE']

  test('and fails: no route that waits, and none that writes later, answers 2xx; /readyz is 503', async () => {
    const all = await Promise.all(writing.map(made))
    flush.hold()
    const waiting = all.map((its) => send(its))
    await flush.begun(1)
    expect(await unflushed.answered(waiting)).toBe(0)
    flush.fail(new Error('EIO'))
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(503)
    expect(unflushed.fatal).toEqual([new Error('EIO')])
    for (const its of all) expect([its.named.name, (await send(its)).status]).toEqual([its.named.name, 503])
    expect((await service.ask('GET', '/readyz')).status).toBe(503)
  })

  test('and hangs: every route that writes is refused after 5 s, every other answers, and all resume with the disk', async () => {
    // The one that claims any letter comes last: it may be that of another route.
    const is_last = ({ named }: Made) => Number(named.name === 'claimOldestItem')
    const made_all = await Promise.all(routes.map(made))
    const all = made_all.toSorted((one, other) => is_last(one) - is_last(other))
    flush.hold()
    const first = service.ask('POST', '/v1/tenants', {
      body: { name: 'waits', owner_email: 'a@example.com' },
    })
    await flush.begun(1)
    service.clock.advance(5_000)
    expect((await service.ask('GET', '/readyz')).status).toBe(503)
    const refused = []
    for (const its of all) {
      const { named } = its
      const answer = codeOf(await send(its))
      if (answer[0] === 503 && named.name !== 'readyz') refused.push(its)
      if (changes(named) || refused.at(-1) === its)
        expect([named.name, answer]).toEqual([named.name, unavailable])
    }
    flush.release()
    expect((await first).status).toBe(201)
    expect((await service.ask('GET', '/readyz')).status).toBe(200)
    for (const its of all) {
      flush.hold()
      const answer = send(its)
      const writes = (await flushes(answer)) || its.named.name in without_change
      flush.release()
      const { status, body } = await answer
      expect([its.named.name, status, body?.error?.code]).toEqual([
        its.named.name,
        successStatus(its.named.route),
        undefined,
      ])
      if (its.named.name in writes_beside) {
        // Its writes are on the disk before the next request.
        const body = { name: `after-${its.named.name.toLowerCase()}`, owner_email: 'a@example.com' }
        expect((await service.ask('POST', '/v1/tenants', { body })).status).toBe(201)
        continue
      }
      // A refusal is right where something is written, and nowhere else.
      if (its.named.name in writes_first || numbers_first(its.named)) continue
      expect([its.named.name, refused.includes(its)]).toEqual([its.named.name, writes])
    }
  })
})
