// Other implementations than ours: a proxy in front of our service answers as they might, and keeps the contract.

import { type Part, partsOf } from '../../conformance/src/raw-json.ts'
import type { Fault, Reply } from './conformance-proxy.ts'

/** Members that hold data of the client; they stay as they are. */
const of_the_client = [
  'value',
  'payload',
  'callback_payload',
  'metadata',
  'headers',
  'body',
  'query',
  'quota',
]

/** The same value with the members of its objects in another order, spaced out, with one more in each. */
function rewritten(json: string, name: string | null = null): string {
  const open = json.trim()[0]
  if ((open !== '{' && open !== '[') || of_the_client.includes(name ?? '')) return json
  const parts = partsOf(json).map((part): Part => ({ ...part, text: rewritten(part.text, part.name) }))
  if (open === '[') return `[ ${parts.map(({ text }) => text).join(' ,\n ')} ]`
  const members = parts.toReversed().map((part) => `${JSON.stringify(part.name)} : ${part.text}`)
  return `{\n ${['"of_another" : [ null ]', ...members].join(' ,\n ')} }\n`
}

/** Keeps the contract in another form: order, space and number of members, sentences, what the contract leaves open. */
export function spelledOtherwise(): Fault {
  return {
    answer: (reply) => {
      reply.text = reply.text.replace(/("message":")(?:[^"\\]|\\.)*"/g, '$1Nein."')
      if (reply.text !== '') reply.text = rewritten(reply.text)
      reply.headers.set('content-type', 'application/json; charset=utf-8')
      const ignored = reply.headers.get('x-ignored-fields')
      if (ignored) reply.headers.set('x-ignored-fields', ignored.split(', ').toReversed().join(','))
      const allow = reply.headers.get('allow')
      if (allow) reply.headers.set('allow', `TRACE,${allow.replaceAll(', ', ',')}`)
      earlierDraft(reply)
    },
  }
}

/** As draft-ietf-httpapi-ratelimit-headers-07 writes them. */
function earlierDraft({ headers }: Reply): void {
  const [, remaining, seconds] = /r=(\d+);t=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? []
  const [, limit, window] = /q=(\d+);w=(\d+)/.exec(headers.get('ratelimit-policy') ?? '') ?? []
  if (!remaining || !limit) return
  headers.set('ratelimit', `limit=${limit}, remaining=${remaining}, reset=${seconds}`)
  headers.set('ratelimit-policy', `${limit};w=${window}`)
}

/** An implementation made from the two API documents alone. It decides differently what they leave open. */
export function ofTheDocumentsAlone(): Fault {
  return {
    request: (request) => {
      request.path = ownIds(request.path)
      if (typeof request.body === 'string') request.body = ownIds(request.body)
      const agent = request.headers.get('x-agent-id')
      const is_known = operations.some((pattern) => pattern.test(`${request.method} ${request.path}`))
      if (!is_known || (request.headers.has('authorization') && !request.path.startsWith('/v1/tick')))
        return otherReply(404, '{"error":{"code":"NO","message":"Nein."}}')
      if (agent) request.headers.set('x-agent-id', agent)
      return undefined
    },
    answer: (reply, { path }) => {
      for (const name of [...reply.headers.keys()])
        if (!kept_headers.includes(name)) reply.headers.delete(name)
      if (reply.status >= 400) becomeOtherError(reply, path)
      else if (reply.text !== '' && path.startsWith('/v1/')) reply.text = otherNames(reply.text)
      reply.text = otherIds(reply.text)
    },
    callback: (callback) => {
      const signature = callback.headers.get('webhook-signature')
      for (const name of [...callback.headers.keys()]) {
        if (/^(webhook|x-waystation)-/.test(name)) callback.headers.delete(name)
      }
      if (signature) callback.headers.set('x-signature', signature)
      return undefined
    },
  }
}

const operations = [
  /^POST \/v1\/tenants$/,
  /^(GET|DELETE) \/v1\/tenants\/[^/]+$/,
  /^POST \/v1\/(tenants|agents)\/[^/]+\/rotate-key$/,
  /^(POST \/v1\/(agents|approval-keys)|GET \/v1\/agents\/[^/]+)$/,
  /^(GET|PUT|DELETE) \/v1\/kv\/[^/]+\/[^/]+$/,
  /^(GET|POST) \/v1\/(audit|dlq|schedules|checkpoints)(\?|$)/,
  /^GET \/v1\/audit\/[^/]+$/,
  /^(GET|DELETE|PATCH) \/v1\/(dlq|schedules|checkpoints)\/[^/]+$/,
  /^POST \/v1\/dlq\/[^/]+\/(claim|release|fail|resolve)$/,
  /^POST \/v1\/checkpoints\/[^/]+\/(approve|reject)$/,
  /^POST \/v1\/tick$/,
  /^[A-Z]+ \/(api|hook)\//,
]

const kept_headers = ['content-type', 'x-request-id', 'x-version']

/** `dlq_01m8…` is shown as `01m8….dlq`. */
function otherIds(text: string): string {
  return text.replace(/\b(dlq|sch|chk|apk|log|inb|msg|ten)_([0-9a-hjkmnp-tv-z]{26})/g, '$2.$1')
}

function ownIds(text: string): string {
  return text.replace(/\b([0-9a-hjkmnp-tv-z]{26})\.(dlq|sch|chk|apk|log|inb|msg|ten)\b/g, '$2_$1')
}

const other_names: Record<string, string> = {
  id: 'uid',
  agent_id: 'agent',
  api_key: 'secret',
  approval_key: 'proxy_key',
  items: 'results',
  next_cursor: 'more',
  version: 'rev',
}

function otherNames(json: string): string {
  const named = json.replace(/"(\w+)":/g, (whole, name: string) =>
    other_names[name] ? `"${other_names[name]}":` : whole,
  )
  return named.replace(/\.\d{3}Z"/g, '+00:00"').replace(/\*{4}\w{4}"/g, '…"')
}

const documented_codes =
  /DELETE_REQUIRES_CONFIRM|QUOTA_EXCEEDED|KEY_NOT_FOUND|DLQ_NOT_FOUND|_TAKEN|VERSION_MISMATCH|ALREADY_CLAIMED/

function becomeOtherError(reply: Reply, path: string): void {
  const { error, data } = JSON.parse(reply.text)
  if (data) {
    reply.text = JSON.stringify({ success: false, data })
    return
  }
  if (error.code === 'VALIDATION_FAILED') reply.status = 422
  if (reply.status === 412) error.code = 'PRECONDITION_FAILED'
  else if (!documented_codes.test(error.code) && path !== '/v1/tick') error.code = `E${reply.status}`
  const told = { code: error.code, message: 'Nein.' }
  reply.text = JSON.stringify(path.startsWith('/v1/') ? { error: told } : { problem: told })
}

function otherReply(status: number, text: string): Reply {
  const headers = new Headers({ 'content-type': 'application/json', 'x-request-id': '17' })
  return { status, headers, text }
}
