// The test clock: a time that tests move.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import {
  advance,
  at,
  begin,
  day_s,
  hour_s,
  made,
  schedule,
  shown,
  timeOf,
  withReceiver,
  withService,
} from '../../test/support/advance.ts'
import { TestClock } from '../../test/support/clock.ts'
import { forEachDatabase, onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase, on_citus } from '../../test/support/postgres.ts'
import { type Answer, few_connections, TestService } from '../../test/support/service.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { migrate } from '../db/migrate.ts'
import { openDb } from '../db/open.ts'
import { migrations } from '../features.ts'
import { made_message, not_made_message, requireClock, TestTime } from './service.ts'

forEachDatabase('A test clock', (databases) => {
  const is_distributed = databases.engine === 'postgres' && on_citus

  test('is read and moved: GET answers now and offset_seconds, advance what it has done', async () => {
    await withService(await databases.newUrl(), async (service) => {
      const { admin_key, api_key } = await service.signUp()
      for (const key of [admin_key, api_key]) {
        const read = await service.ask('GET', '/v1/clock', { key })
        expect([read.status, read.body]).toEqual([200, { now: at(0), offset_seconds: 0 }])
      }
      const moved = await advance(service, admin_key, 1.5)
      expect([moved.status, moved.body]).toEqual([
        200,
        { now: at(1.5), advanced_seconds: 1.5, done: true, counts: {}, events: [] },
      ])
      const read = await service.ask('GET', '/v1/clock', { key: api_key })
      expect(read.body).toEqual({ now: at(1.5), offset_seconds: 1.5 })
      expect((await advance(service, api_key, 1)).status).toBe(403)
      expect((await advance(service, admin_key, 0)).body).toMatchObject({ advanced_seconds: 0, done: true })
      for (const seconds of [-0.001, -1, 366 * day_s + 0.001])
        expect((await advance(service, admin_key, seconds)).status).toBe(400)
      expect((await advance(service, admin_key, 366 * day_s)).body).toMatchObject({ done: true })
    })
  })

  test('what falls due happens in its order, each at its own instant, and receivers verify it by real time', async () => {
    await withReceiver(async (receiver) => {
      await withService(await databases.newUrl(), async (service) => {
        const { admin_key, api_key } = await service.signUp('pro')
        receiver.answer = ({ target }) => ({ status: target === '/late' ? 503 : 204 })
        await schedule(service, api_key, `${receiver.url}/late`, day_s, { dlq_on_failure: true })
        await made(service, '/v1/checkpoints', api_key, {
          ...{ title: 'Refund order 4711?', prompt: 'The customer waits.' },
          ...{
            callback_url: `${receiver.url}/decided`,
            timeout_seconds: 3 * day_s,
            timeout_action: 'auto_reject',
          },
        })
        const events = await service.ask('PUT', '/v1/namespaces/state', {
          key: admin_key,
          body: { events: true },
        })
        expect(events.status).toBeLessThan(300)
        await made(service, '/v1/kv/state/token', api_key, { value: 1, ttl_seconds: 2 * day_s })
        await made(service, '/v1/agents', admin_key, { name: 'a-second-one' })

        const { status, body } = await advance(service, admin_key, 4 * day_s)
        expect([status, body.now, body.advanced_seconds, body.done]).toEqual([
          200,
          at(4 * day_s),
          4 * day_s,
          true,
        ])
        expect(shown(body.events)).toEqual([
          `${at(day_s)} schedule.attempted`,
          `${at(day_s + 30)} schedule.attempted`,
          `${at(day_s + 90)} dlq.created`,
          `${at(day_s + 90)} schedule.attempted`,
          `${at(day_s + 90)} schedule.failed`,
          `${at(2 * day_s)} kv.expired`,
          `${at(3 * day_s)} checkpoint.rejected`,
          `${at(3 * day_s)} callback.attempted`,
          `${at(3 * day_s)} callback.delivered`,
        ])
        expect(receiver.requests.map(({ target }) => target)).toEqual(['/late', '/late', '/late', '/decided'])
        const sent_at = receiver.requests.map(({ headers }) => Number(headers['webhook-timestamp']) * 1_000)
        expect(sent_at).toEqual(Array(4).fill(begin))
      })
    })
  })

  test('thirty days of schedules, timeouts and retries: all of it has happened, in its order', async () => {
    await withReceiver(async (receiver) => {
      await withService(await databases.newUrl(), async (service) => {
        const { admin_key, api_key } = await service.signUp('pro')
        const failing = new Set<number>()
        receiver.answer = ({ body, headers }) => {
          const is_first = headers['x-waystation-attempt'] === '1'
          return { status: is_first && failing.has(JSON.parse(body).after_s) ? 500 : 204 }
        }
        const due: { at_s: number; attempt: string }[] = []
        for (let after_s = 6 * hour_s; after_s <= 30 * day_s; after_s += 6 * hour_s) {
          await schedule(service, api_key, receiver.url, after_s)
          due.push({ at_s: after_s, attempt: '1' })
          if (after_s % day_s > 0) continue
          failing.add(after_s)
          due.push({ at_s: after_s + 30, attempt: '2' })
        }
        for (let day = 1; day < 30; day += 3)
          await made(service, '/v1/checkpoints', api_key, {
            ...{ title: `Day ${day}?`, prompt: 'Yes or no.', callback_url: null },
            ...{ timeout_seconds: day * day_s + 60, timeout_action: 'auto_reject' },
          })

        // Citus takes longer over one of thirty days than a connection is kept here.
        const spans = is_distributed
          ? Array<number>(6)
              .fill(5 * day_s)
              .concat(60)
          : [30 * day_s + 60]
        const answers: Answer[] = []
        for (const seconds of spans) answers.push(await advance(service, admin_key, seconds))
        expect(answers.map(({ body }) => body.done)).toEqual(spans.map(() => true))
        const count = (type: string) => answers.reduce((sum, { body }) => sum + (body.counts[type] ?? 0), 0)
        expect([count('schedule.fired'), count('checkpoint.rejected')]).toEqual([120, 10])
        expect(count('schedule.attempted')).toBe(150)
        const times = answers.flatMap(({ body }) => body.events.map((event: { at: string }) => event.at))
        expect(times).toEqual(times.toSorted())
        expect(receiver.requests.map(({ headers }) => headers['x-waystation-attempt'])).toEqual(
          due.map(({ attempt }) => attempt),
        )
      })
    })
  })

  test('does not stop where nothing is seen to happen: keys expire by the time alone, and are swept at the end', async () => {
    await withService(await databases.newUrl(), async (service) => {
      const { admin_key, api_key } = await service.signUp('pro')
      const events = { key: admin_key, body: { events: true } }
      await service.ask('PUT', '/v1/namespaces/state', events)
      for (let n = 1; n <= 5; n++) {
        await made(service, `/v1/kv/quiet/${n}`, api_key, { value: n, ttl_seconds: 60 * n })
        const counter = { key: `counter-${n}`, limit: 5, windowSeconds: 61 * n }
        expect(
          (await service.ask('POST', '/api/rate-limit/check', { key: api_key, body: counter })).status,
        ).toBe(200)
      }
      for (const n of [2, 4])
        await made(service, `/v1/kv/state/${n}`, api_key, { value: n, ttl_seconds: 600 * n })
      let stops = 0
      service.app.db.onStatement((name) => {
        if (name === 'clock.move') stops += 1
      })
      const { body } = await advance(service, admin_key, hour_s)
      service.app.db.onStatement(null)
      expect([body.done, stops]).toEqual([true, 3])
      expect(shown(body.events)).toEqual([`${at(1_200)} kv.expired`, `${at(2_400)} kv.expired`])
      for (const key of ['quiet/1', 'quiet/5', 'state/4'])
        expect((await service.ask('GET', `/v1/kv/${key}`, { key: api_key })).status).toBe(404)
      const left = unnamedAcrossTenants<{ n: number }>(
        'test.keys',
        'select count(*) as n from kv_entries where counted = 1',
      )
      expect(await service.app.db.one(left, {})).toEqual({ n: 0 })
    })
  })

  if (databases.engine === 'sqlite')
    test('shows of an attempt whose process was killed that it began when it did', async () => {
      await withReceiver(async (receiver) => {
        const url = await databases.newUrl()
        await withService(url, async (service) => {
          const { admin_key, api_key } = await service.signUp()
          const id = await schedule(service, api_key, receiver.url, hour_s)
          const due_at = begin + hour_s * 1_000
          const lease = unnamedAcrossTenants(
            'test.lease',
            'update jobs set lease_until = :until, fence = 1, attempts = 1, first_attempt_at = :due_at',
          )
          await service.app.db.write((tx) => tx.run(lease, { due_at, until: due_at + 30_000 }))
          service.clock.advance((hour_s + 2) * 1_000)
          await service.app.stop()
          await service.start(url)
          expect((await advance(service, admin_key, 0)).body.done).toBe(true)
          const { body } = await service.ask('GET', `/v1/schedules/${id}/attempts`, { key: api_key })
          expect(body.items).toMatchObject([
            { attempt: 2, started_at: at(hour_s + 2), status_code: 204 },
            { attempt: 1, started_at: at(hour_s), error: 'interrupted' },
          ])
        })
      })
    })

  test('keeps its time and what is to come over a restart', async () => {
    await withReceiver(async (receiver) => {
      const url = await databases.newUrl()
      const service = new TestService({ CLOCK: 'test', ...few_connections })
      await service.start(url)
      try {
        const { admin_key, api_key } = await service.signUp()
        await schedule(service, api_key, receiver.url, 2 * day_s)
        await advance(service, admin_key, day_s)
        await service.app.stop()
        await service.start(url)
        expect(await timeOf(service, admin_key)).toBe(at(day_s))
        const { body } = await advance(service, admin_key, day_s)
        expect(shown(body.events)).toEqual([
          `${at(2 * day_s)} schedule.attempted`,
          `${at(2 * day_s)} schedule.fired`,
        ])
      } finally {
        await service.stop()
      }
    })
  })

  test('shows the checkpoint of the hour also of events that had no number yet at a restart', async () => {
    const url = await databases.newUrl()
    const environment = { TICK: 'external' } // its first number is given by the advance
    await withService(
      url,
      async (service) => {
        const { admin_key, api_key } = await service.signUp()
        await schedule(service, api_key, 'http://127.0.0.1:9/', day_s)
        await service.app.stop()
        await service.start(url)
        const { body } = await advance(service, admin_key, 2 * hour_s)
        expect(body).toMatchObject({ done: true, counts: { 'seal.checkpoint': 1 } })
      },
      environment,
    )
  })

  test('is refused on a database that was made without it, and asked for on one that was made under it', async () => {
    const [under, without] = [await databases.newUrl(), await databases.newUrl()]
    await withService(under, async () => {})
    await withService(without, async () => {}, { CLOCK: 'system' })
    await expect(withService(under, async () => {}, { CLOCK: 'system' })).rejects.toThrow(
      `CLOCK: ${made_message}`,
    )
    await expect(withService(without, async () => {})).rejects.toThrow(`CLOCK: ${not_made_message}`)
  })

  test('goes with a backup: a restored copy starts with CLOCK=test alone, at the same time', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'waystation-clock-'))
    const secrets = { SECRET_KEY: 'the secret key of the clock tests' }
    try {
      const url = await databases.newUrl()
      const file = join(folder, 'backup.db')
      const operator = new Operator({ DATABASE_URL: url, DATA_DIR: join(folder, 'data'), ...secrets })
      const { admin_key } = await withService(
        url,
        async (service) => {
          const tenant = await service.signUp()
          await advance(service, tenant.admin_key, day_s)
          if (!is_distributed) await operator.json('backup', file)
          return tenant
        },
        secrets,
      )
      if (is_distributed) {
        expect(await operator.refusal('backup', file)).toMatch(/Citus has no one state of several servers/)
        return
      }
      const restored = await databases.newUrl()
      await operator.with({ DATABASE_URL: restored }).json('restore', file)
      await expect(withService(restored, async () => {}, { ...secrets, CLOCK: 'system' })).rejects.toThrow(
        made_message,
      )
      await withService(
        restored,
        async (service) => {
          expect(await timeOf(service, admin_key)).toBe(at(day_s))
          const refused = await advance(service, admin_key, 1)
          expect([refused.status, refused.body.error.code]).toEqual([503, 'QUARANTINED'])
        },
        secrets,
      )
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('is shown by the console, which takes its time', async () => {
    for (const [CLOCK, shows] of [
      ['test', true],
      ['system', false],
    ] as const) {
      await withService(
        await databases.newUrl(),
        async (service) => {
          const { text } = await service.ask('GET', '/console')
          expect(text.includes('<meta name="test-clock" content="">')).toBe(shows)
        },
        { CLOCK },
      )
    }
  })

  test('is an unknown path to a service with the real clock, whatever the key', async () => {
    await withService(
      await databases.newUrl(),
      async (service) => {
        const { admin_key } = await service.signUp()
        for (const key of [admin_key, undefined]) {
          const asked = [
            await service.ask('GET', '/v1/clock', key === undefined ? {} : { key }),
            await service.ask('POST', '/v1/clock/advance', { ...(key ? { key } : {}), body: { seconds: 1 } }),
            await service.ask('GET', '/v1/nothing', key === undefined ? {} : { key }),
          ]
          expect(asked.map(({ status, body }) => `${status} ${body.error.code}`)).toEqual(
            Array(3).fill('404 ROUTE_NOT_FOUND'),
          )
        }
      },
      { CLOCK: 'system' },
    )
  })

  test('a second advance while one is under way answers 409 CLOCK_ADVANCING, and moves nothing', async () => {
    await withReceiver(async (receiver) => {
      await withService(await databases.newUrl(), async (service) => {
        const { admin_key, api_key } = await service.signUp()
        const held = Promise.withResolvers<void>()
        receiver.answer = async () => {
          await held.promise
          return { status: 204 }
        }
        await schedule(service, api_key, receiver.url, hour_s)
        const first = advance(service, admin_key, day_s)
        await receiver.received(1)
        expect(await timeOf(service, admin_key)).toBe(at(hour_s)) // it stands still
        const second = await advance(service, admin_key, 1)
        expect([second.status, second.body.error.code]).toEqual([409, 'CLOCK_ADVANCING'])
        held.resolve()
        expect((await first).body).toMatchObject({ now: at(day_s), advanced_seconds: day_s, done: true })
      })
    })
  })
})

