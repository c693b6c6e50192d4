// The types of this feature's events.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { declareEvents } from '../contract/event.ts'
import { Nullable, Time } from '../contract/schemas.ts'
import { attempted_data } from '../jobs/attempts.ts'

const ResolvedBy = Type.String({ description: 'admin, approval_key:<id>, timeout or agent:<id>.' })
const Attempts = Type.Integer({ description: 'The attempts that were made.' })

export const events = declareEvents({
  'checkpoint.created': {
    about: 'An agent asked; its workflow waits for the decision.',
    subject: 'checkpoint',
    data: {
      title: Type.String({ description: 'The first 200 characters of the question.' }),
      expires_at: Time('When the timeout is due.'),
    },
    waiting: 1,
  },
  'checkpoint.voted': {
    about: 'Somebody voted on it. The vote that settles it also leaves the event of the decision.',
    subject: 'checkpoint',
    data: {
      decision: Type.Enum(['approved', 'rejected'], { description: 'The vote.' }),
      approvals: Type.Integer({ description: 'Approvals that count, including this one.' }),
      rejections: Type.Integer({ description: 'Rejections that count, including this one.' }),
      edited: Type.Boolean({ description: 'True when it changed the payload.' }),
      voided: Type.Integer({ description: 'Votes that no longer count because the payload was changed.' }),
    },
  },
  'checkpoint.escalated': {
    about: 'Nobody decided it in time, so others may now decide it as well.',
    subject: 'checkpoint',
    data: {
      step: Type.Integer({ description: 'The step of `escalate`, from 1.' }),
      approvers: Nullable(
        Type.String({
          description: 'The approvers that it names, separated by spaces; null: anybody with a key for it.',
        }),
      ),
    },
  },
  'checkpoint.commented': {
    about: 'Somebody commented on it.',
    subject: 'checkpoint',
    data: { comment_id: Type.String({ description: 'The comment.' }) },
  },
  'checkpoint.approved': settled('It was approved.'),
  'checkpoint.rejected': settled('It was rejected, by a person or by its timeout.'),
  'checkpoint.expired': settled('Nobody decided in time, and its timeout_action is dlq.'),
  'checkpoint.cancelled': settled('It was cancelled before a decision.'),
  'checkpoint.revoked': {
    about: 'The approval of an effect was revoked: nothing starts under it any more.',
    subject: 'checkpoint',
    data: {},
  },
  'callback.attempted': {
    about: 'The decision was sent to the agent. What follows is a separate event.',
    subject: 'checkpoint',
    data: attempted_data,
  },
  'callback.delivered': {
    about: 'A receiver accepted the decision.',
    subject: 'checkpoint',
    data: { attempts: Attempts },
  },
  'callback.failed': {
    about: 'No receiver accepted the decision, and no attempt is left. The decision stands.',
    subject: 'checkpoint',
    data: {
      attempts: Attempts,
      last_error: Nullable(
        Type.String({ description: 'The error of the last attempt: a class, or `status 503`.' }),
      ),
      dead_letter_id: Type.String({ description: 'The dead letter that the failure left.' }),
    },
  },
  'callback.redriven': {
    about: 'A decision that could not be delivered is sent again.',
    subject: 'checkpoint',
    data: { redrive_of: Type.String({ description: 'The dead letter that it sends again.' }) },
  },
  'approval_key.used': {
    about: 'A checkpoint was decided, or voted on, with an approval key.',
    subject: 'approval_key',
    data: {
      checkpoint_id: Type.String({ description: 'The checkpoint.' }),
      decision: Type.Enum(['approved', 'rejected'], { description: 'What was decided.' }),
    },
  },
})

/** The workflow of a settled checkpoint no longer waits for it. */
function settled(about: string) {
  return { about, subject: 'checkpoint', data: { resolved_by: ResolvedBy }, waiting: -1 } as const
}

const title_characters_max = limit(
  'checkpoints.event_title',
  200,
  'characters',
  'The beginning of a title that its event shows.',
)

/** The beginning of a title, as its event has it. */
export function shownTitle(title: string): string {
  return title.length <= title_characters_max ? title : [...title].slice(0, title_characters_max).join('')
}
