// /v1/effects/{id}: an effect, and its start.

import { Type } from 'typebox'
import { second_ms } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { waitFor, waitKey } from '../contract/wait.ts'
import { requireReleased } from '../quarantine/service.ts'
import { leaseMs, wait_seconds_max } from './effect.ts'
import {
  ClaimedEffect,
  claimedOf,
  Effect,
  effect_report,
  effectOf,
  id,
  LeaseSeconds,
  OwnLeaseToken,
  tag,
} from './shapes.ts'
import * as starts from './start-service.ts'

const example = 'eff_01m7yjrz37hxnv52px0106nehd'

export const startEffect = route({
  group: v1,
  method: 'POST',
  path: '/v1/effects/:id/start',
  tag,
  summary: 'Start an effect that is approved, or free again',
  description: 'Of any number of callers exactly one gets the lease.',
  sdk: {
    name: 'effects.start',
    retry: { safe: { with: 'lease_token' }, why: 'with a token of your own a repeat gets the same lease' },
  },
  cli: {
    usage: 'effect start <id>',
    about: 'Start an effect that is approved, or free again',
    examples: [`waystation effect start ${example}`],
    options: {
      payload_hash: ['--payload-hash <hex>', 'refuse any other bytes'],
      lease_seconds: ['--lease <duration>', 'how long the lease holds; default as long as the previous one'],
      lease_token: ['--token <text>', 'random text of your own for the lease'],
    },
  },
  auth: ['agent'],
  params: { id },
  body: Type.Object(
    {
      payload_hash: Type.Optional(
        Type.String({
          pattern: '^[0-9a-f]{64}$',
          description:
            'The SHA-256 of the bytes that you are about to act on, in hex: any other bytes are refused.',
        }),
      ),
      lease_seconds: LeaseSeconds,
      lease_token: OwnLeaseToken,
    },
    effect_report,
  ),
  replies: { 200: { body: ClaimedEffect } },
  emits: ['effect.started', 'effect.rejected', 'effect.unknown'],
  errors: [
    ...(['EFFECT_NOT_FOUND', 'EFFECT_IN_FLIGHT', 'EFFECT_UNKNOWN', 'EFFECT_NOT_HELD'] as const),
    ...(['EFFECT_KEY_REUSED', 'EFFECT_REJECTED', 'EFFECT_APPROVAL_REQUIRED', 'INVALID_STATE'] as const),
    'QUARANTINED',
  ],
  async handle({ db, caller, dependencies }, { params, body }) {
    requireReleased(dependencies.service.quarantine)
    const { payload_hash = '', lease_token = null } = body
    const start = { payload_hash, lease_token, lease_ms: leaseMs(body.lease_seconds) }
    return claimedOf(await starts.start(db, caller, dependencies, params.id, start), dependencies.urls)
  },
})

export const getEffect = route({
  group: v1,
  method: 'GET',
  path: '/v1/effects/:id',
  tag,
  summary: 'Read an effect, or wait until it is decided or has ended',
  description:
    'With `wait`, the answer comes when the effect neither waits for its approval nor runs, or after that many seconds.',
  sdk: { name: 'effects.get' },
  cli: { usage: 'effect get <id>', about: 'Read an effect' },
  auth: ['agent', 'admin'],
  params: { id },
  query: Type.Object({
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: wait_seconds_max,
        description: 'Seconds to hold the request while the effect waits for its approval, or runs.',
      }),
    ),
  }),
  replies: { 200: { body: Effect } },
  errors: ['EFFECT_NOT_FOUND'],
  async handle(context, { params, query }) {
    const { tenant_id } = context.caller
    const effect = await waitFor(context, {
      key: waitKey(tenant_id, params.id),
      wait_ms: (query.wait ?? 0) * second_ms,
      look: () => starts.read(context.db, tenant_id, params.id),
      isDone: ({ status }) => status !== 'awaiting_approval' && status !== 'running',
    })
    return effectOf(effect)
  },
})
