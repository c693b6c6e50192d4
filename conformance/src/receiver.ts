// Receives the callbacks and forwards of the service, and answers them as a check wants.

import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { equal, holds, matches } from './assert.ts'

export interface Received {
  method: string
  target: string
  headers: Record<string, string>
  body: string
  /** Real time in milliseconds. */
  at_ms: number
}

export interface Reply {
  status: number
  headers?: Record<string, string>
  body?: string
}

/** One address of the receiver. Answers 204 until a check replaces `answer`. */
export class Hook {
  readonly received: Received[] = []
  answer: (request: Received, count: number) => Reply | Promise<Reply> = () => ({ status: 204 })

  constructor(readonly url: string) {}
}

export interface Receiver {
  /** Answers 204 and keeps nothing. */
  idle_url: string
  hook(): Hook
  stop(): Promise<void>
}

export interface ReceiverPlace {
  /** Where the receiver listens. */
  listen_host: string
  listen_port: number
  /** How the service reaches it; null for the place itself. */
  receiver_url: string | null
}

export async function startReceiver({
  listen_host,
  listen_port,
  receiver_url,
}: ReceiverPlace): Promise<Receiver> {
  const hooks = new Map<string, Hook>()
  const server = createServer((request, response) => void receive(hooks, request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(listen_port, listen_host, resolve)
  })
  const { port } = server.address() as AddressInfo
  const base = (receiver_url ?? `http://${listen_host}:${port}`).replace(/\/$/, '')
  return {
    idle_url: `${base}/idle`,
    hook: () => {
      const name = String(hooks.size + 1)
      const hook = new Hook(`${base}/${name}`)
      hooks.set(name, hook)
      return hook
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections?.()
      }),
  }
}

async function receive(
  hooks: Map<string, Hook>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk as Uint8Array)
  const target = request.url ?? ''
  if (/\/idle(\/.*)?$/.test(target)) {
    response.writeHead(204).end()
    return
  }
  const hook = hooks.get(/\/(\d+)(?:[/?].*)?$/.exec(target)?.[1] ?? '')
  if (!hook) {
    response.writeHead(404).end()
    return
  }
  const received: Received = {
    method: request.method ?? '',
    target,
    headers: request.headers as Record<string, string>,
    body: Buffer.concat(chunks).toString(),
    at_ms: Date.now(),
  }
  hook.received.push(received)
  const { status, headers = {}, body = '' } = await hook.answer(received, hook.received.length)
  response.writeHead(status, headers).end(body)
}

/** The signatures of Standard Webhooks 1.0.0 that this request carries, and those that are right under the secret. */
export function signaturesOf(
  { headers, body }: Received,
  secret: string,
): { sent: string[]; right: string[] } {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const expected = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  const sent = (headers['webhook-signature'] ?? '').split(' ')
  return { sent, right: sent.filter((signature) => signature === expected) }
}

/** The tolerance that Standard Webhooks receivers have, in seconds. */
const tolerance_seconds = 300

/** A callback of the contract, signed under the secret of its tenant. */
export function isSignedCallback(
  request: Received,
  secret: string | null,
  event: string,
  attempt: number,
): void {
  const { method, headers, at_ms } = request
  equal(method, 'POST', 'method of a callback')
  equal(headers['content-type'], 'application/json', 'content-type of a callback')
  matches(headers['user-agent'], /^Waystation\/\S+/, 'user-agent of a callback')
  matches(headers['webhook-id'], /^\S+$/, 'webhook-id')
  matches(headers['webhook-timestamp'], /^\d{10}$/, 'webhook-timestamp')
  const late = Math.abs(at_ms / 1_000 - Number(headers['webhook-timestamp']))
  holds(late <= tolerance_seconds, `webhook-timestamp is ${late} s off: receivers would refuse it`)
  equal(headers['x-waystation-event'], event, 'x-waystation-event')
  equal(headers['x-waystation-attempt'], String(attempt), 'x-waystation-attempt')
  matches(headers['webhook-signature'], /^v1,[A-Za-z0-9+/]+=*( v1,[A-Za-z0-9+/]+=*)*$/, 'webhook-signature')
  if (secret === null) return
  holds(
    signaturesOf(request, secret).right.length === 1,
    'no webhook-signature is right under the signing secret',
  )
}
