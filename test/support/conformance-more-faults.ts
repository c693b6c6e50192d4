// More planted faults: of what the two API documents say alone, and of what once passed.

import {
  answering,
  become,
  claimsTwice,
  createsAgain,
  losesAnItem,
  onAnswer,
  onBody,
  onCallback,
  onJson,
  onPath,
  onReply,
  onRequest,
  onText,
  remembers,
  replaysOnAnyPath,
  reply,
  waitsForTick,
} from './conformance-plants.ts'
import type { Fault } from './conformance-proxy.ts'

export type Row = [name: string, found_by: string, plant: () => Fault, beside?: string]

export const more_rows: Row[] = [
  // Faults against the two API documents alone.
  ['answers 200 for 201', 'core.sign-up', () => answering(201, 200)],
  [
    'gives a new tenant another plan',
    'core.sign-up',
    () => onText((text) => text.replace('"free"', '"pro"')),
  ],
  ['takes any name of a tenant', 'core.sign-up-rules', () => answering(400, 201)],
  ['answers 404 for the tenant of another', 'core.tenant', () => answering(403, 404)],
  [
    'shows the key of an agent',
    'core.agent',
    () =>
      onReply(
        (a, r) =>
          r.method === 'GET' &&
          become(a, a.status, a.text.replace('"name"', `"key":"${r.headers.get('x-api-key')}","name"`)),
      ),
  ],
  ['forgets X-Version', 'core.kv', () => onAnswer((a) => a.headers.delete('x-version'))],
  ['drops If-Match', 'core.kv-if-match', () => onRequest((r) => r.headers.delete('if-match'))],
  ['drops cas_version', 'core.kv-cas', () => onBody((text) => text.replace(/,"cas_version":\d+/, ''))],
  [
    'ignores the limit of the audit log',
    'core.audit',
    () => onPath((path) => path.replace(/&limit=[^&]*/, '')),
  ],
  [
    'ignores the Idempotency-Key',
    'core.idempotency-key',
    () => onRequest((r) => r.headers.delete('idempotency-key')),
  ],
  [
    'takes any cron secret',
    'core.tick',
    () => onReply((a, r) => r.path === '/v1/tick' && a.status === 401 && become(a, 200, '{}')),
  ],
  ['needs no key', 'core.no-key', () => answering(401, 200)],
  ['serves keys of every kind', 'core.wrong-kind', () => answering(403, 200)],
  ['lets two agents claim one item', 'core-work.claim', claimsTwice],
  [
    'keeps an item that is deleted',
    'core-work.item-moves',
    () => onRequest((r) => r.method === 'DELETE' && reply(204, '')),
  ],
  [
    'ignores the filter of schedules',
    'core-work.schedule',
    () => onPath((path) => path.replace(/\?status=[^&]*/, '')),
  ],
  [
    'sends callbacks without a signature',
    'core-work.approve',
    () => onCallback((c) => c.headers.delete('webhook-signature')),
  ],
  [
    'lets any agent cancel',
    'core-work.cancel',
    () => remembers(/^\/v1\/checkpoints$/, /^\/v1\/checkpoints\/[^/]+$/),
  ],
  [
    'leaves no dead letter of a rejection',
    'core-work.reject-dead-letters',
    () => onBody((text) => text.replace('"timeout_action":"dlq"', '"timeout_action":"auto_reject"')),
  ],
  ['needs no key under /api', 'edge.no-key', () => answering(401, 200)],
  ['answers a blocked check with 200', 'edge.rate-check', () => answering(429, 200)],
  [
    'counts the two forms apart',
    'edge.rate-forms',
    () => onPath((path) => path.replace('?key=', '?key=other-')),
  ],
  [
    'loses what is in the query of a message',
    'edge.receive',
    () => onPath((path) => path.replace(/^(\/hook\/[^?]+)\?.*/, '$1')),
  ],
  [
    'shows fewer messages',
    'edge.latest',
    () =>
      onJson('/api/webhook/', (body) => ({
        ...body,
        data: { ...body.data, messages: body.data?.messages?.slice(1) },
      })),
  ],
  ['counts no inboxes', 'edge.list', () => onText((text) => text.replace(/"total":\d+/, '"total":0'))],

  // Faults that the suite once missed.
  ['makes the object again at a repeat', 'idempotency.once POST /v1/dlq', createsAgain],
  ['replays on any path', 'idempotency.path', replaysOnAnyPath],
  ['waits for a tick with the callback of a decision', 'callbacks.approved', waitsForTick],
  ['waits for a tick with a forward', 'inbox.forwards', waitsForTick],
  ['loses an item between pages', 'lists.pages /v1/schedules', losesAnItem],
  [
    'calls any port of a public address',
    'schedules.callback-url',
    () => onBody((text) => text.replace(/(1\.1\.1\.1):(5432|81|6667)\b/, '$1:8443')),
  ],
  [
    'takes lone surrogates',
    'bodies.text POST /v1/checkpoints',
    () => onBody((text) => text.replace(/abc\\ud800/, 'abc')),
  ],
  [
    'gives a new tenant another plan by default',
    'tenants.plan',
    () => onBody((text) => (text.includes('"plan"') ? text : text.replace(/\}$/, ',"plan":"pro"}'))),
  ],
  [
    'has more inboxes on the plan free',
    'quotas.plan-table',
    () => onText((text) => text.replace(/("inboxes":\{"used":\d+,"limit":)3\b/, '$14')),
  ],
  [
    'takes the time of an entry from the request',
    'audit.server-time',
    () =>
      onReply(
        (a, r) =>
          String(r.body).includes('"created_at"') &&
          become(a, a.status, a.text.replace(/("created_at":")[^"]*/, '$12000-01-01T00:00:00.000Z')),
      ),
  ],
  [
    'lists the namespaces of other agents',
    'kv.private',
    () => onPath((path) => path.replace(/^\/v1\/kv\/__system$/, '/v1/kv/open')),
  ],
  [
    'keeps one of several headers of a name',
    'inbox.repeated-header',
    () => onText((text) => text.replace('"a, b, c"', '"c"')),
  ],
  [
    'forwards for ever',
    'inbox.forward-circle',
    () => onRequest((r) => r.headers.delete('x-waystation-hops')),
  ],
  [
    'rewrites the payload of a checkpoint',
    'checkpoints.payload',
    () => onText((text) => text.replace('"callback_payload":{"b":1e400,', '"callback_payload":{"b":null,')),
  ],
  [
    'takes labels of any length',
    'approval-keys.label',
    () => onBody((text) => text.replace(/"x{257}"/, '"x"')),
  ],
  ['answers a blocked check with 200', 'rate-limit.blocked', () => answering(429, 200)],
  ['forgets Retry-After', 'rate-limit.blocked', () => onAnswer((a) => a.headers.delete('retry-after'))],
]
