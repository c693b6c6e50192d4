import { afterAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startMailServer } from '../../test/support/mail-server.ts'
import { until } from '../../test/support/patience.ts'
import { certificate_pem, startReceiver } from '../../test/support/receiver.ts'
import { systemClock } from '../base/clock.ts'
import type { FailureClass } from './attempt.ts'
import { Mailer } from './mail.ts'

const server = await startMailServer()
const starttls = await startMailServer('starttls')
const implicit = await startMailServer('implicit')
const secure = await startReceiver({ secure: true })
afterAll(() => Promise.all([server, starttls, implicit, secure].map((each) => each.stop())))
beforeEach(async () => {
  for (const { connections, mails, server_names } of [server, starttls, implicit]) {
    await until(() => connections() === 0) // one that was cut off may still be named
    mails.length = server_names.length = 0
  }
})
const settings = { smtp_url: server.url, from: 'waystation@example.com' }
const mail = { to: 'a@example.com', subject: 's', text: 't', headers: {} }

test('a server that does not answer: the mail has failed with timeout at the deadline, and the connection is closed', async () => {
  server.answer = () => new Promise<string>(() => {})
  const { ok, status, error } = await new Mailer(settings, systemClock, 50).send(mail)
  expect([ok, status, error]).toEqual([false, null, 'timeout'])
  await until(() => server.connections() === 0)
})

test('a mail that is taken leaves no connection behind', async () => {
  server.answer = () => '250 2.1.5 ok'
  const { ok, status, error } = await new Mailer(settings, systemClock).send(mail)
  expect([ok, status, error]).toEqual([true, 250, null])
  expect(server.mails).toHaveLength(1)
  await until(() => server.connections() === 0)
})

test.each<[name: string, expected: FailureClass, smtp_url: string]>([
  ['whose certificate nobody trusts', 'tls', secure.url.replace('https', 'smtps')],
  ['without TLS where SMTP_URL asks for it', 'tls', server.url.replace('smtp', 'smtps')],
  ['that is not there', 'refused', 'smtp://127.0.0.1:1'],
])('a server %s: the mail has failed with %s', async (_, expected, smtp_url) => {
  const { ok, status, error } = await new Mailer({ ...settings, smtp_url }, systemClock).send(mail)
  expect([ok, status, error]).toEqual([false, null, expected])
})

const untrusted = 'tls.rejectUnauthorized=false'
const servername = 'tls.servername=mail.example.com'

test.each([
  ['encrypted where the server offers STARTTLS', starttls, untrusted, true, ''],
  ['encrypted with requireTLS=true', starttls, `requireTLS=true&${untrusted}`, true, ''],
  [
    'encrypted with requireTLS=true beside ignoreTLS=true',
    starttls,
    `requireTLS=true&ignoreTLS=true&${untrusted}`,
    true,
    '',
  ],
  ['encrypted with smtps://', implicit, untrusted, true, ''],
  ['in clear where the server offers no STARTTLS', server, '', false, null],
  ['in clear with requireTLS=false', server, 'requireTLS=false', false, null],
  ['in clear with ignoreTLS=true', starttls, 'ignoreTLS=true', false, null],
  [
    'after STARTTLS in the name of tls.servername',
    starttls,
    `${servername}&${untrusted}`,
    true,
    'mail.example.com',
  ],
  [
    'with smtps:// in the name of tls.servername',
    implicit,
    `${servername}&${untrusted}`,
    true,
    'mail.example.com',
  ],
])('a mail is sent %s', async (_, { url, mails, server_names }, options, encrypted, server_name) => {
  const mailer = new Mailer({ ...settings, smtp_url: `${url}?${options}` }, systemClock)
  const { ok, status, error } = await mailer.send(mail)
  expect([ok, status, error]).toEqual([true, 250, null])
  expect(mails.map((each) => each.encrypted)).toEqual([encrypted])
  expect(server_names).toEqual(server_name === null ? [] : [server_name])
})

test.each([
  ['requireTLS=true where the server offers no STARTTLS', server, 'requireTLS=true'],
  ['requireTLS=true beside ignoreTLS=true there', server, 'requireTLS=true&ignoreTLS=true'],
  ['a certificate that is not trusted after STARTTLS', starttls, ''],
  ['a certificate that is not trusted with smtps://', implicit, ''],
  ['tls.rejectUnauthorized=true and such a certificate', starttls, 'tls.rejectUnauthorized=true'],
])('%s: the mail is not sent, and has failed with tls', async (_, { url, mails }, options) => {
  const mailer = new Mailer({ ...settings, smtp_url: `${url}?${options}` }, systemClock)
  const { ok, status, error } = await mailer.send(mail)
  expect([ok, status, error]).toEqual([false, null, 'tls'])
  expect(mails).toEqual([])
})

test('a trusted certificate has to be for the host, or for tls.servername in its place', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-mail-'))
  const authority = join(folder, 'authority.pem')
  writeFileSync(authority, certificate_pem)
  const urls = ['', '?tls.servername=receiver.test', '?tls.servername=mail.example.com'].flatMap(
    (options) => [starttls.url + options, implicit.url + options],
  )
  // Trust is read when a process begins.
  const script = `
    import { systemClock } from './src/base/clock.ts'
    import { Mailer } from './src/callbacks/mail.ts'
    for (const smtp_url of ${JSON.stringify(urls)}) {
      const mailer = new Mailer({ smtp_url, from: 'waystation@example.com' }, systemClock)
      console.log((await mailer.send(${JSON.stringify(mail)})).error)
    }`
  const child = Bun.spawn([process.execPath, '-e', script], {
    cwd: join(import.meta.dir, '../..'),
    env: { ...process.env, NODE_EXTRA_CA_CERTS: authority },
    stderr: 'inherit',
  })
  const printed = await new Response(child.stdout).text()
  rmSync(folder, { recursive: true })
  expect(printed.trim().split('\n')).toEqual(['null', 'null', 'null', 'null', 'tls', 'tls'])
  for (const { server_names } of [starttls, implicit])
    expect(server_names.slice(0, 2)).toEqual(['', 'receiver.test'])
})
