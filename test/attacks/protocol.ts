import { newInbox } from './lib/heavy.ts'
import type { Attack, Lab } from './lib/lab.ts'
import type { Service, Tenant } from './lib/service.ts'
import { exchange, requestBytes } from './lib/wire.ts'

const listen_ms = 1_200
const wait_seconds = 50
const idle_ms_max = 20_000
const refused_least = 400

export const protocol: Attack = {
  name: 'protocol',
  about: 'uses corners of HTTP/1.1: trailers, pipelined writes, two Host headers, connections that stay',
  engines: ['sqlite'],
  seconds_max: 60,
  async run(lab) {
    const service = await lab.service()
    const attacker = await lab.tenant(service)
    const idle = idleAfterWait(lab, service, attacker)
    await trailers(lab, service, attacker)
    await pipelined(lab, service, attacker)
    const two_hosts = await exchange(
      service.port,
      'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n',
      listen_ms,
    )
    lab.check(
      'two Host headers are refused',
      firstStatus(two_hosts.text) >= refused_least,
      firstLine(two_hosts.text),
    )
    const { token } = await newInbox(attacker)
    for (const [what, method, path] of [
      ['an unknown key', 'GET', '/v1/kv/ns/none'],
      ['an unknown route', 'GET', '/v1/nowhere'],
      ['an inbox', 'POST', `/hook/${token}`],
      ['an unknown inbox', 'POST', '/hook/whi_nobody'],
    ] as const) {
      const answer = await fetch(service.url + path, { method, headers: attacker.headers })
      await answer.text()
      const value = answer.headers.get('x-content-type-options')
      lab.check(`${what} answers with nosniff`, value === 'nosniff', `${value}`)
    }
    await idle
  },
}

async function trailers(lab: Lab, { port }: Service, attacker: Tenant): Promise<void> {
  const { id, token } = await newInbox(attacker)
  const body = '5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n'
  const heard = await exchange(
    port,
    `POST /hook/${token} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
    listen_ms,
  )
  const stored = await attacker.ask<{ data: { inbox: { messageCount: number } } }>(
    'GET',
    `/api/webhook/${id}`,
  )
  const count = stored.data.inbox.messageCount
  const refused = firstStatus(heard.text) !== 200
  lab.check(
    'a body with trailers is either taken or not',
    refused === (count === 0),
    `${firstLine(heard.text)}, ${count} stored`,
  )
}

/** Each effect has an answer, or there is no effect. */
async function pipelined(lab: Lab, { port }: Service, attacker: Tenant): Promise<void> {
  const put = (key: string) =>
    requestBytes(
      'PUT',
      `/v1/kv/pipe/${key}`,
      { ...attacker.headers, 'content-type': 'application/json' },
      '{"value":1}',
    )
  for (const count of [2, 3]) {
    const keys = Array.from({ length: count }, (_, i) => `k${count}-${i}`)
    const heard = await exchange(port, Buffer.concat(keys.map(put)), listen_ms)
    const answers = heard.text.match(/HTTP\/1\.1 200/g)?.length ?? 0
    let effects = 0
    for (const key of keys) if ((await attacker.status('GET', `/v1/kv/pipe/${key}`)) === 200) effects += 1
    lab.check(
      `${count} pipelined puts have as many answers as effects`,
      answers === effects,
      `${answers} answers, ${effects} effects`,
    )
  }
  const get = requestBytes('GET', '/v1/kv/pipe/none', attacker.headers)
  const mixed = await exchange(port, Buffer.concat([get, put('after')]), listen_ms)
  const effect = (await attacker.status('GET', '/v1/kv/pipe/after')) === 200
  const answered = /HTTP\/1\.1 200/.test(mixed.text)
  lab.check(
    'a put after a pipelined get has an answer if it has an effect',
    effect === answered,
    `${effect}, ${answered}`,
  )
}

/** A connection whose long wait ended early lives no longer than any other. */
async function idleAfterWait(lab: Lab, { port }: Service, attacker: Tenant): Promise<void> {
  const made = await attacker.ask<{ id: string }>('POST', '/v1/checkpoints', {
    ...{ title: 't', prompt: 'p', callback_url: 'http://127.0.0.1:9/' },
  })
  const request = requestBytes('GET', `/v1/checkpoints/${made.id}?wait=${wait_seconds}`, attacker.headers)
  const waiting = exchange(port, request, 1_000 + idle_ms_max)
  await Bun.sleep(1_000)
  await attacker.status('POST', `/v1/checkpoints/${made.id}/approve`, {}, attacker.admin_headers)
  const { closed_after_ms } = await waiting
  const idle_ms = closed_after_ms === null ? Number.NaN : closed_after_ms - 1_000
  lab.bound('an idle connection is closed after an early end of a wait', { ms: [idle_ms, idle_ms_max] })
}

function firstLine(text: string): string {
  return text.split('\r\n')[0] || 'no answer'
}

/** 499: the connection ended without an answer. */
function firstStatus(text: string): number {
  return Number(/^HTTP\/1\.[01] (\d+)/.exec(text)?.[1] ?? 499)
}
