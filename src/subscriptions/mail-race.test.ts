// The holder of an address presses both links at once.

import { afterAll, expect, test } from 'bun:test'
import { beforeCommitOf } from '../../test/support/held.ts'
import { startMailServer } from '../../test/support/mail-server.ts'
import { forEachRacedService } from '../../test/support/service.ts'
import { shown, subscribe, subscribed, tickUntil } from '../../test/support/subscriptions.ts'

const server = await startMailServer()
afterAll(() => server.stop())

forEachRacedService(
  'An address whose holder says two things at once',
  (service) => {
    const press = (link: string) => service.ask('POST', link)

    /** A subscription to a new address, and the links of the email that asked it. */
    async function asked() {
      const tenant = await service.signUp()
      server.mails.length = 0
      const to = `p-${tenant.name}@example.com`
      const id = await subscribed(service, tenant, { to })
      await tickUntil(service, () => server.mails.length === 1)
      const confirm = /http:\/\/[^ ]+(\/mail\/confirm\/[^\s>]+)/.exec(server.mails[0]!.text)![1]!
      return { tenant, to, id, confirm, unsubscribe: confirm.replace('/confirm/', '/unsubscribe/') }
    }

    test('gets emails when the link that confirms came last', async () => {
      const { tenant, to, id, confirm, unsubscribe } = await asked()
      expect((await press(confirm)).status).toBe(200)
      await service.ask('GET', '/v1/events', { key: tenant.admin_key }) // so that all events have numbers
      const answers = await beforeCommitOf(
        service.app.db,
        () => press(unsubscribe),
        () => press(confirm),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      expect((await shown(service, tenant, id)).status).toBe('active')
      expect((await subscribe(service, tenant, { to })).body.status).toBe('active')
    })

    test('gets no emails when the link that unsubscribes came last', async () => {
      const { tenant, to, id, confirm, unsubscribe } = await asked()
      expect((await press(unsubscribe)).status).toBe(200)
      await service.ask('GET', '/v1/events', { key: tenant.admin_key })
      const answers = await beforeCommitOf(
        service.app.db,
        () => press(confirm),
        () => press(unsubscribe),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      expect(await shown(service, tenant, id)).toMatchObject({
        ...{ status: 'paused', paused_reason: 'unsubscribed' },
      })
      expect((await subscribe(service, tenant, { to })).status).toBe(400)
    })
  },
  { SMTP_URL: server.url, MAIL_FROM: 'Waystation <waystation@example.com>' },
  { background: false },
)
