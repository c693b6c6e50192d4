// A request that takes more than a plain decision, and the body of a decision.

import type { Checkpoint } from '../../sdk/src/types.ts'
import type { Result } from '../api/client.ts'
import { exactMember } from '../text/json.ts'
import type { AnswerSchema } from './answer-form.tsx'

export type Verb = 'approve' | 'reject'

type Told = Pick<
  Checkpoint,
  | 'status'
  | 'answer_schema'
  | 'required_approvals'
  | 'required_rejections'
  | 'approvals'
  | 'rejections'
  | 'comments'
  | 'editable'
  | 'effect'
>

/** All that a request takes beside a plain decision. Payloads are exact texts. */
export interface Steered extends Omit<Told, 'answer_schema'> {
  answer_schema: AnswerSchema | null
  /** The payload of an effect as it was proposed, `null` for JSON null; null without one, and where it was removed. */
  proposed: string | null
  /** The change that the votes are for. */
  edited: string | null
  /** Of the payload that the votes are for, in hex; null without one. */
  present_hash: string | null
  /** The change that was approved. */
  effective: string | null
  /** The key of the page is an approver. */
  may_decide: boolean
  /** The vote of the key of the page; unknown until the votes are read. */
  voted: 'approved' | 'rejected' | 'unknown' | null
}

/** `text`: the answer as it came. `name`: the member with the payload of the effect. */
export function steeredOf(
  told: Told,
  { text, name, ...own }: { text: string; name: string } & Pick<Steered, 'may_decide' | 'voted'>,
): Steered {
  const [edited, effective] = [exactMember(text, 'edited_payload'), exactMember(text, 'effective_payload')]
  // JSON null is shown as no payload is, but has a hash.
  const proposed = exactMember(text, name) ?? (exactMember(text, `${name}_hash`) === null ? null : 'null')
  const hash = exactMember(text, 'edited_payload_hash') ?? exactMember(text, `${name}_hash`)
  const present_hash = hash === null ? null : (JSON.parse(hash) as string)
  const answer_schema = told.answer_schema as AnswerSchema | null
  return { ...told, ...own, answer_schema, proposed, edited, present_hash, effective }
}

/** The change that the votes so far are for, and how many there are. */
export type Standing = Pick<Steered, 'edited' | 'approvals' | 'rejections'>

/** `text`: the answer as it came. */
export function standingOf(result: Result<Omit<Standing, 'edited'>>): Result<Standing> {
  if (!result.ok) return result
  const { approvals, rejections } = result.value
  return { ...result, value: { approvals, rejections, edited: exactMember(result.text, 'edited_payload') } }
}

/** The body of a decision, with payloads as they are written. */
export function decisionText(decision: Decision): string {
  const { reason, answer, effective_payload, expected_hash, uses, expires_at } = decision
  const members = [
    ...(reason === '' ? [] : [`"reason":${JSON.stringify(reason)}`]),
    ...(answer === undefined ? [] : [`"answer":${JSON.stringify(answer)}`]),
    ...(effective_payload === undefined ? [] : [`"effective_payload":${effective_payload}`]),
    ...(expected_hash === undefined ? [] : [`"expected_hash":${JSON.stringify(expected_hash)}`]),
    ...(uses === undefined ? [] : [`"uses":${JSON.stringify(uses)}`]),
    ...(expires_at === undefined ? [] : [`"expires_at":${JSON.stringify(expires_at)}`]),
  ]
  return `{${members.join(',')}}`
}

export interface Decision {
  reason: string
  answer?: Record<string, unknown>
  /** JSON text. */
  effective_payload?: string
  /** Of the payload that the page showed. */
  expected_hash?: string
  uses?: number
  expires_at?: string
}