test('what a process was at when it died is done by the next one, though no time passes for its lease to end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-clock-'))
  const url = `sqlite:${join(folder, 'test.db')}`
  try {
    await withReceiver(async (receiver) => {
      const environment = { SECRET_KEY: 'the key of both processes' }
      const keys = await withService(
        url,
        async (service) => {
          const signed_up = await service.signUp()
          await schedule(service, signed_up.api_key, receiver.url, hour_s)
          await advance(service, signed_up.admin_key, hour_s - 1)
          await service.app.db.write((tx) =>
            tx.run(
              unnamedAcrossTenants(
                'test.lease',
                'update jobs set lease_until = :until, attempts = 1, fence = 1',
              ),
              {
                until: begin + (hour_s + 30) * 1_000,
              },
            ),
          )
          return signed_up
        },
        environment,
      )
      await withService(
        url,
        async (service) => {
          const { body } = await advance(service, keys.admin_key, day_s)
          expect([body.done, body.counts['schedule.fired'], receiver.requests.length]).toEqual([true, 1, 1])
        },
        environment,
      )
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

onPostgres('Nodes of one test clock', () => {
  test('a node that dies while it moves the time keeps no other from moving it', async () => {
    const url = await newPostgresDatabase()
    const clock = new TestClock()
    const open = async () => {
      const db = await openDb(url, { clock, movable: true, exclusive: false, onFatal() {} })
      const time = new TestTime(db)
      return { db, time }
    }
    const [one, other] = [await open(), await open()]
    try {
      await migrate(one.db, migrations)
      await requireClock(one.db, true, true)
      await one.time.start()
      await other.time.start()
      await one.time.begin()
      await one.time.moveTo(begin + day_s * 1_000)
      await expect(other.time.begin()).rejects.toMatchObject({ code: 'CLOCK_ADVANCING' })

      clock.advance(41_000) // in real time
      expect(await other.time.begin()).toBe(begin + (day_s + 41) * 1_000)
      await expect(one.time.moveTo(begin + 2 * day_s * 1_000)).rejects.toMatchObject({
        code: 'CLOCK_ADVANCING',
      })
      await other.time.end()
      expect(other.time.now).toBe(begin + (day_s + 41) * 1_000)
    } finally {
      await one.db.close()
      await other.db.close()
      await dropPostgresDatabase(url)
    }
  })

  test('agree on the time at once, and the one that moves it does all that falls due', async () => {
    await withReceiver(async (receiver) => {
      const url = await newPostgresDatabase()
      try {
        await withService(url, async (one) => {
          const secret_key = one.app.secret_key.value
          await withService(
            url,
            async (other) => {
              const { admin_key, api_key } = await one.signUp()
              for (let day = 1; day <= 5; day++) await schedule(other, api_key, receiver.url, day * day_s)
              for (let day = 1; day <= 5; day++) {
                const mover = day % 2 === 0 ? one : other
                expect((await advance(mover, admin_key, day_s)).body).toMatchObject({
                  now: at(day * day_s),
                  done: true,
                })
                expect(await timeOf(day % 2 === 0 ? other : one, admin_key)).toBe(at(day * day_s))
                expect(receiver.requests).toHaveLength(day)
              }
            },
            { SECRET_KEY: secret_key },
          )
        })
      } finally {
        await dropPostgresDatabase(url)
      }
    })
  })
})
