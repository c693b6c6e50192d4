// A loopback HTTP receiver that keeps what it got and answers what it is told.

import { createPrivateKey } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer as createRawServer } from 'node:net'

export interface Received {
  method: string
  /** Path and query, as sent. */
  target: string
  /** Names in lower case. */
  headers: Record<string, string>
  body: string
}

export interface Answer {
  status?: number
  headers?: Record<string, string>
  body?: string | Uint8Array
}

export interface Receiver extends Listening {
  requests: Received[]
  /** Their bytes, in the same order. */
  bodies: Buffer[]
  /** May be replaced at any time. */
  answer: (request: Received) => Answer | Promise<Answer>
  /** Resolves once this many requests have come in all. */
  received(count: number): Promise<void>
}

interface Listening {
  url: string
  port: number
  /** Connections accepted so far, and those of them that are open. */
  accepted(): number
  open(): number
  stop(): Promise<void>
}

/** Answers 204 until told otherwise. `secure`: HTTPS with the certificate below. */
export async function startReceiver(options: { secure?: boolean } = {}): Promise<Receiver> {
  const waiting: { count: number; resolve: () => void }[] = []
  const requests: Received[] = []
  const listener: RequestListener = async (request, response) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk as Uint8Array)
    const bytes = Buffer.concat(chunks)
    const received = {
      method: request.method ?? '',
      target: request.url ?? '',
      headers: request.headers as Record<string, string>,
      body: bytes.toString(),
    }
    requests.push(received)
    receiver.bodies.push(bytes)
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve()
    const { status = 204, headers = {}, body = '' } = await receiver.answer(received)
    response.writeHead(status, headers).end(body)
  }
  const server = options.secure ? createSecureServer(certificate(), listener) : createServer(listener)
  const listening = await listen(server, options.secure ? 'https' : 'http')
  const receiver: Receiver = {
    ...listening,
    requests,
    bodies: [],
    answer: () => ({}),
    received: (count) =>
      new Promise((resolve) => {
        if (requests.length >= count) resolve()
        else waiting.push({ count, resolve })
      }),
  }
  return receiver
}

/** A server that says whatever it likes: for answers that no HTTP library would send. */
export function startRawServer(onConnection: (socket: Socket) => void): Promise<Listening> {
  return listen(createRawServer(onConnection), 'http')
}

async function listen(server: Server, scheme: string): Promise<Listening> {
  const sockets = new Set<Socket>()
  let accepted = 0
  server.on('connection', (socket) => {
    accepted += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    port,
    accepted: () => accepted,
    open: () => sockets.size,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** Self-signed, for receiver.test and 127.0.0.1, from 2020 to 2120. Secures nothing: its key is right here. */
export const certificate_pem = pem(
  'CERTIFICATE',
  `MIIBdDCCARmgAwIBAgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1yZWNlaXZlci50ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAw
MTAxMDAwMDAwWjAYMRYwFAYDVQQDDA1yZWNlaXZlci50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE2z2T7PzjCw2S5eoV6+MSCa9s
ZffAy5+PL45uGdaA6MZeOaV8yHoi4Q1MvHzLn8U7KMkBnwjPKhmEDm/wzgLiIaNSMFAwDwYDVR0TAQH/BAUwAwEB/zAeBgNVHREEFzAVgg1y
ZWNlaXZlci50ZXN0hwR/AAABMB0GA1UdDgQWBBQIUd9w+FE1mhFqwsfx8XdsUrFKYjAKBggqhkjOPQQDAgNJADBGAiEA8OHRsStOIqb/uKiK
HLwsP9X7nKLPvFvCpcecP0B2+JkCIQDooyUMV6fT67W5/TL0fcguPcrr3lzXC1JDbP6Q1maNgw==`,
)
const private_key =
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCRg2fXi6UW3RBTfXNxVp+oSxwwfWzRdLMG9ke0ygfiuhRANCAATbPZPs/OML' +
  'DZLl6hXr4xIJr2xl98DLn48vjm4Z1oDoxl45pXzIeiLhDUy8fMufxTsoyQGfCM8qGYQOb/DOAuIh'

/** With its key, as a server takes them. */
export function certificate(): { cert: string; key: string } {
  const der = Buffer.from(private_key, 'base64')
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  return { cert: certificate_pem, key: key.export({ format: 'pem', type: 'pkcs8' }).toString() }
}

function pem(label: string, base64: string): string {
  return `-----BEGIN ${label}-----\n${base64}\n-----END ${label}-----\n`
}
