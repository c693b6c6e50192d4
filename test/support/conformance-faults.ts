// Planted faults: each breaks one sentence of the contract, and names the check that has to find it.

import { more_rows, type Row } from './conformance-more-faults.ts'
import {
  answering,
  answersGone,
  asBearer,
  become,
  callsOnCancel,
  claimsTwice,
  countsLooks,
  followsRedirects,
  internal,
  isJson,
  later,
  lendsAdmin,
  livesOn,
  onAnswer,
  onBody,
  onCallback,
  onJson,
  onPath,
  onReply,
  onRequest,
  onText,
  refusesSecond,
  remembers,
  replaysAlways,
  reply,
  showsKeys,
  tellsForeign,
  writesEntries,
} from './conformance-plants.ts'
import type { Fault } from './conformance-proxy.ts'

export interface Mutant {
  name: string
  found_by: string
  /** Runs beside it: a rule on every answer needs answers. */
  beside?: string | undefined
  /** The check lets time pass. */
  takes_time: boolean
  plant(): Fault
}

const rows: Row[] = [
  // Answers of every kind.
  [
    'answers 200 for 201',
    'credentials.answers POST /v1/dlq',
    () => onReply((a, r) => r.path === '/v1/dlq' && a.status === 201 && become(a, 200, a.text)),
  ],
  [
    'forgets X-Request-Id',
    'every-answer.request-id',
    () => onAnswer((a) => a.headers.delete('x-request-id')),
    'kv.get',
  ],
  [
    'answers text/plain',
    'every-answer.json',
    () => onAnswer((a) => a.headers.set('content-type', 'text/plain')),
    'kv.get',
  ],
  [
    'writes times without milliseconds',
    'every-answer.timestamps',
    () => onText((text) => text.replace(/\.\d{3}Z"/g, 'Z"')),
    'kv.get',
  ],
  [
    'leaves out fields that are null',
    'credentials.answers POST /v1/checkpoints',
    () => onText((text) => text.replace(/"prompt":null,/g, '')),
  ],
  [
    'gives errors of /api the envelope of /v1',
    'every-answer.error-envelope',
    () => onText((text) => text.replace('"success":false,"error"', '"error"')),
    'inbox.unknown',
  ],
  [
    'answers /api without its envelope',
    'every-answer.success-envelope',
    () => onJson('/api/', (body) => body.data ?? body),
    'rate-limit.check',
  ],
  ['gives a code another status', 'every-answer.error-status', () => answering(404, 400), 'kv.absent'],
  [
    'answers 500 to JSON that is broken',
    'every-answer.no-internal-error',
    () => onAnswer((a) => a.text.includes('INVALID_JSON') && internal(a)),
    'bodies.not-json POST /v1/audit',
  ],
  [
    'leaves the request id out of errors',
    'every-answer.error-envelope',
    () => onText((text) => text.replace(/,"request_id":"[^"]*"\}\}/, '}}')),
    'kv.absent',
  ],

  // Credentials.
  [
    'tells reasons of a 401 apart',
    'credentials.unauthorized-bytes',
    () =>
      onReply(
        (a, r) =>
          a.status === 401 &&
          !r.headers.has('authorization') &&
          become(a, 401, a.text.replace('"message":"', '"message":"No key: ')),
      ),
  ],
  [
    'takes any of two keys',
    'credentials.two-keys GET /v1/audit',
    () =>
      onRequest(
        (r) =>
          r.headers.has('x-admin-key') && r.headers.delete('authorization') && r.headers.delete('x-api-key'),
      ),
  ],
  ['lets agents approve', 'checkpoints.agents-may-not', lendsAdmin(/\/(approve|reject)$/)],
  ['answers 401 for 403', 'credentials.wrong-kind POST /v1/agents', () => answering(403, 401)],
  [
    'takes x-api-key without x-agent-id',
    'credentials.agent-headers',
    () => onRequest((r) => r.headers.has('x-api-key') && asBearer(r)),
  ],
  ['shows keys in lists', 'every-answer.secrets', showsKeys, 'agents.list'],
  ['lets a rotated key live', 'agents.rotate-key', livesOn],
  [
    'takes any cron secret',
    'tick.refuses',
    () => onReply((a, r) => r.path === '/v1/tick' && a.status === 401 && become(a, 200, '{}')),
  ],
  [
    'lets a bound approval key decide on others',
    'approval-keys.bound',
    () => onAnswer((a) => a.status === 403 && become(a, 200, '{}')),
  ],

  // Isolation.
  [
    'shows items of another tenant',
    'isolation.foreign GET /v1/dlq/{id}',
    () => remembers(/^\/v1\/dlq$/, /^\/v1\/dlq\/[^/]+$/),
  ],
  ['tells a foreign id from an unknown one', 'isolation.foreign GET /v1/schedules/{id}', tellsForeign],
  [
    'answers 404 for the tenant of another',
    'tenants.foreign',
    () => onReply((a, r) => r.path.startsWith('/v1/tenants/') && a.status === 403 && become(a, 404, a.text)),
  ],
  [
    'takes the tenant from the body',
    'isolation.tenant-id-ignored',
    () => onAnswer((a) => a.headers.delete('x-ignored-fields')),
  ],
  [
    'judges ids by their form',
    'isolation.ids GET /v1/checkpoints/{id}',
    () => onReply((a, r) => a.status === 404 && r.path.includes('%') && become(a, 400, a.text)),
  ],

  // Paths and bodies.
  [
    'answers OPTIONS without Allow',
    'paths.options /v1/audit',
    () => onAnswer((a) => a.headers.delete('allow')),
  ],
  ['answers 404 to another method', 'paths.method /v1/kv/{namespace}/{key}', () => answering(405, 404)],
  [
    'knows no HEAD',
    'paths.head /v1/agents',
    () => onReply((a, r) => r.method === 'HEAD' && become(a, 405, '')),
  ],
  [
    'replaces every request id',
    'paths.request-id-kept',
    () => onRequest((r) => r.headers.delete('x-request-id')),
  ],
  [
    'ignores unknown fields in silence',
    'bodies.unknown-fields POST /v1/agents',
    () => onAnswer((a) => a.headers.delete('x-ignored-fields')),
  ],
  [
    'takes any depth',
    'bodies.levels POST /v1/audit',
    () => onBody((text) => text.replace(/"deep":\[+\]+/, '"deep":1')),
  ],
  [
    'takes any media type',
    'bodies.media-types POST /v1/dlq',
    () =>
      onRequest((r) => r.headers.has('content-type') && r.headers.set('content-type', 'application/json')),
  ],
  ['takes any size', 'bodies.size POST /v1/audit', () => onBody((text) => text.trimEnd())],
  [
    'names one fault at a time',
    'bodies.required POST /v1/schedules',
    () => onText((text) => text.replace(/("issues":\[\{[^}]*\}),.*?\]/, '$1]')),
  ],

  // Lists.
  [
    'serves the first page again',
    'lists.pages /v1/audit',
    () => onPath((path) => path.replace(/&cursor=[^&]*/, '')),
  ],
  [
    'ignores limit',
    'lists.limit /v1/agents',
    () => onPath((path) => path.replace(/([?&])limit=[^&]*/, '$1x=')),
  ],
  [
    'lists the oldest first',
    'lists.pages /v1/dlq',
    () => onJson('/v1/dlq', (body) => ({ ...body, items: body.items?.toReversed() })),
  ],
  [
    'takes a cursor of any route',
    'lists.cursor /v1/schedules',
    () =>
      onReply(
        (a, r) =>
          r.path.includes('cursor=') && a.status === 400 && become(a, 200, '{"items":[],"next_cursor":null}'),
      ),
  ],
  [
    'ignores the filter of a list',
    'checkpoints.list',
    () => onPath((path) => path.replace(/\?status=[^&]*/, '')),
  ],

  // Idempotency.
  [
    'replays without saying so',
    'idempotency.replay POST /v1/audit',
    () => onAnswer((a) => a.headers.delete('idempotent-replayed')),
  ],
  [
    'ignores the Idempotency-Key',
    'idempotency.replay POST /v1/schedules',
    () => onRequest((r) => r.headers.delete('idempotency-key')),
  ],
  ['replays for any body', 'idempotency.reused POST /v1/dlq', replaysAlways],
  ['shares keys between principals', 'idempotency.principal POST /v1/audit', replaysAlways],

  // The key-value store.
  [
    'drops If-Match of a read',
    'kv.if-match-get',
    () => onRequest((r) => r.method === 'GET' && r.headers.delete('if-match')),
  ],
  [
    'drops If-Match of a write',
    'kv.if-match-put',
    () => onRequest((r) => r.method !== 'GET' && r.headers.delete('if-match')),
  ],
  ['drops If-None-Match', 'kv.if-none-match', () => onRequest((r) => r.headers.delete('if-none-match'))],
  ['drops cas_version', 'kv.cas', () => onBody((text) => text.replace(/,"cas_version":\d+/, ''))],
  [
    'loses one of two racing puts',
    'kv.cas-race',
    () => onReply((a, r) => r.method === 'PUT' && a.status === 409 && become(a, 200, '{}')),
  ],
  [
    'hides the current version',
    'kv.cas',
    () => onText((text) => text.replace('"current_version"', '"version"')),
  ],
  ['forgets X-Version', 'kv.put', () => onAnswer((a) => a.headers.delete('x-version'))],
  [
    'parses values and writes them again',
    'kv.exact-json',
    () => onBody((text) => (isJson(text) ? JSON.stringify(JSON.parse(text)) : text)),
  ],
  [
    'opens the namespaces of other agents',
    'kv.private',
    () => onPath((path) => path.replace('/__', '/open__')),
  ],
  ['ignores prefix', 'kv.list', () => onPath((path) => path.replace(/\?prefix=[^&]*/, ''))],
  ['forgets ttl_seconds', 'kv.ttl', () => onBody((text) => text.replace(/,"ttl_seconds":600/, ''))],

  // Audit log and dead letters.
  [
    'leaves gaps in seq',
    'audit.seq',
    () => onText((text) => text.replace(/"seq":(\d+)/g, (_, n: string) => `"seq":${Number(n) * 2}`)),
  ],
  ['writes audit entries of its own', 'audit.only-appended', writesEntries],
  [
    'ignores a filter of the audit log',
    'audit.filters',
    () => onPath((path) => path.replace(/&actor=[^&]*/, '')),
  ],
  ['lets two agents claim one item', 'dlq.claim-claimed', claimsTwice],
  [
    'lets others release',
    'dlq.holder-only',
    () => remembers(/^\/v1\/dlq\/([^/]+)\/claim$/, /^\/v1\/dlq\/([^/]+)\/(release|fail)$/),
  ],
  [
    'ignores lock_token',
    'dlq.lock-token',
    () => onBody((text) => text.replace(/"lock_token":"[^"]*"/, '"x":1')),
  ],
  ['refuses a second resolve', 'dlq.resolve-any', refusesSecond(/\/resolve$/)],
  [
    'shows payloads in lists',
    'dlq.list',
    () =>
      onJson('/v1/dlq?', (body) => ({
        ...body,
        items: body.items?.map((one: object) => ({ ...one, payload: 1 })),
      })),
  ],

  // Schedules, checkpoints and callbacks.
  [
    'calls private addresses',
    'schedules.callback-url',
    () => onBody((text) => text.replace('http://10.0.0.1/', 'http://127.0.0.1:9/')),
  ],
  [
    'changes a cancelled schedule',
    'schedules.cancel',
    () => onReply((a, r) => r.method === 'PATCH' && a.status === 409 && become(a, 200, '{}')),
  ],
  ['sends a callback twice', 'attempts.fires', () => ({ callback: async (c, send) => void (await send(c)) })],
  [
    'sends a callback without its event',
    'attempts.fires',
    () => onCallback((c) => c.headers.delete('x-waystation-event')),
  ],
  [
    'parses payloads before it sends them',
    'attempts.fires',
    () => onCallback((c) => Object.assign(c, { body: JSON.stringify(JSON.parse(String(c.body))) })),
  ],
  [
    'signs with another secret',
    'callbacks.approved',
    () => onCallback((c) => c.headers.set('webhook-signature', `v1,${'A'.repeat(43)}=`)),
  ],
  [
    'signs a time of its own',
    'callbacks.rejected',
    () => onCallback((c) => c.headers.set('webhook-timestamp', '1700000000')),
  ],
  ['follows redirects', 'attempts.no-redirects', followsRedirects],
  ['sends a callback for a cancelled checkpoint', 'callbacks.cancel-silent', callsOnCancel],
  [
    'lets any agent cancel',
    'checkpoints.cancel',
    () => remembers(/^\/v1\/checkpoints$/, /^\/v1\/checkpoints\/[^/]+$/),
  ],
  [
    'decides twice',
    'checkpoints.already-resolved',
    () => onReply((a, r) => /\/(approve|reject)$/.test(r.path) && a.status === 409 && become(a, 200, '{}')),
  ],
  ['drops the reason', 'checkpoints.approve', () => onBody((text) => text.replace('"reason"', '"x"'))],
  [
    'leaves no dead letter of a rejection',
    'checkpoints.reject-dead-letters',
    () => onBody((text) => text.replace('"timeout_action":"dlq"', '"timeout_action":"auto_reject"')),
  ],

  // Tenants and quotas.
  [
    'deletes a tenant without confirm',
    'tenants.delete-needs-confirm',
    () => onReply((a, r) => r.method === 'DELETE' && a.status === 400 && become(a, 202, '{}')),
  ],
  [
    'serves a tenant that is being deleted',
    'tenants.pending-refuses',
    () => onReply((a, r) => r.method === 'GET' && a.status === 403 && become(a, 200, '{}')),
  ],
  ['answers 429 for 402', 'quotas.full inboxes', () => answering(402, 429)],
  [
    'counts one too many',
    'quotas.dlq-open-items',
    () =>
      onText((text) =>
        text.replace(
          /("dlq_items":\{"used":)(\d+)/,
          (_, head: string, n: string) => `${head}${Number(n) + 1}`,
        ),
      ),
  ],

  // The inbox and the rate limiter.
  [
    'stores a HEAD',
    'inbox.stores-nothing',
    () =>
      onRequest(
        (r) => r.method === 'HEAD' && r.path.startsWith('/hook/') && Object.assign(r, { method: 'GET' }),
      ),
  ],
  [
    'loses the bytes of messages',
    'inbox.message',
    () => onText((text) => text.replace(/"bodyBase64":"[^"]*"/g, '"bodyBase64":""')),
  ],
  [
    'pages messages from the newest on',
    'inbox.messages',
    () =>
      onJson('/messages', (body) => ({
        ...body,
        data: { ...body.data, items: body.data?.items.toReversed() },
      })),
  ],
  [
    'forwards everything as POST',
    'inbox.forwards',
    () => onCallback((c) => Object.assign(c, { method: 'POST' })),
  ],
  ['counts no inboxes', 'inbox.list', () => onText((text) => text.replace(/"total":\d+/, '"total":0'))],
  ['allows one too many', 'rate-limit.exact', () => onBody((text) => text.replace('"limit":7', '"limit":8'))],
  [
    'counts the two forms apart',
    'rate-limit.query',
    () => onPath((path) => path.replace('?key=', '?key=other-')),
  ],
  ['counts a look at the status', 'rate-limit.status', countsLooks],
  ['forgets the policy', 'rate-limit.headers', () => onAnswer((a) => a.headers.delete('ratelimit-policy'))],
  [
    'keeps a counter that is reset',
    'rate-limit.reset',
    () =>
      onRequest((r) =>
        r.path === '/api/rate-limit/reset'
          ? reply(200, `{"success":true,"data":{"key":"${JSON.parse(String(r.body)).key}","reset":true}}`)
          : undefined,
      ),
  ],
  ...more_rows,
]

/** In what takes time. */
const timed: [name: string, found_by: string, plant: () => Fault][] = [
  ['keeps a key past its expiry', 'kv.expires', later('ttl_seconds')],
  ['holds a lock for ever', 'dlq.lock-elapses', later('lock_seconds')],
  ['never times out with a rejection', 'checkpoints.auto-rejects', later('timeout_seconds')],
  ['never times out to the dead letters', 'checkpoints.times-out-to-dlq', later('timeout_seconds')],
  ['lets an old key live past its grace', 'tenants.grace-ends', later('grace_seconds')],
  ['lets the old key of an agent live past its grace', 'agents.grace-ends', later('grace_seconds')],
  ['counts inboxes that have expired', 'quotas.expired-frees', later('ttl')],
  ['never ends a window', 'rate-limit.window-ends', later('windowSeconds')],
  [
    'counts a sliding window as a fixed one',
    'rate-limit.sliding-window',
    () => onBody((text) => text.replace('sliding_', 'fixed_')),
  ],
  ['takes messages past the expiry of an inbox', 'inbox.expires', later('ttl')],
  ['keeps Idempotency-Keys for ever', 'idempotency.expires POST /v1/audit', replaysAlways],
  [
    'calls every attempt the first',
    'attempts.retries',
    () => onCallback((c) => c.headers.set('x-waystation-attempt', '1')),
  ],
  ['gives up after the first attempt', 'attempts.retries', answersGone],
  ['tries a callback of a decision once', 'callbacks.retries', answersGone],
  [
    'fires before its time',
    'attempts.fires-in-time',
    () => onBody((text) => text.replace(/"fire_at":"[^"]*"/, '"fire_at":"2000-01-01T00:00:00Z"')),
  ],
  [
    'fires for a tenant that is deleted',
    'tenants.rests-while-pending',
    () => onRequest((r) => r.method === 'DELETE' && reply(202, '{}')),
  ],
  [
    'never purges',
    'tenants.purge',
    () => onReply((a, r) => r.path.startsWith('/v1/tenants/') && a.status === 401 && become(a, 200, '{}')),
  ],
  [
    'signs with a rotated secret for ever',
    'callbacks.old-secret-ends',
    () =>
      onCallback((c) =>
        c.headers.set('webhook-signature', `${c.headers.get('webhook-signature')} v1,${'A'.repeat(43)}=`),
      ),
  ],
]

export const mutants: readonly Mutant[] = [
  ...rows.map(([name, found_by, plant, beside]) => ({ name, found_by, plant, beside, takes_time: false })),
  ...timed.map(([name, found_by, plant]) => ({ name, found_by, plant, takes_time: true })),
]
