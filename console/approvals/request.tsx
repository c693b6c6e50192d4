// A request for approval, as the approval page and the console show it.

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint } from '../../sdk/src/types.ts'
import { resolver } from '../text/words.ts'
import { Code, Facts, LongText, Time } from '../ui/basics.tsx'
import { Difference } from '../ui/difference.tsx'
import { Markdown } from '../ui/markdown.tsx'
import { Tree } from '../ui/tree.tsx'
import type { AnswerSchema } from './answer-form.tsx'
import { Answer } from './discussion.tsx'
import type { Steered } from './steered.ts'

/** The effect that a request is about: what the bytes are for, and how they were changed. */
export function EffectPayload({ of }: { of: Steered }) {
  const { status, effect, editable, proposed, edited, effective } = of
  if (effect === null) return null
  const { type, key, note } = effect
  const about = (
    <>
      <Facts facts={{ Effect: <Code>{type}</Code>, Key: <Code>{key}</Code> }} />
      {note !== null && <LongText label="Note">{note}</LongText>}
    </>
  )
  if (proposed === null)
    return (
      <section aria-label="The effect" class="effect-payload">
        {about}
        {editable && <p class="muted">Its payload was removed: the plan says how long payloads are kept.</p>}
      </section>
    )
  const after = effective ?? edited
  const is_over = status !== 'pending' && status !== 'approved'
  const name = is_over ? 'As it was proposed' : 'Exactly this is approved'
  return (
    <section aria-label={name} class="effect-payload">
      {about}
      <h2 class="label">{after === null ? name : 'As it was proposed'}</h2>
      <Tree text={proposed} what="the payload of the effect" />
      {after !== null && (
        <>
          <h2 class="label">
            {effective === null ? 'An approver changed it: the votes are for this' : 'As it was approved'}
          </h2>
          <Difference before={proposed} after={after} what="between proposal and change" />
        </>
      )}
    </section>
  )
}

interface ContentProps {
  prompt: string | null
  /** JSON text. */
  payload: string | null
  /** The rank of headings in the prompt. */
  heading: 'h2' | 'h4'
}

export function Content({ prompt, payload, heading }: ContentProps) {
  return (
    <>
      {prompt && <Markdown text={prompt} what="the prompt" {...{ heading }} />}
      {payload !== null && (
        <section aria-label="Payload">
          <h2 class="label">Payload</h2>
          <Tree text={payload} what="the payload" />
        </section>
      )}
    </>
  )
}

interface OutcomeProps {
  of: Pick<Checkpoint, 'status' | 'reason' | 'resolved_by' | 'resolved_at' | 'answer' | 'answer_schema'>
  /** The decision was made on this page. */
  own: boolean
  children?: ComponentChildren
}

/** The decision: its time, its reason and the one who made it. It takes the focus when it appears. */
export function Outcome({ of, own, children }: OutcomeProps) {
  const { status, reason, resolved_at, answer, answer_schema } = of
  const place = useRef<HTMLDivElement>(null)
  const was_pending = useRef(false)
  useLayoutEffect(() => {
    // The buttons are gone, and the focus with them.
    if (was_pending.current && status !== 'pending') place.current?.focus()
    was_pending.current = status === 'pending'
  }, [status])
  if (status === 'pending') return null
  const title = titleOf(of)
  const by = byWhom(of)
  return (
    <div ref={place} tabIndex={-1} role="status">
      <div class="outcome" data-status={status}>
        <p class="outcome-title">{own && by !== null ? `You ${status} this` : title}</p>
        <p class="muted">
          {!own && by !== null && `${by} `}
          {resolved_at && <Time at={resolved_at} />}
        </p>
        {reason && <LongText label="Reason">{reason}</LongText>}
        {answer && <Answer of={answer} schema={answer_schema as AnswerSchema | null} />}
        {children}
      </div>
    </div>
  )
}

type Settled = Pick<Checkpoint, 'status' | 'resolved_by'>

/** Of a request that waits no longer. */
function titleOf({ status, resolved_by }: Settled): string {
  if (status === 'rejected') return resolved_by === 'timeout' ? 'Rejected: the time ran out' : 'Rejected'
  if (status === 'expired') return 'Expired: nobody decided in time'
  return status === 'cancelled' ? 'Withdrawn by the agent' : 'Approved'
}

/** Null where the time ran out. */
function byWhom({ status, resolved_by }: Settled): string | null {
  if (resolved_by === null || resolved_by === 'timeout') return null
  return `${status === 'cancelled' ? 'By' : 'Decided by'} ${resolver(resolved_by)}`
}

/** In one line: the one who decided, or why nobody did. */
export function outcomeLine(of: Settled): string {
  const is_decided = of.status === 'approved' || of.status === 'rejected'
  return (is_decided && byWhom(of)) || titleOf(of)
}
