import { afterAll, beforeEach, describe, expect, jest, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { startMailServer } from '../../test/support/mail-server.ts'
import { until } from '../../test/support/patience.ts'
import { nextTurn } from '../../test/support/quiet-db.ts'
import { certificate_pem, startReceiver } from '../../test/support/receiver.ts'
import { systemClock } from '../base/clock.ts'
import type { FailureClass } from './attempt.ts'
import { Mailer, type MailFault } from './mail.ts'

const server = await startMailServer()
const starttls = await startMailServer('starttls')
const implicit = await startMailServer('implicit')
const secure = await startReceiver({ secure: true })
afterAll(() => Promise.all([server, starttls, implicit, secure].map((each) => each.stop())))
beforeEach(async () => {
  server.answer = () => '250 2.1.5 ok'
  for (const { connections, mails, server_names } of [server, starttls, implicit]) {
    await until(() => connections() === 0) // one that was cut off may still be named
    mails.length = server_names.length = 0
  }
})
const settings = { smtp_url: server.url, from: 'waystation@example.com' }
const mail = { to: 'a@example.com', subject: 's', text: 't', headers: {} }

test('a server that does not answer: the email has failed with timeout at the deadline, and the connection is closed', async () => {
  server.answer = () => new Promise<string>(() => {})
  const { ok, status, error } = await new Mailer(settings, systemClock, { attempt_ms: 50 }).send(mail)
  expect([ok, status, error]).toEqual([false, null, 'timeout'])
  await until(() => server.connections() === 0)
})

test('an email that is taken leaves no connection behind', async () => {
  server.answer = () => '250 2.1.5 ok'
  const { ok, status, error } = await new Mailer(settings, systemClock).send(mail)
  expect([ok, status, error]).toEqual([true, 250, null])
  expect(server.mails).toHaveLength(1)
  await until(() => server.connections() === 0)
})

test('a server that greets late, because it looks its clients up first, is waited for', async () => {
  const [connected, looked_up] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  server.answer = () => '250 2.1.5 ok'
  server.greets = () => {
    connected.resolve()
    return looked_up.promise
  }
  jest.useFakeTimers()
  try {
    const sent = new Mailer(settings, systemClock).send(mail)
    await connected.promise
    for (let turn = 0; turn < 20; turn++) await nextTurn() // the client sees its connection as well
    jest.advanceTimersByTime(10_000)
    looked_up.resolve()
    expect(await sent).toMatchObject({ error: null, status: 250 })
  } finally {
    jest.useRealTimers()
    server.greets = () => null
  }
})

describe('What a server refuses is told', () => {
  const told: MailFault[] = []
  const clock = new TestClock()
  beforeEach(() => void told.splice(0))

  test('once a minute for each kind, without the text of the reply, which may name the address', async () => {
    const mailer = new Mailer(settings, clock, { onFault: (fault) => void told.push(fault) })
    const relay_denied = () => '554 5.7.1 <a@example.com>: Relay access denied'
    const fault = { server: new URL(server.url).host, error: 'status', command: 'RCPT TO' } as const
    server.answer = relay_denied
    await mailer.send(mail)
    await mailer.send(mail)
    expect(told).toEqual([{ ...fault, reply: '554 5.7.1' }])
    server.answer = () => '451 later'
    await mailer.send(mail)
    server.answer = relay_denied
    clock.advance(60_000)
    await mailer.send(mail)
    server.answer = () => '250 2.1.5 ok'
    await mailer.send(mail)
    expect(told.map(({ reply }) => reply)).toEqual(['554 5.7.1', '451', '554 5.7.1'])
  })

  test('and a server that is not there, or does not answer, by its address without its password', async () => {
    const onFault = (fault: MailFault) => void told.push(fault)
    const smtp_url = 'smtp://ada:secret@127.0.0.1:1'
    await new Mailer({ ...settings, smtp_url }, clock, { onFault }).send(mail)
    server.answer = () => new Promise<string>(() => {})
    await new Mailer(settings, clock, { onFault, attempt_ms: 50 }).send(mail)
    expect(told).toEqual([
      { server: '127.0.0.1:1', error: 'refused', reply: null, command: 'CONN' },
      { server: new URL(server.url).host, error: 'timeout', reply: null, command: null },
    ])
  })
})

test.each<[name: string, expected: FailureClass, smtp_url: string]>([
  ['whose certificate nobody trusts', 'tls', secure.url.replace('https', 'smtps')],
  ['without TLS where SMTP_URL asks for it', 'tls', server.url.replace('smtp', 'smtps')],
  ['that is not there', 'refused', 'smtp://127.0.0.1:1'],
])('a server %s: the email has failed with %s', async (_, expected, smtp_url) => {
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
])('an email is sent %s', async (_, { url, mails, server_names }, options, encrypted, server_name) => {
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
])('%s: the email is not sent, and has failed with tls', async (_, { url, mails }, options) => {
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
