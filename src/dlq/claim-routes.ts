// /v1/dlq/claim, /v1/dlq/{id}/claim and /extend: the lock on a dead letter.

import { v1 } from '../contract/group.ts'
import { of_agents } from '../contract/responses.ts'
import { Reply, route } from '../contract/route.ts'
import * as dlq from './claims.ts'
import {
  ClaimBody,
  ClaimedItem,
  claimedOf,
  ExtendBody,
  ExtendedItem,
  example,
  id,
  tag,
  token_option,
} from './shapes.ts'

export const claimOldestItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/claim',
  tag,
  summary: 'Lock the oldest failed item; 204 when there is none',
  description: 'However many callers try, each gets a different item. The lock expires after `lock_seconds`.',
  sdk: {
    name: 'dlq.claimOldest',
    retry: { safe: false, why: 'a repeat would claim another item; the first lock expires on its own' },
  },
  auth: ['agent'],
  body: ClaimBody,
  replies: { 200: { body: ClaimedItem }, 204: { body: null } },
  emits: ['dlq.claimed', 'dlq.lock_expired'],
  errors: [],
  async handle({ db, caller }, { body }) {
    const item = await dlq.claimOldest(db, caller, body.lock_seconds)
    return item ? claimedOf(item) : new Reply(204, null)
  },
})

export const claimItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/claim',
  tag,
  summary: 'Lock a failed item',
  description: 'However many callers try, exactly one gets the lock. It expires after `lock_seconds`.',
  sdk: {
    name: 'dlq.claim',
    retry: { safe: false, why: 'the token of the lock would be lost; it expires on its own' },
  },
  cli: {
    usage: 'dlq claim [id]',
    about: 'Lock a dead letter, or the oldest; its lock_token is for the other commands',
    examples: ['waystation dlq claim --lock 10m', `waystation dlq claim ${example}`],
    options: { lock_seconds: ['--lock <duration>', 'how long the lock holds; default that of the item'] },
  },
  auth: ['agent'],
  params: { id },
  body: ClaimBody,
  replies: { 200: { body: ClaimedItem } },
  emits: ['dlq.claimed', 'dlq.lock_expired'],
  errors: ['DLQ_NOT_FOUND', 'ALREADY_CLAIMED', 'INVALID_STATE'],
  async handle({ db, caller }, { params, body }) {
    return claimedOf(await dlq.claim(db, caller, params.id, body.lock_seconds))
  },
})

export const extendItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/extend',
  tag,
  summary: 'Extend the lock to lock_seconds from now',
  description: 'The lock then ends `lock_seconds` from now.',
  sdk: { name: 'dlq.extend', retry: { safe: { with: 'lock_token' }, why: 'the token names one lock' } },
  cli: {
    usage: 'dlq extend <id>',
    about: 'Extend the lock',
    examples: [`waystation dlq extend ${example} --lock 10m --token <token>`],
    options: {
      lock_seconds: ['--lock <duration>', 'how long from now; default that of the item'],
      lock_token: token_option,
    },
  },
  auth: ['agent'],
  frozen: 'allowed', // for the holder of a lock_token
  shed: 'report',
  params: { id },
  body: ExtendBody,
  replies: { 200: { body: ExtendedItem } },
  emits: ['dlq.extended'],
  errors: ['DLQ_NOT_FOUND', 'INVALID_STATE', 'LOCK_NOT_HELD', ...of_agents],
  async handle({ db, caller }, { params, body }) {
    return claimedOf(await dlq.extend(db, caller, params.id, body.lock_token, body.lock_seconds))
  },
})
