// The form of a decision: an answer, a change, a reason, two buttons, and a question before either.

import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint } from '../../sdk/src/types.ts'
import { useAction } from '../api/action.ts'
import type { Problem, Result } from '../api/client.ts'
import { counted, shown } from '../text/words.ts'
import { Button, Code, setFrom, setTo } from '../ui/basics.tsx'
import { Emphasis, Question } from '../ui/dialog.tsx'
import { Field } from '../ui/form.tsx'
import { ErrorBox } from '../ui/page.tsx'
import { AnswerForm, answerOf, errorsOf, type Typed } from './answer-form.tsx'
import { Answer } from './discussion.tsx'
import { Difference, Edit, isJson } from './edit.tsx'
import type { Decision, Steered, Verb } from './steered.ts'

const reason_characters_max = 4_096

interface DecideProps {
  title: string
  agent: string
  of: Steered
  decide: (verb: Verb, decision: Decision) => Promise<Result<Checkpoint>>
  /** Called with the decision, with that of somebody else, or with a failure. */
  onEnd: (result: Result<Checkpoint>) => void
}

/** The form of a decision, or the reason that this key makes none. */
export function Decide(props: DecideProps) {
  const { may_decide, voted, approvals, required_approvals } = props.of
  const place = useRef<HTMLParagraphElement>(null)
  const had_form = useRef(false)
  useLayoutEffect(() => {
    // The buttons are gone, and the focus with them.
    if (had_form.current && voted !== null) place.current?.focus()
    had_form.current = voted === null
  }, [voted])
  if (!may_decide)
    return (
      <p class="notice">
        You are not an approver of this request. You can read it, and see how it is decided.
      </p>
    )
  if (voted === null) return <DecisionForm {...props} />
  return (
    <p ref={place} class="notice" role="status" tabIndex={-1}>
      You {voted} this. {counted(approvals, 'approval')} of {required_approvals}: it waits for others.
    </p>
  )
}

function DecisionForm({ title, agent, of, decide, onEnd }: DecideProps) {
  const { answer_schema: schema, proposed, edited, editable } = of
  const reason = useSignal('')
  const typed = useSignal<Typed>({})
  const edit = useSignal<string | null>(null)
  const uses = useSignal('1')
  const until = useSignal('')
  const verb = useSignal<Verb | null>(null)
  const form = useRef<HTMLDivElement>(null)
  const action = useAction()
  const { busy, problem } = action
  const text = reason.value.trim()
  const changed = edit.value ?? edited
  const ends_at = new Date(until.value)
  const decision = (): Decision => ({
    reason: text,
    ...(schema && { answer: answerOf(schema, typed.value) }),
    ...(changed !== null && { effective_payload: changed.trim() }),
    ...(proposed !== null && uses.value.trim() !== '1' && { uses: Number(uses.value) || 0 }),
    ...(proposed !== null && !Number.isNaN(ends_at.getTime()) && { expires_at: ends_at.toISOString() }),
  })
  const send = async (chosen: Verb) => {
    await action.run(async () => {
      const result = await decide(chosen, chosen === 'approve' ? decision() : { reason: text })
      verb.value = null
      onEnd(result)
      return result
    })
  }
  const errors = problem?.code === 'ANSWER_INVALID' ? errorsOf(problem.details) : {}
  useLayoutEffect(() => {
    if (problem?.code === 'ANSWER_INVALID')
      form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [problem])
  const resolved = problem?.code === 'CHECKPOINT_ALREADY_RESOLVED'
  return (
    <div ref={form} class="decide stack">
      {schema && <AnswerForm {...{ schema, typed, errors }} />}
      {proposed !== null && editable && (
        <Edit current={edited ?? proposed} {...{ proposed }} edited={edit} error={undefined} />
      )}
      {proposed !== null && <Permit {...{ uses, until, problem }} />}
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
        <Button
          text="Approve…"
          kind="primary"
          disabled={edit.value !== null && !isJson(edit.value)}
          onClick={setTo(verb, 'approve')}
        />
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
          <Consequence verb={verb.value} {...{ of, agent }} />
          {verb.value === 'approve' && schema && (
            <Answer of={answerOf(schema, typed.value)} {...{ schema }} />
          )}
          {verb.value === 'approve' && changed !== null && (
            <Difference before={proposed!} after={changed} what="between proposal and what you approve" />
          )}
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

interface PermitProps {
  uses: Signal<string>
  until: Signal<string>
  problem: Problem | null
}

/** The reach of the approval of an effect. */
function Permit({ uses, until, problem }: PermitProps) {
  const issues = (problem?.details.issues ?? []) as { path: string; message: string }[]
  const errorAt = (path: string) => {
    const issue = issues.find((each) => each.path === path)
    return issue && `It ${shown(issue.message)}.`
  }
  const [uses_error, until_error] = [errorAt('/uses'), errorAt('/expires_at')]
  return (
    <details class="permit" open={Boolean(uses_error ?? until_error) || undefined}>
      <summary>How often, and until when: {permitInWords(uses.value, until.value)}</summary>
      <div class="stack">
        <Field
          label="How often"
          hint="Effects with exactly these bytes that may start under your approval, 1 to 100."
          inputmode="decimal"
          error={uses_error}
          value={uses.value}
          onInput={setFrom(uses)}
        />
        <Field
          label="Until"
          hint="Optional. Afterwards the effect no longer starts."
          type="datetime-local"
          error={until_error}
          value={until.value}
          onInput={setFrom(until)}
        />
      </div>
    </details>
  )
}

function permitInWords(uses: string, until: string): string {
  const often = uses.trim() === '1' ? 'once' : `${shown(uses.trim())} times`
  return until === '' ? `${often}, without an end` : `${often}, until ${shown(until.replace('T', ' '))}`
}

function Consequence({ verb, of, agent }: { verb: Verb; of: Steered; agent: string }) {
  const { approvals, rejections, required_approvals, required_rejections } = of
  const missing = verb === 'approve' ? required_approvals - approvals : required_rejections - rejections
  if (missing > 1)
    return (
      <p>
        Your vote is counted at once and cannot be undone. {counted(missing - 1, 'more vote')} will be needed.
      </p>
    )
  return (
    <p>
      The agent <Code>{agent}</Code> is notified at once. This cannot be undone.
    </p>
  )
}
