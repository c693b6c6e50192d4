import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type MailServer, startMailServer } from '../../test/support/mail-server.ts'
import { until } from '../../test/support/patience.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { happen, shown, subscribe, subscribed, tick, tickUntil } from '../../test/support/subscriptions.ts'
import { day_ms, hour_ms, minute_ms, second_ms } from '../base/clock.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { lease_ms, stale_mail_ms } from '../jobs/job.ts'
import { mails_hour_max } from './address-store.ts'
import { attempt_offsets_ms, isAddress } from './subscription.ts'

const gapBefore = (n: number) => attempt_offsets_ms[n]! - (attempt_offsets_ms[n - 1] ?? 0)

const server: MailServer = await startMailServer()
afterAll(() => server.stop())
const environment = { SMTP_URL: server.url, MAIL_FROM: 'Waystation <waystation@example.com>' }

test.each([
  ['a@example.com', true],
  ["o'neill+x@sub.example.co", true],
  ['a@localhost', false],
  ['A <a@example.com>', false],
  ['a@example.com, b@example.com', false],
  ['a@example.com\r\nBcc: b@example.com', false],
  [`${'x'.repeat(255)}@example.com`, false],
])('%j is an address: %p', (text, is) => expect(isAddress(text)).toBe(is))

forEachRacedService(
  'Emails',
  (service) => {
    let tenant: TestTenant
    beforeAll(() => {
      server.answer = () => '250 2.1.5 ok'
    })
    beforeEach(async () => {
      server.mails.length = 0
      tenant = await service.signUp()
    })

    const to = () => `p-${tenant.name}@example.com`
    const linkIn = (text: string, name: 'confirm' | 'unsubscribe') =>
      new RegExp(`http://[^ ]+(/mail/${name}/[^\\s>]+)`).exec(text)![1]!
    const press = (path: string) => service.ask('POST', path)

    /** A subscription whose address has confirmed. */
    async function confirmed(): Promise<string> {
      const id = await subscribed(service, tenant, { to: to() })
      await tickUntil(service, () => server.mails.length === 1)
      expect((await press(linkIn(server.mails[0]!.text, 'confirm'))).status).toBe(200)
      return id
    }

    /** A subscription whose email the server has been asked to take an email, which it answers once `go` is called. */
    async function mailUnderWay(
      answer = '250 ok',
    ): Promise<{ id: string; ticked: Promise<void>; go: () => void }> {
      const { promise: taken, resolve: go } = Promise.withResolvers<void>()
      const reached = Promise.withResolvers<void>()
      server.answer = async () => {
        reached.resolve()
        await taken
        return answer
      }
      const id = await subscribed(service, tenant, { to: to() })
      const ticked = tick(service)
      await reached.promise
      return { id, ticked, go }
    }

    test('an address gets one email that asks, and nothing else before its holder has pressed the button', async () => {
      const made = await subscribe(service, tenant, { to: to() })
      expect(made.body).toMatchObject({
        ...{ status: 'unconfirmed', format: 'mail', url: null, to: 'p…@example.com' },
      })
      await happen(service, tenant, 3)
      await tickUntil(service, () => server.mails.length > 0)
      const second = await subscribe(service, tenant, { to: to() })
      expect(second.body.status).toBe('unconfirmed')
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
      const [mail] = server.mails
      expect([mail!.from, mail!.to]).toEqual(['waystation@example.com', to()])
      expect(mail!.text).toContain(`Subject: Confirm emails from ${tenant.name}`)
      expect(mail!.text).toContain(`${service.url}/mail/confirm/`)
    })

    test('a GET of the links changes nothing, because scanners open them; a POST confirms, and emails begin then', async () => {
      const id = await subscribed(service, tenant, { to: to() })
      await happen(service, tenant, 2)
      await tickUntil(service, () => server.mails.length === 1)
      const link = linkIn(server.mails[0]!.text, 'confirm')
      for (const path of [link, linkIn(server.mails[0]!.text, 'unsubscribe')]) {
        const page = await service.ask('GET', path)
        expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
        expect(page.text).toContain('<form method="post"><button>')
      }
      expect((await shown(service, tenant, id)).status).toBe('unconfirmed')
      expect((await press(link)).text).toContain('Confirmed.')
      expect((await shown(service, tenant, id)).status).toBe('active')
      const confirmed = await service.ask('GET', '/v1/events?type=subscription.confirmed', {
        key: tenant.admin_key,
      })
      expect(confirmed.body.items.at(-1)).toMatchObject({
        type: 'subscription.confirmed',
        subject: { kind: 'subscription', id },
      })
      await happen(service, tenant, 1, { workflow_id: 'deploy' })
      await tickUntil(service, () => server.mails.length === 2)
      const { text } = server.mails[1]!
      expect(text).toContain('Subject: Subscription updated')
      expect(text).toContain('- subscription sub_0')
      expect(text).toContain('- workflow deploy')
      expect(text).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
      expect(linkIn(text, 'unsubscribe')).toBe(link.replace('confirm', 'unsubscribe'))
    })

    test('neither PATCH nor replay of one that is unconfirmed asks again, nor does another way to write the address', async () => {
      const id = await subscribed(service, tenant, { to: to() })
      await tickUntil(service, () => server.mails.length === 1)
      const { admin_key: key } = tenant
      const path = `/v1/subscriptions/${id}`
      for (const name of ['one', 'two']) {
        expect((await service.ask('PATCH', path, { key, body: { name } })).status).toBe(200)
        expect((await service.ask('POST', `${path}/replay`, { key, body: { after: 0 } })).status).toBe(200)
        expect(await shown(service, tenant, id)).toMatchObject({
          ...{ name, status: 'unconfirmed', next_attempt_at: null },
        })
        await tick(service)
      }
      const again = await subscribe(service, tenant, {
        to: to().toUpperCase().replace('@EXAMPLE', '@Example'),
      })
      expect([again.status, again.body.status]).toEqual([201, 'unconfirmed'])
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
    })

    test('a change while the email that asks is under way sends no second one', async () => {
      const { id, ticked, go } = await mailUnderWay()
      const { admin_key: key } = tenant
      const path = `/v1/subscriptions/${id}`
      await service.ask('PATCH', path, { key, body: { name: 'other' } })
      await service.ask('POST', `${path}/replay`, { key, body: { after: 0 } })
      const others = Promise.all([tick(service), tick(service)])
      go()
      await Promise.all([ticked, others])
      server.answer = () => '250 2.1.5 ok'
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
    })

    test('the email that asks is tried again when it was refused', async () => {
      const seen: string[] = []
      server.answer = (to) => (seen.push(to) === 1 ? '451 4.3.0 later' : '250 ok')
      const id = await subscribed(service, tenant, { to: to() })
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
      const refused = service.logged.filter(
        ({ message }) => message === 'the SMTP server did not accept an email',
      )
      expect(refused.map(({ fields }) => fields.reply)).toContain('451 4.3.0')
      service.clock.advance(5 * second_ms)
      await tickUntil(service, () => server.mails.length === 1)
      server.answer = () => '250 2.1.5 ok'
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
    })

    test('an email that is answered by something else than a reply of SMTP is tried again like others', async () => {
      const id = await confirmed()
      server.answer = () => `${'9'.repeat(30)} no`
      await happen(service, tenant, 1)
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
      expect(await shown(service, tenant, id)).toMatchObject({
        last_error: 'refused',
        last_status_code: null,
      })
      server.answer = () => '250 2.1.5 ok'
      service.clock.advance(5 * second_ms)
      await tickUntil(service, () => server.mails.length === 2)
    })

    test('an address whose email was refused is asked by the next subscription, once', async () => {
      server.answer = () => '535 5.7.8 authentication failed'
      const id = await subscribed(service, tenant, { to: to() })
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
      server.answer = () => '250 2.1.5 ok'
      await service.ask('DELETE', `/v1/subscriptions/${id}`, { key: tenant.admin_key })
      await subscribed(service, tenant, { to: to() })
      await subscribed(service, tenant, { to: to() })
      await tickUntil(service, () => server.mails.length === 1)
      service.clock.advance(minute_ms)
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
      expect((await press(linkIn(server.mails[0]!.text, 'confirm'))).status).toBe(200)
    })

    test('another subscription that waits for the address sends the email that asks when the one that was to send it is deleted', async () => {
      server.answer = () => '451 4.3.0 later'
      const first = await subscribed(service, tenant, { to: to() })
      const [second, third] = [
        await subscribed(service, tenant, { to: to() }),
        await subscribed(service, tenant, { to: to() }),
      ]
      await tickUntil(service, async () => (await shown(service, tenant, first)).attempts === 1)
      for (let n = 0; n < 3; n++) await tick(service)
      service.clock.advance(6 * day_ms)
      server.answer = () => '250 2.1.5 ok'
      await service.ask('DELETE', `/v1/subscriptions/${first}`, { key: tenant.admin_key })
      await tickUntil(service, () => server.mails.length === 1)
      await service.ask('DELETE', `/v1/subscriptions/${second}`, { key: tenant.admin_key })
      service.clock.advance(6 * day_ms)
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
      expect((await press(linkIn(server.mails[0]!.text, 'confirm'))).status).toBe(200)
      expect((await shown(service, tenant, third)).status).toBe('active')
    })

    test('an address is asked by the next subscription when the one that asked has given up', async () => {
      server.answer = () => '535 5.7.8 authentication failed'
      const id = await subscribed(service, tenant, { to: to() })
      for (const n of attempt_offsets_ms.keys()) {
        service.clock.advance(gapBefore(n))
        await tickUntil(service, async () => (await shown(service, tenant, id)).attempts > n) // the first begins by itself
      }
      expect((await shown(service, tenant, id)).paused_reason).toBe('failing')
      server.answer = () => '250 2.1.5 ok'
      await subscribed(service, tenant, { to: to() })
      await tickUntil(service, () => server.mails.length === 1)
    })

    type UnderWay = Awaited<ReturnType<typeof mailUnderWay>>

    /** The answer to it comes beside another tick: it stays the one that asks, and its link confirms the next subscription. */
    async function expectOneMail({ ticked, go }: UnderWay, next: string): Promise<void> {
      const other = tick(service)
      go()
      await Promise.all([ticked, other])
      server.answer = () => '250 2.1.5 ok'
      service.clock.advance(hour_ms)
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
      expect((await press(linkIn(server.mails[0]!.text, 'confirm'))).status).toBe(200)
      expect((await shown(service, tenant, next)).status).toBe('active')
    }

    test('a subscription that is deleted while its email is under way is followed by no second mail', async () => {
      const under_way = await mailUnderWay()
      await service.ask('DELETE', `/v1/subscriptions/${under_way.id}`, { key: tenant.admin_key })
      const next = await subscribed(service, tenant, { to: to() })
      await expectOneMail(under_way, next)
    })

    test.each(['250 ok', '451 4.3.0 later'])(
      'one email in all asks where another takes over during the answer %s',
      async (answer) => {
        const under_way = await mailUnderWay(answer)
        const next = await subscribed(service, tenant, { to: to() })
        await service.ask('DELETE', `/v1/subscriptions/${under_way.id}`, { key: tenant.admin_key })
        await expectOneMail(under_way, next)
      },
    )

    test('an address whose email was not sent because the lease had become too old is asked later', async () => {
      const { db } = service.app
      const { write } = db
      const counted = unnamedAcrossTenants(
        'test.counted',
        'select hour from subscription_mails where tenant_id = :tenant_id',
      )
      let has_stalled = false
      /** The emails that had been sent when the stalled lease was released; the same tick may take it again. */
      let sent_under_it: number | undefined
      Object.assign(db, {
        write: async (...given: Parameters<typeof write>) => {
          if (has_stalled) sent_under_it ??= server.mails.length
          const answer: unknown = await write.apply(db, given)
          const is_counted = (await db.one(counted, { tenant_id: tenant.tenant_id })) !== null
          if (is_counted && !has_stalled) {
            has_stalled = true
            service.clock.advance(stale_mail_ms + 1)
          }
          return answer
        },
      })
      try {
        await subscribed(service, tenant, { to: to() })
        await tick(service)
      } finally {
        Object.assign(db, { write })
      }
      expect([has_stalled, sent_under_it]).toEqual([true, 0])
      // The tick has not waited for a lease that it took again: its time was over when the clock was moved. So that one may go
      // stale as well.
      await until(async () => {
        service.clock.advance(lease_ms)
        await tick(service)
        return server.mails.length > 0
      })
      expect(server.mails).toHaveLength(1)
    })

    test('a second subscription to a confirmed address sends at once', async () => {
      await confirmed()
      expect((await subscribe(service, tenant, { to: to() })).body.status).toBe('active')
    })

    test('the link that unsubscribes ends all emails of the tenant to the address, and only its holder can begin them again', async () => {
      const id = await confirmed()
      const link = linkIn(server.mails[0]!.text, 'unsubscribe')
      const one_click = await service.ask('POST', link, {
        body: 'List-Unsubscribe=One-Click',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
      expect(one_click.text).toContain('No more emails')
      await happen(service, tenant, 2)
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(1)
      expect(await shown(service, tenant, id)).toMatchObject({
        status: 'paused',
        paused_reason: 'unsubscribed',
      })
      const { admin_key: key } = tenant
      const resumed = await service.ask('PATCH', `/v1/subscriptions/${id}`, { key, body: { paused: false } })
      expect([resumed.status, resumed.body.error.code]).toEqual([409, 'INVALID_STATE'])
      expect((await subscribe(service, tenant, { to: to() })).status).toBe(400)
      await press(link.replace('unsubscribe', 'confirm'))
      expect((await shown(service, tenant, id)).status).toBe('active')
    })

    describe('What an admin has paused is paused once the holder of the address confirms', () => {
      const patch = (id: string, paused: boolean) =>
        service.ask('PATCH', `/v1/subscriptions/${id}`, { key: tenant.admin_key, body: { paused } })
      /** Presses the button of the first email, and lets something happen. */
      async function confirmAndHappen() {
        await tickUntil(service, () => server.mails.length === 1)
        expect((await press(linkIn(server.mails[0]!.text, 'confirm'))).status).toBe(200)
        await happen(service, tenant, 1)
        for (let n = 0; n < 3; n++) await tick(service)
      }
      async function expectPaused(id: string) {
        expect(await shown(service, tenant, id)).toMatchObject({
          status: 'paused',
          paused_reason: 'requested',
        })
        expect(server.mails).toHaveLength(1)
        expect((await patch(id, false)).body).toMatchObject({ status: 'active', paused_reason: null })
        await tickUntil(service, () => server.mails.length === 2)
      }

      test('when it was created so', async () => {
        const made = await subscribe(service, tenant, { to: to(), paused: true })
        expect(made.body).toMatchObject({ status: 'unconfirmed', paused_reason: 'requested' })
        await confirmAndHappen()
        await expectPaused(made.body.id)
      })

      test('when it was paused before', async () => {
        const id = await subscribed(service, tenant, { to: to() })
        const paused = await patch(id, true)
        expect(paused.status).toBe(200)
        expect(paused.body).toMatchObject({ status: 'unconfirmed', paused_reason: 'requested' })
        await confirmAndHappen()
        await expectPaused(id)
      })

      test('unless it was resumed before', async () => {
        const made = await subscribe(service, tenant, { to: to(), paused: true })
        expect((await patch(made.body.id, false)).body).toMatchObject({
          ...{ status: 'unconfirmed', paused_reason: null },
        })
        await confirmAndHappen()
        expect((await shown(service, tenant, made.body.id)).status).toBe('active')
        expect(server.mails).toHaveLength(2)
      })

      test.each(['before', 'after'])('when it was paused %s the holder unsubscribed', async (when) => {
        const id = await confirmed()
        if (when === 'before') await patch(id, true)
        await press(linkIn(server.mails[0]!.text, 'unsubscribe'))
        if (when === 'after') expect((await patch(id, true)).status).toBe(200)
        expect((await shown(service, tenant, id)).paused_reason).toBe('unsubscribed')
        await confirmAndHappen()
        await expectPaused(id)
      })
    })

    test('the link that confirms changes nothing when it is said again, as while an email is under way', async () => {
      const id = await confirmed()
      const link = linkIn(server.mails[0]!.text, 'confirm')
      const reached = Promise.withResolvers<void>()
      const { promise: taken, resolve: go } = Promise.withResolvers<void>()
      server.answer = async () => {
        reached.resolve()
        await taken
        return '250 2.1.5 ok'
      }
      await happen(service, tenant, 1)
      const ticked = tickUntil(service, () => server.mails.length > 1)
      await reached.promise
      const before = await shown(service, tenant, id)
      expect((await press(link)).status).toBe(200)
      expect(await shown(service, tenant, id)).toEqual(before)
      go()
      await ticked
      for (let n = 0; n < 3; n++) await tick(service)
      expect(server.mails).toHaveLength(2)
    })

    test('an unknown link and one whose week is over answer 404 LINK_NOT_FOUND', async () => {
      await subscribed(service, tenant, { to: to() })
      await tickUntil(service, () => server.mails.length === 1)
      const link = linkIn(server.mails[0]!.text, 'confirm')
      service.clock.advance(7 * day_ms)
      expect((await press(link)).status).toBe(404)
      const token = link.split('/').at(-1)!
      for (const text of [token, `${token}x`, 'x', `${tenant.tenant_id}.x`]) {
        const answer = await service.ask('POST', '/v1/mail/confirm', { body: { token: text } })
        expect([answer.status, answer.body.error.code]).toEqual([404, 'LINK_NOT_FOUND'])
      }
    })

    test('an email that is refused is tried again under the same Message-ID', async () => {
      const id = await confirmed()
      const seen: string[] = []
      server.answer = (to) => (seen.push(to) === 1 ? '451 4.3.0 later' : '250 ok')
      await happen(service, tenant, 1)
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
      expect(await shown(service, tenant, id)).toMatchObject({
        last_error: 'status 451',
        last_status_code: 451,
      })
      service.clock.advance(5 * second_ms)
      await tickUntil(service, () => server.mails.length === 2)
      server.answer = () => '250 2.1.5 ok'
      const event_id = (
        await service.ask('GET', `/v1/subscriptions/${id}/attempts`, { key: tenant.admin_key })
      ).body.items[0].event_id
      expect(server.mails[1]!.text).toContain(`Message-ID: <${event_id}-${id}@127.0.0.1>`)
    })

    describe('Limits', () => {
      test(`a tenant sends ${mails_hour_max} emails in an hour, and the others in the next`, async () => {
        await confirmed()
        await happen(service, tenant, mails_hour_max)
        await tickUntil(service, () => server.mails.length === mails_hour_max)
        for (let n = 0; n < 3; n++) await tick(service)
        expect(server.mails).toHaveLength(mails_hour_max)
        service.clock.advance(hour_ms)
        await tickUntil(service, () => server.mails.length === mails_hour_max + 1)
      })
    })

    test('the address and the token of its links are in no answer, log or row in clear', async () => {
      await confirmed()
      const token = linkIn(server.mails[0]!.text, 'confirm').split('/').at(-1)!
      const list = await service.ask('GET', '/v1/subscriptions', { key: tenant.admin_key })
      for (const text of [list.text, JSON.stringify(service.logged)]) {
        expect(text).not.toContain(to())
        expect(text).not.toContain(token)
      }
      const secret = token.split('.')[1]!
      const tables = [
        'subscriptions',
        'subscription_addresses',
        'subscription_attempts',
        'subscription_mails',
        'events',
        'jobs',
      ]
      for (const table of tables) {
        const rows = JSON.stringify(
          await service.app.db.all(unnamedAcrossTenants(`rows of ${table}`, `select * from ${table}`), {}),
        )
        expect([table, rows.includes(to()), rows.includes(secret)]).toEqual([table, false, false])
      }
    })
  },
  environment,
)

forEachRacedService(
  'A service that does not stand at the root of its host',
  (service) => {
    test.each(['confirm', 'unsubscribe'])('has a button in its emails that does: %s', async (name) => {
      const tenant = await service.signUp()
      server.mails.length = 0
      const id = await subscribed(service, tenant, { to: `p-${tenant.name}@example.com` })
      await tickUntil(service, () => server.mails.length === 1)
      const link = new RegExp(`https://agents.example.com/hub(/mail/${name}/[^\\s>]+)`)
      const pressed = await service.ask('POST', link.exec(server.mails[0]!.text)![1]!)
      expect([pressed.status, pressed.text.includes('role="status"')]).toEqual([200, true])
      expect((await shown(service, tenant, id)).status).toBe(name === 'confirm' ? 'active' : 'paused')
    })
  },
  { ...environment, PUBLIC_URL: 'https://agents.example.com/hub' },
)
