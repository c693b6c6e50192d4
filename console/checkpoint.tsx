// What is asked of a person, as the approval page and the console show it, and how it is decided.

import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { memberText } from '../sdk/src/json.ts'
import type { Checkpoint } from '../sdk/src/types.ts'
import type { Problem, Result } from './api.ts'
import { resolver, shown } from './text.ts'
import { Button, Code, Text, Time } from './ui/basics.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Field } from './ui/form.tsx'
import { ErrorBox } from './ui/states.tsx'
import { Tree } from './ui/tree.tsx'

export type Verb = 'approve' | 'reject'

const reason_characters_max = 4_096

/** The exact text of a member of an answer; null when its value is JSON null. */
export function exactMember(answer: string, name: string): string | null {
  const text = memberText(answer, name)
  return text === undefined || text === 'null' ? null : text
}

export function Question({
  prompt,
  payload,
}: {
  prompt: string | null
  payload: string | null
}): JSX.Element {
  return (
    <>
      {prompt && (
        <p class="prompt">
          <Text>{prompt}</Text>
        </p>
      )}
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
  status: Checkpoint['status']
  reason: string | null
  resolved_by: string | null
  resolved_at: string | null
  /** The decision was made on this very page. */
  own?: boolean
  children?: ComponentChildren
}

/** What became of it: by whom, when, why. */
export function Outcome({
  status,
  reason,
  resolved_by,
  resolved_at,
  own,
  children,
}: OutcomeProps): JSX.Element {
  const by_timeout = resolved_by === 'timeout'
  const title = {
    pending: 'Waiting for a decision',
    approved: own ? 'You approved this' : 'Approved',
    rejected: by_timeout ? 'Rejected: the time ran out' : own ? 'You rejected this' : 'Rejected',
    expired: 'Expired: nobody decided in time',
    cancelled: 'Withdrawn by the agent',
  }[status]
  return (
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
  )
}

interface DecideProps {
  title: string
  agent: string
  decide: (verb: Verb, reason: string) => Promise<Result<Checkpoint>>
  /** It was decided; or somebody else was faster; or nobody knows, and has to look. */
  onEnd: (result: Result<Checkpoint>) => void
}

/** Reason, approve, reject, and a second look before either. */
export function Decide({ title, agent, decide, onEnd }: DecideProps): JSX.Element {
  const reason = useSignal('')
  const verb = useSignal<Verb | null>(null)
  const busy = useSignal(false)
  const problem = useSignal<Problem | null>(null)
  const send = async (chosen: Verb) => {
    if (busy.peek()) return
    busy.value = true
    const result = await decide(chosen, reason.value.trim())
    busy.value = false
    verb.value = null
    problem.value = result.ok || result.problem.code === 'CHECKPOINT_ALREADY_RESOLVED' ? null : result.problem
    onEnd(result)
  }
  return (
    <div class="decide">
      <Field
        label="Reason"
        hint="Optional. The agent is told."
        rows={2}
        characters_max={reason_characters_max}
        value={reason.value}
        onInput={(value) => {
          reason.value = value
        }}
      />
      {problem.value && <ErrorBox problem={problem.value} />}
      <div class="decide-buttons">
        <Button
          kind="primary"
          onClick={() => {
            verb.value = 'approve'
          }}
        >
          Approve…
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            verb.value = 'reject'
          }}
        >
          Reject…
        </Button>
      </div>
      {verb.value && (
        <SecondLook
          verb={verb.value}
          busy={busy.value}
          {...{ title, agent }}
          reason={reason.value.trim()}
          onBack={() => {
            if (!busy.value) verb.value = null
          }}
          onConfirm={() => void send(verb.value!)}
        />
      )}
    </div>
  )
}

interface SecondLookProps {
  verb: Verb
  title: string
  agent: string
  reason: string
  busy: boolean
  onBack: () => void
  onConfirm: () => void
}

function SecondLook({ verb, title, agent, reason, busy, onBack, onConfirm }: SecondLookProps): JSX.Element {
  return (
    <Dialog title={verb === 'approve' ? 'Approve this?' : 'Reject this?'} onClose={onBack}>
      <p class="second-look">
        <strong>
          <Text>{title}</Text>
        </strong>
      </p>
      <p>
        The agent <Code>{agent}</Code> is told at once. This cannot be undone.
      </p>
      {reason !== '' && (
        <p class="prompt">
          <span class="muted">Your reason: </span>
          {shown(reason)}
        </p>
      )}
      <div class="dialog-buttons">
        <span data-focus>
          <Button onClick={onBack}>Go back</Button>
        </span>
        <Button kind={verb === 'approve' ? 'primary' : 'danger'} busy={busy} onClick={onConfirm}>
          {verb === 'approve' ? 'Yes, approve' : 'Yes, reject'}
        </Button>
      </div>
    </Dialog>
  )
}
