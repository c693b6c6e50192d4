// A checkpoint that takes more than a plain decision: an answer, several votes, certain approvers, an escalation. No imports from db
// or http.

import { type Millis, second_ms } from '../base/clock.ts'
import { type Issue, invalid } from '../base/errors.ts'
import type { AdminCaller, ApprovalCaller } from '../contract/caller.ts'
import { RawJson } from '../contract/schemas.ts'
import { schemaIssues } from './answer-schema.ts'
import type { CheckpointRow } from './checkpoint.ts'

export interface Step {
  after_seconds: number
  /** Absent: everybody. */
  approvers?: string[]
}

/** As a caller gave it. The schema of the answer is text, or a value where it is a member of another object. */
export interface GivenSteering {
  answer_schema?: RawJson | object | undefined
  required_approvals?: number | undefined
  required_rejections?: number | undefined
  approvers?: string[] | undefined
  escalate?: Step[] | undefined
}

/** How people know an effect. */
export interface ShownEffect {
  type: string
  key: string
  note: string | null
}

/** Of a checkpoint that is about an effect. */
export interface OfEffect {
  effect_id: string
  effect: ShownEffect
  /** The exact text that is approved; null when it asks something else. */
  payload: string | null
  editable: boolean
}

/** The columns of a checkpoint that steer its decision. */
export type Steering = Pick<
  CheckpointRow,
  | 'steered'
  | 'answer_schema'
  | 'required_approvals'
  | 'required_rejections'
  | 'approvers'
  | 'escalate'
  | 'editable'
  | 'payload'
  | 'effect_id'
  | 'effect'
>

/** Of `{}`: one plain decision. Throws VALIDATION_FAILED. `at`: the place of its members in the body. */
export function steeringOf(given: GivenSteering, effect: OfEffect | null = null, at = ''): Steering {
  const { answer_schema, required_approvals = 1, required_rejections = 1, approvers, escalate } = given
  const schema = answer_schema instanceof RawJson ? JSON.parse(answer_schema.text) : (answer_schema ?? null)
  const issues = [
    ...(schema === null ? [] : schemaIssues(schema, `${at}/answer_schema`)),
    ...quorumIssues({ required_approvals, required_rejections, approvers, escalate }, at),
  ]
  if (issues.length > 0) throw invalid(...issues)
  const steered = effect || schema !== null || approvers || required_approvals + required_rejections > 2
  return {
    steered: steered ? 1 : 0,
    // As it was read: of members of the same name the last.
    answer_schema: schema === null ? null : JSON.stringify(schema),
    ...{ required_approvals, required_rejections },
    approvers: approvers ? JSON.stringify([...new Set(approvers)]) : null,
    escalate: escalate ? JSON.stringify(escalate) : null,
    editable: effect?.editable ? 1 : 0,
    payload: effect?.payload ?? null,
    effect_id: effect?.effect_id ?? null,
    effect: effect && JSON.stringify(effect.effect),
  }
}

/** A decision that nobody could ever make is refused when it is asked for. */
function quorumIssues(
  { required_approvals, required_rejections, approvers, escalate = [] }: GivenSteering,
  at: string,
): Issue[] {
  const issues: Issue[] = []
  if (!approvers && escalate.length > 0)
    issues.push({
      path: `${at}/escalate`,
      message: 'has no effect without approvers: everybody may already decide',
    })
  const later = escalate.findIndex(
    ({ after_seconds }, i) => i > 0 && after_seconds <= escalate[i - 1]!.after_seconds,
  )
  if (later !== -1)
    issues.push({
      path: `${at}/escalate/${later}/after_seconds`,
      message: 'must be later than the previous step',
    })
  const everybody = !approvers || escalate.some((step) => !step.approvers)
  const known = new Set([...(approvers ?? []), ...escalate.flatMap((step) => step.approvers ?? [])])
  const wanted = { required_approvals, required_rejections }
  for (const [name, votes = 1] of Object.entries(wanted))
    if (!everybody && votes > known.size)
      issues.push({
        path: `${at}/${name}`,
        message: `must not exceed the number of approvers, ${known.size}`,
      })
  return issues
}

/** Every approver that it names, with the place of the name. */
export function namedApprovers(
  { approvers, escalate }: Pick<CheckpointRow, 'approvers' | 'escalate'>,
  at = '',
): { path: string; approver: string }[] {
  const lists: [path: string, list: readonly string[]][] = [
    [`${at}/approvers`, approversOf({ approvers }) ?? []],
    ...stepsOf({ escalate }).map(
      (step, i) => [`${at}/escalate/${i}/approvers`, step.approvers ?? []] satisfies [string, string[]],
    ),
  ]
  return lists.flatMap(([path, list]) => list.map((approver, i) => ({ path: `${path}/${i}`, approver })))
}

/** Null: everybody. */
export function approversOf({ approvers }: Pick<CheckpointRow, 'approvers'>): string[] | null {
  return approvers === null ? null : JSON.parse(approvers)
}

export function stepsOf({ escalate }: Pick<CheckpointRow, 'escalate'>): Step[] {
  return escalate === null ? [] : JSON.parse(escalate)
}

/** When its next step of `escalate` is due; null when it has none. */
export function nextEscalationAt(
  row: Pick<CheckpointRow, 'escalate' | 'escalated' | 'created_at' | 'held_ms'>,
): Millis | null {
  const step = stepsOf(row)[row.escalated]
  return step ? row.created_at + row.held_ms + step.after_seconds * second_ms : null
}

/** The approvers as a step leaves them: null for everybody. */
export function widened(row: Pick<CheckpointRow, 'approvers'>, { approvers }: Step): string | null {
  const before = approversOf(row)
  return before === null || !approvers ? null : JSON.stringify([...new Set([...before, ...approvers])])
}

/** The name of a caller among voters and authors: the id of an approval key, or `admin`. The admin key is one voter. */
export function voterOf(caller: AdminCaller | ApprovalCaller): string {
  return caller.kind === 'admin' ? 'admin' : caller.approval_key_id
}

export function isApprover(row: Pick<CheckpointRow, 'approvers'>, voter: string): boolean {
  return approversOf(row)?.includes(voter) ?? true
}
