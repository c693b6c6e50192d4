// /v1/dlq/{id}/release, /fail and /resolve: the end of a claim.

import { v1 } from '../contract/group.ts'
import { of_agents } from '../contract/responses.ts'
import { route } from '../contract/route.ts'
import * as dlq from './release-service.ts'
import { example, Item, id, itemOf, LeaveBody, tag, token_option } from './shapes.ts'

export const releaseItem = leaving('release', dlq.release, {
  status: 'failed',
  summary: 'Release the lock; the item is failed again',
  description: 'Only for the agent that holds the lock. Any agent may then claim the item.',
  about: 'Release the lock; the dead letter can be claimed again',
  why: 'the token names one lock; a released item is failed again',
})

export const failItem = leaving('fail', dlq.fail, {
  status: 'archived',
  summary: 'Give up on the item; it is archived',
  description: 'Only for the agent that holds the lock. An archived item can be sent again by a redrive.',
  about: 'Give up on a dead letter; it is archived',
  why: 'the token names one lock; an archived item stays archived',
})

/** Ends a claim. `status`: of the item afterwards; `why`: a repeat with the token is safe. */
function leaving(
  verb: 'release' | 'fail',
  end: typeof dlq.release,
  texts: {
    status: 'failed' | 'archived'
    summary: string
    description: string
    about: string
    why: string
  },
) {
  const { status, summary, description, about, why } = texts
  return route({
    group: v1,
    method: 'POST',
    path: `/v1/dlq/:id/${verb}`,
    tag,
    summary,
    description,
    sdk: {
      name: `dlq.${verb}`,
      retry: {
        safe: { with: 'lock_token' },
        why,
        done: { code: 'INVALID_STATE', status, read: 'getItem' },
      },
    },
    cli: {
      usage: `dlq ${verb} <id>`,
      about,
      examples: [`waystation dlq ${verb} ${example} --token <token>`],
      options: { lock_token: token_option },
    },
    auth: ['agent'],
    frozen: 'allowed', // for the holder of a lock_token
    shed: 'report',
    params: { id },
    body: LeaveBody,
    replies: { 200: { body: Item } },
    emits: [verb === 'release' ? 'dlq.released' : 'dlq.archived'],
    errors: ['DLQ_NOT_FOUND', 'INVALID_STATE', 'LOCK_NOT_HELD', ...of_agents],
    async handle({ db, caller }, { params, body }) {
      return itemOf(await end(db, caller, params.id, body.lock_token))
    },
  })
}

export const resolveItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/resolve',
  tag,
  summary: 'Mark the item as resolved',
  description: 'Works from any status; a repeat changes nothing.',
  sdk: { name: 'dlq.resolve', retry: { safe: true, why: 'resolving a resolved item answers the same' } },
  cli: {
    usage: 'dlq resolve <id>',
    about: 'Mark a dead letter as resolved',
    examples: [`waystation dlq resolve ${example} --token <token>`],
    options: { lock_token: token_option },
  },
  auth: ['agent'],
  frozen: 'allowed', // for the holder of a lock_token
  shed: 'report',
  params: { id },
  body: LeaveBody,
  replies: { 200: { body: Item } },
  emits: ['dlq.resolved', 'dlq.lock_expired'],
  errors: ['DLQ_NOT_FOUND', 'INVALID_STATE', 'LOCK_NOT_HELD', ...of_agents],
  async handle({ db, caller }, { params, body }) {
    return itemOf(await dlq.resolve(db, caller, params.id, body.lock_token))
  },
})
