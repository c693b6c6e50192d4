import { afterAll, expect, test } from 'bun:test'
import { startMailServer } from '../../test/support/mail-server.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { systemClock } from '../base/clock.ts'
import type { FailureClass } from './attempt.ts'
import { Mailer } from './mail.ts'

const server = await startMailServer()
const secure = await startReceiver({ secure: true })
afterAll(() => Promise.all([server.stop(), secure.stop()]))
const settings = { smtp_url: server.url, from: 'waystation@example.com' }
const mail = { to: 'a@example.com', subject: 's', text: 't', headers: {} }

test('a server that does not answer: the mail has failed with timeout at the deadline, and the connection is closed', async () => {
  server.answer = () => new Promise<string>(() => {})
  const { ok, status, error } = await new Mailer(settings, systemClock, 50).send(mail)
  expect([ok, status, error]).toEqual([false, null, 'timeout'])
  while (server.connections() > 0) await new Promise((resolve) => setImmediate(resolve))
})

test('a mail that is taken leaves no connection behind', async () => {
  server.answer = () => '250 2.1.5 ok'
  const { ok, status, error } = await new Mailer(settings, systemClock).send(mail)
  expect([ok, status, error]).toEqual([true, 250, null])
  expect(server.mails).toHaveLength(1)
  while (server.connections() > 0) await new Promise((resolve) => setImmediate(resolve))
})

test.each<[name: string, expected: FailureClass, smtp_url: string]>([
  ['whose certificate nobody trusts', 'tls', secure.url.replace('https', 'smtps')],
  ['without TLS where SMTP_URL asks for it', 'tls', server.url.replace('smtp', 'smtps')],
  ['that is not there', 'refused', 'smtp://127.0.0.1:1'],
])('a server %s: the mail has failed with %s', async (_, expected, smtp_url) => {
  const { ok, status, error } = await new Mailer({ ...settings, smtp_url }, systemClock).send(mail)
  expect([ok, status, error]).toEqual([false, null, expected])
})
