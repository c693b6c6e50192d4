// /v1/effects/{id}/…: what became of an effect.

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Text } from '../contract/schemas.ts'
import { leaseMs, note_characters_max, outcomes } from './effect.ts'
import * as reports from './report-service.ts'
import { resolve } from './resolve-service.ts'
import { Effect, effect_report, effectOf, id, LeaseSeconds, LeaseToken, Result, tag } from './shapes.ts'

const example = 'eff_01m7yjrz37hxnv52px0106nehd'
const token = 'lse_01m7yjrz37hxnv52px0106nehe'
const token_option = ['--token <lease_token>', 'the token of the lease'] as const
const ErrorText = Text(note_characters_max, 'Why it did not happen.')

export const extendEffect = route({
  group: v1,
  method: 'POST',
  path: '/v1/effects/:id/extend',
  tag,
  frozen: 'allowed', // for the holder of the lease
  shed: 'report',
  summary: 'Extend the lease to lease_seconds from now',
  description: 'Only for the holder of the lease. Its fence stays the same.',
  sdk: { name: 'effects.extend', retry: { safe: true, why: 'the token names one lease' } },
  cli: {
    usage: 'effect extend <id>',
    about: 'Extend the lease',
    examples: [`waystation effect extend ${example} --token ${token} --lease 2m`],
    options: {
      lease_seconds: ['--lease <duration>', 'how long from now; default the length of the lease'],
      lease_token: token_option,
    },
  },
  auth: ['agent'],
  params: { id },
  body: Type.Object({ lease_token: LeaseToken, lease_seconds: LeaseSeconds }, effect_report),
  replies: { 200: { body: Effect } },
  emits: ['effect.extended'],
  errors: ['EFFECT_NOT_FOUND', 'EFFECT_NOT_HELD'],
  async handle({ db, caller }, { params, body }) {
    const lease_ms = leaseMs(body.lease_seconds)
    return effectOf(await reports.extend(db, caller, params.id, body.lease_token, lease_ms))
  },
})

export const succeedEffect = route({
  group: v1,
  method: 'POST',
  path: '/v1/effects/:id/succeed',
  tag,
  frozen: 'allowed', // for the holder of the lease
  shed: 'report',
  summary: 'Report that it happened',
  description:
    'Accepted even after the lease has run out, until somebody has started it again or resolved it. A repeat gets the same answer.',
  sdk: {
    name: 'effects.succeed',
    retry: { safe: true, why: 'the token names one lease; a repeat answers the same' },
  },
  cli: {
    usage: 'effect succeed <id> [result]',
    about: 'Report that it happened',
    examples: [`waystation effect succeed ${example} '{"refund": "re_9"}' --token ${token}`],
    options: { lease_token: token_option },
  },
  auth: ['agent'],
  params: { id },
  body: Type.Object({ lease_token: LeaseToken, result: Result }, effect_report),
  replies: { 200: { body: Effect } },
  emits: ['effect.succeeded', 'checkpoint.cancelled'],
  errors: ['EFFECT_NOT_FOUND', 'EFFECT_NOT_HELD'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { lease_token, result } = body
    const success = { lease_token, result: result?.text ?? null }
    return effectOf(await reports.succeed(db, caller, dependencies, params.id, success))
  },
})

export const failEffect = route({
  group: v1,
  method: 'POST',
  path: '/v1/effects/:id/fail',
  tag,
  frozen: 'allowed', // for the holder of the lease
  shed: 'report',
  summary: 'Report that it did not happen',
  description:
    'Without `retry` this is final; with it, the effect may be started again. A repeat gets the same answer.',
  sdk: {
    name: 'effects.fail',
    retry: { safe: true, why: 'the token names one lease; a repeat answers the same' },
  },
  cli: {
    usage: 'effect fail <id> <error>',
    about: 'Report that it did not happen',
    examples: [`waystation effect fail ${example} "card declined" --token ${token}`],
    options: { lease_token: token_option, retry: ['--retry', 'it may be started again'] },
  },
  auth: ['agent'],
  params: { id },
  body: Type.Object(
    {
      lease_token: LeaseToken,
      error: ErrorText,
      retry: Type.Optional(
        Type.Boolean({
          description: 'True: it did not happen, and may be started again. Default false: final.',
        }),
      ),
    },
    effect_report,
  ),
  replies: { 200: { body: Effect } },
  emits: ['effect.failed', 'effect.retried', 'checkpoint.cancelled'],
  errors: ['EFFECT_NOT_FOUND', 'EFFECT_NOT_HELD'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { lease_token, error, retry = false } = body
    const failure = { lease_token, error, retry }
    return effectOf(await reports.fail(db, caller, dependencies, params.id, failure))
  },
})

export const resolveEffect = route({
  group: v1,
  method: 'POST',
  path: '/v1/effects/:id/resolve',
  tag,
  summary: 'Decide what became of an effect with an unknown outcome',
  description:
    'Look at its target first. An effect that is free again, or approved, may also be closed. A repeat gets the same answer. With `fence`, a lease granted in the meantime is left alone: 409, with the current `fence` in the details.',
  sdk: {
    name: 'effects.resolve',
    retry: { safe: { with: 'fence' }, why: 'with the number of the lease a repeat never frees the next one' },
  },
  cli: {
    usage: 'effect resolve <id> <outcome> [result]',
    about: 'Decide what became of an effect with an unknown outcome',
    examples: [`waystation effect resolve ${example} succeeded '{"refund": "re_9"}'`],
    options: {
      error: ['--error <text>', 'why it did not happen'],
      fence: ['--fence <n>', 'only the lease of this number'],
    },
  },
  auth: ['admin'],
  params: { id },
  body: Type.Object(
    {
      outcome: Type.Enum([...outcomes], {
        description:
          'succeeded: it happened. failed: it did not, and will not. retry: it did not, and may be started.',
      }),
      result: Result,
      error: Type.Optional(ErrorText),
      fence: Type.Optional(
        Type.Integer({
          minimum: 0,
          description: 'The `fence` of the effect that you looked at: 409 when it has another one now.',
        }),
      ),
    },
    effect_report,
  ),
  replies: { 200: { body: Effect } },
  shed: 'last',
  emits: ['effect.resolved', 'checkpoint.cancelled'],
  errors: ['EFFECT_NOT_FOUND', 'INVALID_STATE'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { outcome, result, error = null, fence = null } = body
    const verdict = {
      ...{ outcome, fence },
      result: outcome === 'succeeded' ? (result?.text ?? null) : null,
      error: outcome === 'failed' ? error : null,
    }
    return effectOf(await resolve(db, caller, dependencies, params.id, verdict))
  },
})
