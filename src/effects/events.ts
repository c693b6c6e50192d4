// The types of this feature's events.

import { Type } from 'typebox'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'
import { outcomes, refusals } from './effect.ts'

/** Every event of an effect has these. */
const about_data = {
  type: Type.String({ description: 'The type of the effect.' }),
  key: Type.String({ description: 'Its key.' }),
  payload_hash: Type.String({ description: 'The SHA-256 of the payload that was proposed, in hex.' }),
  effective_hash: Nullable(
    Type.String({ description: 'The SHA-256 of the payload that an approver put in its place.' }),
  ),
  fence: Type.Integer({ description: 'The number of its last lease; 0 before the first.' }),
}
const lease_data = {
  ...about_data,
  lease_until: Time('When the lease ends.'),
  checkpoint_id: Nullable(Type.String({ description: 'The approval under which it began, if any.' })),
}

export const events = declareEvents({
  'effect.claimed': {
    about: 'An agent has the lease of a new effect.',
    subject: 'effect',
    data: lease_data,
  },
  'effect.proposed': {
    about: 'An agent asked for the approval of an effect.',
    subject: 'effect',
    data: { ...about_data, checkpoint_id: Type.String({ description: 'The checkpoint that decides.' }) },
  },
  'effect.approved': {
    about: 'It was approved, and may be started.',
    subject: 'effect',
    data: {
      ...about_data,
      checkpoint_id: Type.String({ description: 'The checkpoint that decided.' }),
      permit_expires_at: Nullable(Time('Until when it may be started; null: no limit.')),
      uses: Type.Integer({ description: 'How many effects may start under the approval.' }),
    },
  },
  'effect.rejected': {
    about: 'Its approval was refused: it will not happen.',
    subject: 'effect',
    data: {
      ...about_data,
      checkpoint_id: Type.String({ description: 'The checkpoint that decided.' }),
      status: Type.Enum([...refusals], { description: 'How the approval ended.' }),
    },
  },
  'effect.started': {
    about: 'An agent has another lease of it, or the first one after its approval.',
    subject: 'effect',
    data: lease_data,
  },
  'effect.extended': {
    about: 'The holder of the lease extended it.',
    subject: 'effect',
    data: lease_data,
  },
  'effect.succeeded': {
    about: 'The holder of the lease reported that it happened.',
    subject: 'effect',
    data: about_data,
    failing: -1,
  },
  'effect.failed': {
    about: 'The holder of the lease reported that it did not happen, and will not.',
    subject: 'effect',
    data: about_data,
    failing: -1,
  },
  'effect.retried': {
    about: 'The lease ended, and it may be started again.',
    subject: 'effect',
    data: {
      ...about_data,
      ran_out: Type.Boolean({
        description: 'True when the lease ran out, false when its holder released it.',
      }),
    },
    failing: -1,
  },
  'effect.unknown': {
    about: 'The lease ran out: nobody knows whether it happened.',
    subject: 'effect',
    data: {
      ...about_data,
      checkpoint_id: Nullable(
        Type.String({ description: 'The checkpoint that asks a person, if one does.' }),
      ),
    },
    failing: 1,
  },
  'effect.resolved': {
    about: 'A person decided what became of it.',
    subject: 'effect',
    data: {
      ...about_data,
      outcome: Type.Enum([...outcomes], { description: 'What was decided.' }),
      resolved_by: Type.String({ description: 'admin, or approval_key:<id>.' }),
    },
    failing: -1,
  },
  'effect_policy.updated': {
    about: 'The policy for a type of effects was set.',
    subject: 'effect_policy',
    data: {
      approval: Type.Enum(['optional', 'required'], { description: 'Whether effects need an approval.' }),
      required_approvals: Type.Integer({ description: 'The minimum number of approvals.' }),
      approvers: Nullable(
        Type.String({
          description: 'Those who may approve, separated by spaces; null: anybody with a key for it.',
        }),
      ),
      lease_seconds_max: Nullable(Type.Integer({ description: 'The longest lease.' })),
    },
  },
  'effect_policy.deleted': {
    about: 'The policy for a type of effects was deleted.',
    subject: 'effect_policy',
    data: {},
  },
})
