// /v1/effect-policies: the terms that an admin sets, whatever agents ask for.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { v1 } from '../contract/group.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import { route } from '../contract/route.ts'
import { Page, PageQuery } from '../contract/schemas.ts'
import { lease_seconds_max } from './effect.ts'
import { approval_rules } from './policy.ts'
import * as policies from './policy-service.ts'
import { EffectPolicy, policyOf, policy_type as type } from './policy-shapes.ts'
import { list } from './policy-store.ts'

const tag = 'Effects'
const approvals_max = limit(
  'effects.policy_approvals',
  10,
  'entries',
  'The largest number of approvals that a policy may require. Past it 400.',
)
const approvers_max = limit(
  'effects.policy_approvers',
  50,
  'entries',
  'Approvers that a policy names. Past it 400.',
)

export const listEffectPolicies = route({
  group: v1,
  method: 'GET',
  path: '/v1/effect-policies',
  tag,
  summary: 'List the policies for effects, by type',
  description: 'A type without a policy is not listed.',
  sdk: { name: 'effectPolicies.list' },
  cli: {
    usage: 'effect-policy list',
    group: 'What effects need, whatever their agents say',
    columns: ['type', 'approval', 'required_approvals', 'approvers', 'lease_seconds_max'],
  },
  auth: ['agent', 'admin'],
  query: Type.Object(PageQuery),
  replies: { 200: { body: Page(EffectPolicy) } },
  errors: [],
  async handle(context, { query }) {
    const request = pageRequest(context, query)
    const after = request.after ? String(request.after[0]) : ''
    const rows = await list(context.db, context.caller.tenant_id, after, request.rows_max)
    return pageOf(context, request, { rows, itemOf: policyOf, positionOf: (row) => [row.type] })
  },
})

export const getEffectPolicy = route({
  group: v1,
  method: 'GET',
  path: '/v1/effect-policies/:type',
  tag,
  summary: 'Read the policy for a type of effects',
  description: 'Answers 404 while there is none for this type.',
  sdk: { name: 'effectPolicies.get' },
  cli: { usage: 'effect-policy get <type>', examples: ['waystation effect-policy get refund'] },
  auth: ['agent', 'admin'],
  params: { type },
  replies: { 200: { body: EffectPolicy } },
  errors: ['EFFECT_POLICY_NOT_FOUND'],
  async handle({ db, caller }, { params }) {
    return policyOf(await policies.read(db, caller.tenant_id, params.type))
  },
})

export const setEffectPolicy = route({
  group: v1,
  method: 'PUT',
  path: '/v1/effect-policies/:type',
  tag,
  summary: 'Set the minimum that effects of a type need',
  description:
    'Applies from now on: effects that are under way keep what they began with. Fields left out get their defaults.',
  sdk: {
    name: 'effectPolicies.set',
    retry: { safe: false, why: 'a repeat could undo a policy that was set in between' },
  },
  cli: {
    usage: 'effect-policy set <type>',
    about: 'Set the minimum that effects of a type need',
    examples: ['waystation effect-policy set refund --approval required --approvals 2'],
    options: {
      approval: ['--approval <rule>', 'optional, or required'],
      required_approvals: ['--approvals <n>', 'the minimum number of approvals; default 1'],
      approvers: ['--approvers <list>', 'ids of approval keys, or admin, comma-separated'],
      lease_seconds_max: ['--lease-max <duration>', 'the longest lease'],
    },
  },
  auth: ['admin'],
  params: { type },
  body: Type.Object({
    approval: Type.Enum([...approval_rules], {
      description: 'required: an effect that asks for no approval still gets one.',
    }),
    required_approvals: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: approvals_max,
        description: 'The minimum number of approvals; default 1.',
      }),
    ),
    approvers: Type.Optional(
      Type.Array(
        Type.String({ pattern: '^(admin|apk_[0-9a-z]{26})$', description: 'An approval key, or admin.' }),
        {
          minItems: 1,
          maxItems: approvers_max,
          description: 'Those who may approve; default anybody with a key for it.',
        },
      ),
    ),
    lease_seconds_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: lease_seconds_max,
        description: 'The longest lease; default any.',
      }),
    ),
  }),
  replies: { 200: { body: EffectPolicy } },
  emits: ['effect_policy.updated'],
  errors: ['QUOTA_EXCEEDED'],
  async handle({ db, caller, dependencies }, { params, body }) {
    const { approval, required_approvals = 1, approvers, lease_seconds_max } = body
    const policy = await policies.set(db, caller, dependencies, {
      ...{ type: params.type, approval, required_approvals, lease_seconds_max: lease_seconds_max ?? null },
      approvers: approvers === undefined ? null : JSON.stringify([...new Set(approvers)]),
    })
    return policyOf(policy)
  },
})

export const deleteEffectPolicy = route({
  group: v1,
  method: 'DELETE',
  path: '/v1/effect-policies/:type',
  tag,
  summary: 'Delete the policy for a type of effects',
  description: 'Effects of this type then need only what their claims ask for.',
  sdk: {
    name: 'effectPolicies.delete',
    retry: { safe: false, why: 'a repeat could delete a policy that was set in between' },
  },
  cli: { usage: 'effect-policy delete <type>', examples: ['waystation effect-policy delete refund'] },
  auth: ['admin'],
  destructive: true,
  params: { type },
  replies: { 204: { body: null } },
  emits: ['effect_policy.deleted'],
  errors: ['EFFECT_POLICY_NOT_FOUND'],
  handle: ({ db, caller }, { params }) => policies.remove(db, caller, params.type),
})
