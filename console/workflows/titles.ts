// Types of events in words. A type that is not listed is said by its name, so that new ones show as well.

import { shown } from '../text/words.ts'
import type { Tone } from '../ui/basics.tsx'
import type { JournalEvent } from './event.ts'

interface Words {
  title: string | ((event: JournalEvent) => string)
  /** Where only the type is known, and the title needs more. */
  short?: string
  tone?: Tone
}

const subject_agent = ({ subject }: JournalEvent) => shown(subject.id)
const times = (event: JournalEvent) => Number(event.data.attempts ?? 1)
const tries = (event: JournalEvent) => (times(event) > 1 ? ` after ${times(event)} attempts` : '')
const effectOf = ({ data }: JournalEvent) => `${data.type} ${data.key}`
const verdicts: Record<string, string> = {
  succeeded: 'Decided: it happened',
  failed: 'Decided: it did not happen',
  retry: 'Decided: it may be started again',
}
const keyOf = ({ data }: JournalEvent) => `${data.namespace}/${data.key}`

const words: Record<string, Words> = {
  'checkpoint.created': { title: 'Asked for a decision', tone: 'accent' },
  'checkpoint.approved': { title: 'Approved', tone: 'good' },
  'checkpoint.rejected': {
    title: ({ data }) => (data.resolved_by === 'timeout' ? 'Rejected: the time ran out' : 'Rejected'),
    tone: 'bad',
  },
  'checkpoint.expired': { title: 'Expired: nobody decided in time', tone: 'warn' },
  'checkpoint.cancelled': { title: 'Withdrawn' },
  'checkpoint.revoked': { title: 'The approval was revoked', tone: 'bad' },
  'callback.attempted': {
    title: ({ data }) =>
      data.error
        ? `Delivery attempt ${data.attempt} failed`
        : `The decision was taken at attempt ${data.attempt}`,
    short: 'Tried to deliver the decision',
    tone: 'warn',
  },
  'callback.redriven': { title: 'The decision is sent again', tone: 'accent' },
  'callback.delivered': { title: (event) => `The decision was delivered${tries(event)}`, tone: 'good' },
  'callback.failed': { title: (event) => `The decision was not delivered${tries(event)}`, tone: 'bad' },
  'checkpoint.voted': {
    title: ({ data }) => (data.decision === 'rejected' ? 'A vote to reject' : 'A vote to approve'),
    short: 'A vote',
    tone: 'accent',
  },
  'checkpoint.escalated': { title: 'More people may decide', tone: 'warn' },
  'checkpoint.commented': { title: 'Commented' },
  'effect.claimed': {
    title: (event) => `Began ${effectOf(event)}`,
    short: 'Began an effect',
    tone: 'accent',
  },
  'effect.proposed': {
    title: (event) => `Asked to do ${effectOf(event)}`,
    short: 'Asked to do an effect',
    tone: 'accent',
  },
  'effect.approved': {
    title: ({ data }) => (data.effective_hash ? 'It may be started, as it was changed' : 'It may be started'),
    short: 'An effect was approved',
    tone: 'good',
  },
  'effect.rejected': { title: 'It will not be done', short: 'An effect was rejected', tone: 'bad' },
  'effect.started': {
    title: (event) => `Started ${effectOf(event)}`,
    short: 'Started an effect',
    tone: 'accent',
  },
  'effect.extended': { title: 'The lease was extended' },
  'effect.succeeded': {
    title: (event) => `Did ${effectOf(event)}`,
    short: 'Did an effect',
    tone: 'good',
  },
  'effect.failed': {
    title: (event) => `${effectOf(event)} did not happen`,
    short: 'An effect did not happen',
    tone: 'bad',
  },
  'effect.retried': {
    title: ({ data }) =>
      data.ran_out ? 'The lease ran out: it may be started again' : 'Released: it may be started again',
    short: 'An effect may be started again',
    tone: 'warn',
  },
  'effect.unknown': {
    title: (event) => `Nobody knows whether ${effectOf(event)} happened`,
    short: 'Nobody knows whether an effect happened',
    tone: 'bad',
  },
  'effect.resolved': {
    title: ({ data }) => verdicts[String(data.outcome)] ?? 'It was decided what came of it',
    short: 'It was decided what came of an effect',
    tone: 'good',
  },
  'effect_policy.updated': {
    title: ({ subject }) => `The policy for ${shown(subject.id)} was set`,
    short: 'A policy for effects was set',
  },
  'effect_policy.deleted': {
    title: ({ subject }) => `The policy for ${shown(subject.id)} was deleted`,
    short: 'A policy for effects was deleted',
  },
  'schedule.created': { title: 'A call was scheduled', tone: 'accent' },
  'schedule.updated': { title: 'The call was changed' },
  'schedule.cancelled': { title: 'The call was cancelled' },
  'schedule.attempted': {
    title: ({ data }) =>
      data.error ? `Attempt ${data.attempt} failed` : `Attempt ${data.attempt} was delivered`,
    short: 'Tried to call',
    tone: 'warn',
  },
  'schedule.fired': { title: (event) => `The call was delivered${tries(event)}`, tone: 'good' },
  'schedule.failed': { title: (event) => `The call failed${tries(event)}`, tone: 'bad' },
  'schedule.retried': { title: 'The call was scheduled again', tone: 'accent' },
  'schedule.workflow_left': { title: 'The call was moved to another workflow' },
  'schedule.workflow_joined': { title: 'The call was moved here from another workflow', tone: 'accent' },
  'dlq.created': { title: 'Left a dead letter', tone: 'bad' },
  'dlq.reopened': { title: 'The dead letter is open again', tone: 'bad' },
  'dlq.extended': { title: 'The claim was extended' },
  'dlq.claimed': { title: 'The dead letter was claimed', tone: 'accent' },
  'dlq.released': { title: 'The dead letter was released' },
  'dlq.lock_expired': { title: 'The lock of the dead letter ended', tone: 'warn' },
  'dlq.archived': { title: 'The dead letter was discarded' },
  'dlq.resolved': {
    title: ({ data }) =>
      data.redriven_as ? 'The dead letter was sent again' : 'The dead letter was resolved',
    tone: 'good',
  },
  'dlq.deleted': { title: 'The dead letter was deleted' },
  'inbox.created': { title: 'An inbox was created' },
  'inbox.deleted': { title: ({ data }) => (data.expired ? 'The inbox expired' : 'The inbox was deleted') },
  'message.received': { title: 'A message arrived', tone: 'accent' },
  'message.replayed': { title: 'The message is forwarded again', tone: 'accent' },
  'message.forwarded': { title: 'The message was forwarded', tone: 'good' },
  'message.forward_failed': { title: 'The message could not be forwarded', tone: 'bad' },
  'kv.put': { title: (event) => `Wrote ${keyOf(event)}`, short: 'Wrote a key' },
  'kv.deleted': { title: (event) => `Deleted ${keyOf(event)}`, short: 'Deleted a key' },
  'kv.expired': { title: (event) => `${keyOf(event)} expired`, short: 'A key expired' },
  'agent.created': {
    title: (event) => `The agent ${subject_agent(event)} was created`,
    short: 'An agent was created',
  },
  'agent.key_rotated': {
    title: (event) => `The key of ${subject_agent(event)} was rotated`,
    short: 'The key of an agent was rotated',
  },
  'agent.paused': {
    title: (event) => `The agent ${subject_agent(event)} was paused`,
    short: 'An agent was paused',
    tone: 'warn',
  },
  'agent.resumed': {
    title: (event) => `The agent ${subject_agent(event)} was resumed`,
    short: 'An agent was resumed',
  },
  'agent.mode_changed': {
    title: (event) => `The mode of ${subject_agent(event)} was changed`,
    short: 'The mode of an agent was changed',
  },
  'agent.deleted': {
    title: (event) => `The agent ${subject_agent(event)} was deleted`,
    short: 'An agent was deleted',
  },
  'approval_key.created': { title: 'An approval key was created' },
  'approval_key.used': { title: 'An approval key was used' },
  'approval_key.revoked': { title: 'An approval key was revoked' },
  'audit.appended': { title: ({ data }) => String(data.action), short: 'An audit entry' },
  'dlq_operation.created': { title: 'An operation on many dead letters began', tone: 'accent' },
  'dlq_operation.succeeded': { title: 'An operation on many dead letters ended', tone: 'good' },
  'dlq_operation.cancelled': { title: 'An operation on many dead letters was cancelled' },
  'kv.events_enabled': {
    title: ({ data }) => `${data.namespace} leaves events from now on`,
    short: 'A namespace leaves events',
  },
  'kv.events_disabled': {
    title: ({ data }) => `${data.namespace} leaves no events any more`,
    short: 'A namespace leaves no events',
  },
  'tenant.created': { title: 'The tenant was created', tone: 'accent' },
  'tenant.key_rotated': { title: 'The admin key was rotated' },
  'tenant.keys_revoked': { title: 'All keys of the tenant were revoked' },
  'tenant.signing_secret_rotated': { title: 'The signing secret was rotated' },
  'tenant.plan_changed': { title: 'The plan was changed' },
  'tenant.storage_changed': { title: 'The storage limit was changed' },
  'tenant.frozen': { title: 'Everything was stopped', tone: 'bad' },
  'tenant.resumed': { title: 'Everything was resumed', tone: 'good' },
  'tenant.deleted': { title: 'The tenant was deleted', tone: 'bad' },
  'tenant.restored': { title: 'The tenant was restored', tone: 'good' },
  'seal.restored': { title: 'The service was restored from a backup' },
  'seal.checkpoint': { title: 'A checkpoint of the seal was kept' },
  'subscription.created': { title: 'A subscription was created' },
  'subscription.confirmed': { title: 'The address of a subscription was confirmed', tone: 'good' },
  'subscription.updated': { title: 'A subscription was changed' },
  'subscription.paused': { title: 'A subscription was paused', tone: 'warn' },
  'subscription.resumed': { title: 'A subscription was resumed' },
  'subscription.replayed': { title: 'A subscription delivers again' },
  'subscription.deleted': { title: 'A subscription was deleted' },
}

export function titleOf(event: JournalEvent): string {
  const known = words[event.type]
  if (!known) return named(event.type)
  return shown(typeof known.title === 'string' ? known.title : known.title(event))
}

/** The title of an event of which only the type is known. */
export function titleOfType(type: string): string {
  const known = words[type]
  if (!known) return named(type)
  // Titles without a short form need nothing of the event to make a sentence.
  return known.short ?? titleOf({ type, data: {} } as JournalEvent)
}

export function toneOf({ type, data }: JournalEvent): Tone {
  if (type.endsWith('.attempted') && !data.error) return 'good'
  return words[type]?.tone ?? 'neutral'
}

/** `dlq.lock_expired` is `Dlq lock expired`. */
function named(type: string): string {
  const text = shown(type).replace(/[._]/g, ' ')
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** The one who did it, as part of a sentence. */
export function actorInWords(actor: string): string {
  const others: Record<string, string> = {
    admin: 'an administrator',
    service: 'the service',
    operator: 'the operator of the service',
    anonymous: 'a sender outside',
  }
  if (Object.hasOwn(others, actor)) return others[actor]!
  return actor.startsWith('approval_key:') ? `the approval key ${shown(actor.slice(13))}` : shown(actor)
}
