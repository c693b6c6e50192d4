// An advance of a test clock that its 20 s were not enough for, and those that go on.

import { expect, test } from 'bun:test'
import {
  advance,
  at,
  day_s,
  hour_s,
  made,
  schedule,
  shown,
  timeOf,
  withReceiver,
  withService,
} from '../../test/support/advance.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { on_citus } from '../../test/support/postgres.ts'
import type { Receiver } from '../../test/support/receiver.ts'
import type { TestService } from '../../test/support/service.ts'

/** The time of a call is over once the receiver has had so many requests, and what they have left was read. */
function endTimeAfter(service: TestService, receiver: Receiver, counts: readonly number[]): void {
  const left = new Set(counts)
  service.app.db.onStatement((name) => {
    if (name.startsWith('journal.page') && left.delete(receiver.requests.length))
      service.clock.advance(20_000)
  })
}

forEachDatabase('An advance that its time is not enough for', (databases) => {
  test('answers done: false and how far it came; advanced by the rest it goes on, and nothing is lost or done twice', async () => {
    await withReceiver(async (receiver) => {
      await withService(await databases.newUrl(), async (service) => {
        const { admin_key, api_key } = await service.signUp('pro')
        for (let hour = 1; hour <= 4; hour++) await schedule(service, api_key, receiver.url, hour * hour_s)
        endTimeAfter(service, receiver, [2, 4])
        const first = await advance(service, admin_key, day_s)
        expect([first.status, { ...first.body, events: null }]).toEqual([
          200,
          {
            now: at(2 * hour_s),
            advanced_seconds: 2 * hour_s,
            done: false,
            counts: { 'schedule.attempted': 2, 'schedule.fired': 2, 'seal.checkpoint': expect.any(Number) },
            events: null,
          },
        ])
        expect(await timeOf(service, admin_key)).toBe(at(2 * hour_s)) // it runs from there
        const second = await advance(service, admin_key, day_s - 2 * hour_s)
        expect(second.body).toMatchObject({ now: at(4 * hour_s), advanced_seconds: 2 * hour_s, done: false })
        const third = await advance(service, admin_key, day_s - 4 * hour_s)
        expect(third.body).toMatchObject({
          ...{ now: at(day_s), advanced_seconds: day_s - 4 * hour_s, done: true },
        })
        expect([first, second, third].flatMap(({ body }) => shown(body.events))).toEqual(
          [1, 2, 3, 4].flatMap((hour) => [
            `${at(hour * hour_s)} schedule.attempted`,
            `${at(hour * hour_s)} schedule.fired`,
          ]),
        )
        expect(receiver.requests).toHaveLength(4)
      })
    })
  })

  test('that has come to its end but not finished what is due there is gone on with by 0 seconds', async () => {
    await withReceiver(async (receiver) => {
      await withService(await databases.newUrl(), async (service) => {
        const { admin_key, api_key } = await service.signUp('pro')
        await schedule(service, api_key, receiver.url, hour_s)
        const held = Promise.withResolvers<void>()
        receiver.answer = async () => {
          await held.promise
          return { status: 204 }
        }
        const first = advance(service, admin_key, hour_s)
        await receiver.received(1)
        service.clock.advance(20_000)
        const { body: left } = await first
        expect([left.now, left.advanced_seconds, left.done]).toEqual([at(hour_s), hour_s, false])
        expect(shown(left.events)).toEqual([])
        // Once the second call waits for it, so that the event is among those that this call has left.
        service.app.db.onStatement((name) => name === 'jobs.oldest_due' && held.resolve())
        const { status, body } = await advance(service, admin_key, 0)
        service.app.db.onStatement(null)
        expect([status, body.now, body.advanced_seconds, body.done]).toEqual([200, at(hour_s), 0, true])
        expect(shown(body.events)).toEqual([
          `${at(hour_s)} schedule.attempted`,
          `${at(hour_s)} schedule.fired`,
        ])
        expect(receiver.requests).toHaveLength(1)
      })
    })
  })

  test('is gone on with after a restart', async () => {
    await withReceiver(async (receiver) => {
      const url = await databases.newUrl()
      await withService(url, async (service) => {
        const { admin_key, api_key } = await service.signUp('pro')
        await schedule(service, api_key, receiver.url, hour_s)
        await schedule(service, api_key, receiver.url, 2 * hour_s)
        endTimeAfter(service, receiver, [1])
        expect((await advance(service, admin_key, day_s)).body).toMatchObject({
          now: at(hour_s),
          done: false,
        })
        await service.app.stop()
        await service.start(url)
        const { body } = await advance(service, admin_key, day_s - hour_s)
        expect([body.now, body.done]).toEqual([at(day_s), true])
        expect(shown(body.events)).toEqual([
          `${at(2 * hour_s)} schedule.attempted`,
          `${at(2 * hour_s)} schedule.fired`,
        ])
        expect(receiver.requests).toHaveLength(2)
      })
    })
  })
})

forEachDatabase('Keys that expire without an event', (databases) => {
  for (const [keys, stops] of [
    [99, 2],
    [100, on_citus ? 2 : 3], // Citus joins keys and namespaces where they lie, and finds it among all
  ] as const)
    test(`before one that leaves an event, ${keys} of them: an advance makes ${stops} steps, and leaves it at its instant`, async () => {
      await withService(await databases.newUrl(), async (service) => {
        const { admin_key, api_key } = await service.signUp('pro')
        await service.ask('PUT', '/v1/namespaces/state', { key: admin_key, body: { events: true } })
        const quiet = Array.from({ length: keys }, (_, n) =>
          made(service, `/v1/kv/quiet/${n}`, api_key, { value: n, ttl_seconds: 1 + n }),
        )
        await Promise.all(quiet)
        await made(service, '/v1/kv/state/seen', api_key, { value: 1, ttl_seconds: 500 })
        let moves = 0
        service.app.db.onStatement((name) => {
          if (name === 'clock.move') moves += 1
        })
        const { body } = await advance(service, admin_key, hour_s)
        service.app.db.onStatement(null)
        expect([body.done, moves, shown(body.events)]).toEqual([true, stops, [`${at(500)} kv.expired`]])
      })
    })
})
