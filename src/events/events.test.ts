import { beforeEach, describe, expect, test } from 'bun:test'
import { follow, followOften, happen } from '../../test/support/event-streams.ts'
import { scrape } from '../../test/support/metrics.ts'
import { inTime, until } from '../../test/support/patience.ts'
import { type Answer, forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { waiting_of_tenant_max } from '../base/notifier.ts'
import { wait_seconds_max } from './shapes.ts'
import { any_max } from './wait-routes.ts'

interface Item {
  seq: number
  subject: { kind: string; id: string }
}

const ids = ({ body }: Answer): string[] => body.items.map(({ subject }: Item) => subject.id)

forEachRacedService('Events', (service) => {
  let tenant: TestTenant
  let after: number

  const get = (query: string, key = tenant.admin_key) => service.ask('GET', `/v1/events?${query}`, { key })
  const wait = (body: object, key = tenant.api_key) => service.ask('POST', '/v1/wait', { key, body })
  const position = async () => (await wait({ any: [{}] })).body.after as number
  const thing = (n: number) => ({ subject_id: `s${n}` })

  beforeEach(async () => {
    tenant = await service.signUp()
    after = await position()
  })

  describe('GET /v1/events', () => {
    test('answers events oldest first, and where to go on', async () => {
      await happen(service, tenant.tenant_id, thing(1), thing(2), thing(3))
      const first = await get(`after=${after}&limit=2`)
      expect([first.status, ids(first), first.body.next_after]).toEqual([200, ['s1', 's2'], after + 2])
      const second = await get(`after=${after + 2}&limit=2`)
      expect([ids(second), second.body.next_after]).toEqual([['s3'], after + 3])
      const end = await get(`after=${after + 3}`)
      expect(end.body).toEqual({ items: [], next_after: after + 3 })
    })

    test('shows an event with every member, and data as an object', async () => {
      await happen(service, tenant.tenant_id, { ...thing(1), workflow_id: 'night' })
      const { body } = await get(`after=${after}`)
      expect(body.items).toEqual([
        {
          id: expect.stringMatching(/^evt_[0-9a-hjkmnp-tv-z]{26}$/),
          seq: after + 1,
          type: 'audit.appended',
          subject: { kind: 'audit_entry', id: 's1' },
          workflow_id: 'night',
          workflow_seq: 1,
          agent_id: null,
          actor: 'service',
          request_id: null,
          at: '2026-01-01T00:00:00.000Z',
          data: { n: 0 },
        },
      ])
    })

    test('begins at the oldest event without after', async () => {
      await happen(service, tenant.tenant_id, thing(1))
      const { body } = await get('limit=200')
      expect(body.items.map(({ seq }: Item) => seq)).toEqual(
        Array.from({ length: after + 1 }, (_, i) => i + 1),
      )
    })

    test('is narrowed by workflow, subject, type and all types of a noun, each and together', async () => {
      await happen(
        service,
        tenant.tenant_id,
        ...[thing(1), { ...thing(2), workflow_id: 'w' }, { ...thing(3), type: 'dlq.created' as const }],
        ...[{ ...thing(4), type: 'dlq.created' as const, workflow_id: 'w' }, thing(1)],
      )
      const found = async (query: string) => ids(await get(`after=${after}&${query}`))
      expect(await found('workflow_id=w')).toEqual(['s2', 's4'])
      expect(await found('subject=s1')).toEqual(['s1', 's1'])
      expect(await found('subject=audit_entry:s1')).toEqual(['s1', 's1'])
      expect(await found('subject=dlq_item:s1')).toEqual([])
      expect(await found('type=dlq.created')).toEqual(['s3', 's4'])
      expect(await found('type=dlq.*')).toEqual(['s3', 's4'])
      expect(await found('type=dlq.*&workflow_id=w')).toEqual(['s4'])
      expect(await found('type=audit.appended&workflow_id=w')).toEqual(['s2'])
      expect(await found('subject=s1&workflow_id=w')).toEqual([])
    })

    test('looks at 500 events at most: a page is then empty, and says where to go on', async () => {
      const others = Array.from({ length: 520 }, (_, n) => thing(n))
      await happen(service, tenant.tenant_id, ...others, { ...thing(1), type: 'dlq.created' })
      const short = await get(`after=${after}&type=dlq.*`)
      expect(short.body).toEqual({ items: [], next_after: after + 500 })
      expect(ids(await get(`after=${after + 500}&type=dlq.*`))).toEqual(['s1'])
    })

    test('waits for the first event while there is none, and not when there is one', async () => {
      const held = get(`after=${after}&type=dlq.*&wait=${wait_seconds_max}`)
      await happen(service, tenant.tenant_id, thing(1))
      await happen(service, tenant.tenant_id, { ...thing(2), type: 'dlq.created' })
      const answer = await inTime(held)
      expect([ids(answer), answer.body.next_after]).toEqual([['s2'], after + 2])
      expect(ids(await get(`after=${after}&type=dlq.*&wait=${wait_seconds_max}`))).toEqual(['s2'])
    })

    test('answers an empty page when the time is over, and goes on behind what it has looked at', async () => {
      const held = get(`after=${after}&type=dlq.*&wait=1`)
      await happen(service, tenant.tenant_id, thing(1))
      const { body } = await inTime(held)
      expect(body.items).toEqual([])
      expect([after, after + 1]).toContain(body.next_after)
    })

    test('takes a wait of 0 to 55 seconds, a limit of 1 and more, and types that there are', async () => {
      const refused = [
        'wait=-1',
        `wait=${wait_seconds_max + 1}`,
        'limit=0',
        'after=-1',
        'type=no.such',
        'subject=',
      ]
      for (const query of refused) expect([query, (await get(query)).status]).toEqual([query, 400])
      expect((await get('limit=201')).status).toBe(200)
      await happen(service, tenant.tenant_id, thing(1))
      expect(ids(await get(`after=${after}&wait=${wait_seconds_max}`))).toEqual(['s1'])
    })
  })

  describe('POST /v1/wait', () => {
    test('answers the first event behind after that one of the alternatives names', async () => {
      await happen(service, tenant.tenant_id, thing(1), { ...thing(2), workflow_id: 'w' }, thing(3))
      const answer = await wait({ any: [{ subject: 's3' }, { workflow_id: 'w', type: 'audit.*' }], after })
      expect([answer.body.event.subject.id, answer.body.after]).toEqual(['s2', after + 2])
      const next = await wait({ any: [{ subject: 's3' }, { workflow_id: 'w' }], after: answer.body.after })
      expect([next.body.event.subject.id, next.body.after]).toEqual(['s3', after + 3])
    })

    test('begins now without after: what was committed before is not waited for', async () => {
      await happen(service, tenant.tenant_id, thing(1))
      const { body } = await wait({ any: [{ subject: 's1' }] })
      expect(body).toEqual({ event: null, after: after + 1 })
    })

    test('is answered by the event that comes, whichever it is, and by no other', async () => {
      const held = wait({ any: [{ subject: 's2' }, { type: 'dlq.created' }], after, wait_seconds: 50 })
      await happen(service, tenant.tenant_id, thing(1))
      await happen(service, tenant.tenant_id, { ...thing(3), type: 'dlq.created' })
      const { body } = await inTime(held)
      expect([body.event.subject.id, body.after]).toEqual(['s3', after + 2])
    })

    test('answers none when the time is over, with the after to go on with', async () => {
      const { body } = await inTime(wait({ any: [{ type: 'dlq.created' }], wait_seconds: 1 }))
      expect(body).toEqual({ event: null, after })
    })

    test('finds an event that lies far behind, whatever came since', async () => {
      const others = Array.from({ length: 1_200 }, (_, n) => thing(n))
      await happen(service, tenant.tenant_id, ...others, { ...thing(7), type: 'dlq.created' })
      const { body } = await inTime(
        wait({ any: [{ type: 'dlq.*' }, { subject: 'none' }], after, wait_seconds: 50 }),
      )
      expect([body.event.type, body.after]).toEqual(['dlq.created', after + 1_201])
    })

    test('takes a dozen statements at most, however many events it passes that another agent alone may see', async () => {
      const other = await service.addAgent(tenant.admin_key, 'other')
      const start = await position()
      const secret = { ...thing(1), private_to: tenant.agent_id }
      await happen(service, tenant.tenant_id, ...Array(520).fill(secret))
      await position() // gives them their numbers
      let looks = 0
      service.app.db.onStatement((name) => {
        if (name.startsWith('journal.page')) looks += 1
      })
      const { body } = await wait({ any: [{ type: 'audit.appended' }], after: start }, other.api_key)
      service.app.db.onStatement(null)
      expect(body).toEqual({ event: null, after: start + 500 })
      expect(looks).toBeLessThanOrEqual(12)
    })

    test('takes 1 to 16 alternatives, 0 to 55 seconds, members that there are, and null for one that is absent', async () => {
      const one = { subject: 'x' }
      const bodies: [body: object, status: number][] = [
        [{ any: [] }, 400],
        [{ any: Array(any_max).fill(one) }, 200],
        [{ any: Array(any_max + 1).fill(one) }, 400],
        [{ any: [{ subjects: 'x' }] }, 400],
        [{ any: [{ type: 'no.such' }] }, 400],
        [{ any: [{ type: null, subject: 'x', workflow_id: null }] }, 200],
        [{ any: [one], wait_seconds: -1 }, 400],
        [{ any: [one], wait_seconds: wait_seconds_max + 1 }, 400],
        [{ any: [one], after: -1 }, 400],
        [{}, 400],
      ]
      for (const [body, status] of bodies) expect([body, (await wait(body)).status]).toEqual([body, status])
    })
  })

  describe('As a stream', () => {
    test('begins now: its first block says where, then each event comes with seq, type and itself', async () => {
      await happen(service, tenant.tenant_id, thing(1))
      const stream = await follow(service, tenant.admin_key)
      expect(stream.response.headers.get('content-type')).toBe('text/event-stream')
      expect(stream.response.headers.get('cache-control')).toBe('no-store')
      expect(stream.response.headers.get('x-request-id')).toMatch(/^req_/)
      expect(await stream.next()).toEqual({ retry: '1000', id: String(after + 1) })
      await happen(service, tenant.tenant_id, { ...thing(2), workflow_id: 'w' })
      const { id, event, data } = (await stream.next())!
      const { body } = await get(`after=${after + 1}`)
      expect([id, event, JSON.parse(data!)]).toEqual([String(after + 2), 'audit.appended', body.items[0]])
      stream.close()
    })

    test('begins behind Last-Event-ID, which wins over after, and takes filters', async () => {
      await happen(service, tenant.tenant_id, ...[1, 2, 3, 4].map(thing))
      const by_after = await follow(service, tenant.api_key, `/v1/events?after=${after + 2}`)
      expect(await by_after.subjects(2)).toEqual(['s3', 's4'])
      by_after.close()
      const headers = { 'last-event-id': String(after + 1) }
      const by_header = await follow(service, tenant.api_key, `/v1/events?after=${after + 3}`, headers)
      expect(await by_header.subjects(3)).toEqual(['s2', 's3', 's4'])
      by_header.close()
      const filtered = await follow(service, tenant.api_key, `/v1/events?after=${after}&subject=s3`)
      expect(await filtered.subjects(1)).toEqual(['s3'])
      filtered.close()
    })

    test('sends every event once and in order, however far behind it begins', async () => {
      const many = Array.from({ length: 700 }, (_, n) => thing(n))
      await happen(service, tenant.tenant_id, ...many)
      const stream = await follow(service, tenant.api_key, `/v1/events?after=${after}`)
      await happen(service, tenant.tenant_id, thing(700), thing(701))
      expect(await stream.subjects(702)).toEqual(Array.from({ length: 702 }, (_, n) => `s${n}`))
      stream.close()
    })

    test('is refused before it begins with the envelope of every error', async () => {
      const headers = { accept: 'text/event-stream' }
      const bad = await service.ask('GET', '/v1/events', {
        key: tenant.api_key,
        headers: { ...headers, 'last-event-id': 'evt_1' },
      })
      expect([bad.status, bad.body.error.code, bad.body.error.details.issues[0].path]).toEqual([
        ...[400, 'VALIDATION_FAILED', 'header.Last-Event-ID'],
      ])
      const nobody = await service.ask('GET', '/v1/events', { headers })
      expect([nobody.status, nobody.body.error.code]).toEqual([401, 'UNAUTHORIZED'])
    })

    test('is a page for a caller that also takes JSON', async () => {
      const headers = { accept: 'application/json, text/event-stream' }
      const { body } = await service.ask('GET', `/v1/events?after=${after}`, { key: tenant.api_key, headers })
      expect(body).toEqual({ items: [], next_after: after })
    })

    test('ends when its key is rotated, when its agent is deleted, and when its tenant is', async () => {
      const streamOf = async (key: string) => {
        const stream = await follow(service, key)
        expect((await stream.next())!.retry).toBe('1000')
        return stream
      }
      const ends = async (stream: Awaited<ReturnType<typeof streamOf>>) => {
        // The change that ended the key may be an event, which the stream may still send.
        for (let block = await stream.next(); block !== null; block = await stream.next());
      }
      const { admin_key: key, agent_id, tenant_id } = tenant
      const other = await service.addAgent(key, 'other')
      const [mine, theirs] = [await streamOf(tenant.api_key), await streamOf(other.api_key)]
      await service.ask('POST', `/v1/agents/${agent_id}/rotate-key`, { key, body: {} })
      await ends(mine)
      await service.ask('DELETE', `/v1/agents/${other.agent_id}`, { key })
      await ends(theirs)
      const admins = await streamOf(key)
      await service.ask('DELETE', `/v1/tenants/${tenant_id}`, { key, body: { confirm: 'DELETE ALL DATA' } })
      await ends(admins)
    })

    test(`is refused past ${waiting_of_tenant_max} requests of a tenant that wait; a page and a wait are answered at once`, async () => {
      const close = await followOften(service, tenant.api_key, waiting_of_tenant_max)
      const headers = { accept: 'text/event-stream' }
      const refused = await service.ask('GET', '/v1/events', { key: tenant.api_key, headers })
      expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
        ...[503, 'UNAVAILABLE', '1'],
      ])
      expect((await inTime(wait({ any: [{}], wait_seconds: 55 }))).body).toEqual({ event: null, after })
      expect((await inTime(get(`after=${after}&wait=55`))).body).toEqual({ items: [], next_after: after })
      close()
      await inTime(
        (async () => {
          for (;;) {
            const again = await follow(service, tenant.api_key).catch(() => null)
            if (again) return again.close()
          }
        })(),
      )
    }, 300_000)
  })

  describe('A reader that has seen more than there is, as before a restore from a backup', () => {
    test('goes on with what happens next: by pages, waits and streams', async () => {
      const ahead = after + 1_000_000
      const either = { any: [{ type: 'audit.appended' }, { subject: 's9' }], after: ahead }
      expect((await get(`after=${ahead}`)).body).toEqual({ items: [], next_after: after })
      expect((await get(`after=${ahead}&subject=s1`)).body).toEqual({ items: [], next_after: after })
      expect((await wait({ any: [{}], after: ahead })).body).toEqual({ event: null, after })
      expect((await wait(either)).body).toEqual({ event: null, after })
      const page = get(`after=${ahead}&wait=50`)
      const held = wait({ ...either, wait_seconds: 50 })
      const stream = await follow(service, tenant.api_key, '/v1/events', { 'last-event-id': String(ahead) })
      expect((await stream.next())!.id).toBe(String(after))
      let answered: Answer[] = []
      void Promise.all([page, held]).then((answers) => {
        answered = answers
      })
      // As often as it takes: when they began is not known, and what happened before is not for them.
      await until(async () => {
        await happen(service, tenant.tenant_id, thing(1))
        return answered.length > 0
      })
      const [listed, awaited] = answered
      expect(ids(listed!)).toContain('s1')
      expect(awaited!.body.event.subject.id).toBe('s1')
      expect(await stream.subjects(1)).toEqual(['s1'])
      stream.close()
    })
  })

  describe('An event of a private namespace', () => {
    test('shows to its agent and to admins alone: in pages, waits and streams', async () => {
      const other = await service.addAgent(tenant.admin_key, 'other')
      const start = await position()
      const stream = await follow(service, other.api_key)
      const held = wait({ any: [{}], after: start, wait_seconds: 50 }, other.api_key)
      const secret = { ...thing(1), private_to: tenant.agent_id, workflow_id: 'w' }
      await happen(service, tenant.tenant_id, secret)
      await happen(service, tenant.tenant_id, { ...thing(2), workflow_id: 'w' })
      expect((await inTime(held)).body.event.subject.id).toBe('s2')
      expect(await stream.subjects(1)).toEqual(['s2'])
      stream.close()
      for (const query of ['', '&workflow_id=w', '&subject=s1', '&type=audit.*']) {
        const seen = await Promise.all(
          [tenant.admin_key, tenant.api_key, other.api_key].map((key) => get(`after=${start}${query}`, key)),
        )
        const all = query === '&subject=s1' ? ['s1'] : ['s1', 's2']
        expect([query, ...seen.map(ids)]).toEqual([query, all, all, all.filter((id) => id !== 's1')])
      }
      const hidden = await wait({ any: [{ subject: 's1' }], after: start }, other.api_key)
      expect(hidden.body.event).toBeNull()
      const { body } = await wait({ any: [{ subject: 's1' }], after: start })
      expect(body.event.workflow_seq).toBeNull()
    })

    test('does not show in where a page ends, however many there are of a workflow or a thing', async () => {
      const other = await service.addAgent(tenant.admin_key, 'other')
      const start = await position()
      const secret = { ...thing(1), private_to: tenant.agent_id, workflow_id: 'w' }
      await happen(service, tenant.tenant_id, ...Array(520).fill(secret))
      for (const query of [
        'workflow_id=w',
        'workflow_id=w&type=audit.*',
        'subject=s1',
        'subject=audit_entry:s1',
      ]) {
        const { body } = await get(`after=${start}&${query}`, other.api_key)
        expect([query, body]).toEqual([query, { items: [], next_after: start }])
        const own = await get(`after=${start}&limit=200&${query}`, tenant.api_key)
        expect([query, own.body.items.length, own.body.next_after]).toEqual([query, 200, start + 200])
      }
      await happen(service, tenant.tenant_id, { ...thing(2), workflow_id: 'w' })
      const { body } = await get(`after=${start}&workflow_id=w`, other.api_key)
      expect([body.items.length, body.next_after]).toEqual([1, start + 521])
    })
  })

  describe('Events of another tenant', () => {
    test('show nowhere, and end no wait', async () => {
      const other = await service.signUp()
      const start = (await wait({ any: [{}] }, other.api_key)).body.after
      const stream = await follow(service, other.api_key)
      const held = wait({ any: [{ subject: 's1' }], after: start, wait_seconds: 50 }, other.api_key)
      await happen(service, tenant.tenant_id, thing(1))
      await happen(service, other.tenant_id, { ...thing(1), workflow_id: 'theirs' })
      expect((await inTime(held)).body.event.workflow_id).toBe('theirs')
      await stream.next()
      expect(JSON.parse((await stream.next())!.data!).workflow_id).toBe('theirs')
      stream.close()
      const { body } = await get(`after=${start}`, other.admin_key)
      expect(body.items.map((item: { workflow_id: string }) => item.workflow_id)).toEqual(['theirs'])
    })
  })
})

const with_metrics = { METRICS: '127.0.0.1:0' }

forEachRacedService(
  'A node that stops',
  (service) => {
    service.over_http = true
    test('ends streams, and answers what waits, with where to go on', async () => {
      const tenant = await service.signUp()
      const stream = await follow(service, tenant.api_key)
      await stream.next()
      const body = { any: [{ subject: 'none' }], wait_seconds: 55 }
      const held = service.ask('POST', '/v1/wait', { key: tenant.api_key, body })
      const page = service.ask('GET', '/v1/events?subject=none&wait=55', { key: tenant.api_key })
      await until(async () => (await scrape(service)).sum('waystation_waiters') === 3)
      await inTime(service.stop())
      expect(await stream.next()).toBeNull()
      expect((await held).body.event).toBeNull()
      expect((await page).body.items).toEqual([])
    })
  },
  with_metrics,
)
