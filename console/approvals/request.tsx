// A request for approval, as the approval page and the console show it.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint } from '../../sdk/src/types.ts'
import { useAction } from '../api/action.ts'
import type { Result } from '../api/client.ts'
import { resolver, shown } from '../text/words.ts'
import { Button, Code, setFrom, setTo, Text, Time } from '../ui/basics.tsx'
import { Emphasis, Question } from '../ui/dialog.tsx'
import { Field } from '../ui/form.tsx'
import { Markdown } from '../ui/markdown.tsx'
import { ErrorBox } from '../ui/page.tsx'
import { Tree } from '../ui/tree.tsx'

export type Verb = 'approve' | 'reject'

const reason_characters_max = 4_096

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
  of: Pick<Checkpoint, 'status' | 'reason' | 'resolved_by' | 'resolved_at'>
  /** The decision was made on this page. */
  own: boolean
  children?: ComponentChildren
}

/** The decision: its time, its reason and the one who made it. It takes the focus when it appears. */
export function Outcome({ of, own, children }: OutcomeProps) {
  const { status, reason, resolved_by, resolved_at } = of
  const place = useRef<HTMLDivElement>(null)
  const was_pending = useRef(false)
  useLayoutEffect(() => {
    // The buttons are gone, and the focus with them.
    if (was_pending.current && status !== 'pending') place.current?.focus()
    was_pending.current = status === 'pending'
  }, [status])
  if (status === 'pending') return null
  const by_timeout = resolved_by === 'timeout'
  const title = {
    approved: own ? 'You approved this' : 'Approved',
    rejected: by_timeout ? 'Rejected: the time ran out' : own ? 'You rejected this' : 'Rejected',
    expired: 'Expired: nobody decided in time',
    cancelled: 'Withdrawn by the agent',
  }[status]
  return (
    <div ref={place} tabIndex={-1} role="status">
      <div class="outcome" data-status={status}>
        <p class="outcome-title">{title}</p>
        <p class="muted">
          {!own && !by_timeout && resolved_by && (
            <>
              {status === 'cancelled' ? 'By' : 'Decided by'} {resolver(resolved_by)}{' '}
            </>
          )}
          {resolved_at && <Time at={resolved_at} />}
        </p>
        {reason && (
          <p class="prompt">
            <span class="muted">Reason: </span>
            <Text>{reason}</Text>
          </p>
        )}
        {children}
      </div>
    </div>
  )
}

interface DecideProps {
  title: string
  agent: string
  decide: (verb: Verb, reason: string) => Promise<Result<Checkpoint>>
  /** Called with the decision, with that of somebody else, or with a failure. */
  onEnd: (result: Result<Checkpoint>) => void
}

/** The form of a decision: a reason, two buttons, and a question before either. */
export function Decide({ title, agent, decide, onEnd }: DecideProps) {
  const reason = useSignal('')
  const text = reason.value.trim()
  const verb = useSignal<Verb | null>(null)
  const action = useAction()
  const { busy, problem } = action
  const send = async (chosen: Verb) => {
    await action.run(async () => {
      const result = await decide(chosen, text)
      verb.value = null
      onEnd(result)
      return result
    })
  }
  const resolved = problem?.code === 'CHECKPOINT_ALREADY_RESOLVED'
  return (
    <div class="decide stack">
      <Field
        label="Reason"
        hint="Optional. The agent receives it."
        rows={2}
        characters_max={reason_characters_max}
        value={reason.value}
        onInput={setFrom(reason)}
      />
      {problem && !resolved && <ErrorBox problem={problem} />}
      <div class="decide-buttons parts">
        <Button text="Approve…" kind="primary" onClick={setTo(verb, 'approve')} />
        <Button text="Reject…" kind="danger" onClick={setTo(verb, 'reject')} />
      </div>
      {verb.value && (
        <Question
          title={verb.value === 'approve' ? 'Approve this?' : 'Reject this?'}
          verb={verb.value === 'approve' ? 'Yes, approve' : 'Yes, reject'}
          kind={verb.value === 'approve' ? 'primary' : 'danger'}
          action={{ busy, problem: null }}
          onConfirm={() => void send(verb.value!)}
          onClose={() => busy || setTo(verb, null)()}
        >
          <Emphasis>{title}</Emphasis>
          <p>
            The agent <Code>{agent}</Code> is notified at once. This cannot be undone.
          </p>
          {text !== '' && (
            <p class="prompt">
              <span class="muted">Your reason: </span>
              {shown(text)}
            </p>
          )}
        </Question>
      )}
    </div>
  )
}
