// A loopback SMTP server that keeps the emails it was handed, as much of RFC 5321 as a client needs.

import { type AddressInfo, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { certificate } from './receiver.ts'

export interface ReceivedMail {
  from: string
  to: string
  /** Headers and body, as sent. */
  text: string
  /** True when it came over TLS. */
  encrypted: boolean
}

export interface MailServer {
  url: string
  mails: ReceivedMail[]
  /** The answer to RCPT, which a test may replace: `550 5.1.1 no such user`. */
  answer: (to: string) => string | Promise<string>
  /** The greeting comes once this resolves. */
  greets: () => Promise<void> | null
  /** The names that clients asked for in their TLS handshakes (RFC 6066 section 3), `''` for none. */
  server_names: string[]
  /** Connections that are open. */
  connections(): number
  stop(): Promise<void>
}

/**
 * `starttls` has that command (RFC 3207), `implicit` encrypts from the first byte (RFC 8314): with the certificate of the
 * secure receiver.
 */
export async function startMailServer(tls: 'none' | 'starttls' | 'implicit' = 'none'): Promise<MailServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    const used = tls === 'implicit' ? encrypted(socket, mail_server) : socket
    const starttls = () => converse(encrypted(socket, mail_server), mail_server)
    const greet = () => used.write('220 mail.test ESMTP\r\n')
    const greets = mail_server.greets()
    if (greets) void greets.then(greet)
    else greet()
    converse(used, mail_server, tls === 'starttls' ? starttls : null)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const mail_server: MailServer = {
    url: `${tls === 'implicit' ? 'smtps' : 'smtp'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mails: [],
    answer: () => '250 2.1.5 ok',
    greets: () => null,
    server_names: [],
    connections: () => sockets.size,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
  return mail_server
}

function encrypted(socket: Socket, server: MailServer): TLSSocket {
  const secure = new TLSSocket(socket, { isServer: true, ...certificate() })
  secure.on('error', () => {})
  secure.on('secure', () => server.server_names.push(secure.servername || ''))
  return secure
}

/** `starttls` goes on with the conversation once the connection is to be encrypted; null: there is no such command. */
function converse(socket: Socket, server: MailServer, starttls: (() => void) | null = null): void {
  let pending = ''
  let mail: ReceivedMail = { from: '', to: '', text: '', encrypted: socket instanceof TLSSocket }
  let in_data = false
  const say = (line: string) => socket.write(`${line}\r\n`)
  const command = (line: string): unknown => {
    const [verb = ''] = line.toUpperCase().split(/[ :]/)
    const address = /<(.*)>/.exec(line)?.[1] ?? ''
    if (verb === 'EHLO' && starttls) return say('250-mail.test\r\n250 STARTTLS')
    if (verb === 'EHLO' || verb === 'HELO') return say('250 mail.test')
    if (verb === 'STARTTLS') {
      if (!starttls) return say('502 5.5.1 not implemented')
      socket.removeAllListeners('data')
      say('220 2.0.0 go on')
      return starttls()
    }
    if (verb === 'MAIL') mail = { ...mail, from: address, to: '', text: '' }
    if (verb === 'RCPT') {
      mail.to = address
      const answered = server.answer(address)
      return typeof answered === 'string' ? say(answered) : answered.then(say)
    }
    if (verb === 'DATA') {
      in_data = true
      return say('354 go on')
    }
    if (verb === 'QUIT') return socket.end('221 bye\r\n')
    return say('250 2.0.0 ok')
  }
  socket.on('data', (chunk) => {
    pending += chunk.toString('latin1')
    for (;;) {
      const end = in_data ? pending.indexOf('\r\n.\r\n') : pending.indexOf('\r\n')
      if (end === -1) return
      const part = pending.slice(0, end)
      pending = pending.slice(end + (in_data ? 5 : 2))
      if (!in_data) command(part)
      else {
        in_data = false
        const sent = part.replace(/^\.\./gm, '.') // RFC 5321 section 4.5.2
        server.mails.push({ ...mail, text: decoded(Buffer.from(sent, 'latin1').toString()) })
        say('250 2.0.0 taken')
      }
    }
  })
}

/** Headers as they are, and the text as it reads: soft line breaks and `=3D` undone (RFC 2045 section 6.7). */
function decoded(text: string): string {
  const unfolded = text.replace(/\r\n[ \t]+/g, ' ')
  if (!/^content-transfer-encoding: quoted-printable/im.test(unfolded))
    return unfolded.replaceAll('\r\n', '\n')
  const bytes = unfolded
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  return Buffer.from(bytes, 'latin1').toString().replaceAll('\r\n', '\n')
}
