// The form of a decision: an answer, a change, a reason, two buttons, and a question before either.

import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint } from '../../sdk/src/types.ts'
import { unseen, useAction } from '../api/action.ts'
import { failed, issuesOf, type Problem, type Result } from '../api/client.ts'
import { frozen_at, isoOf, moment } from '../text/time.ts'
import { counted, shown, times } from '../text/words.ts'
import { Button, Code, setFrom, setTo } from '../ui/basics.tsx'
import { Emphasis, Question } from '../ui/dialog.tsx'
import { Difference } from '../ui/difference.tsx'
import { Field, halfFilled } from '../ui/form.tsx'
import { ErrorBox } from '../ui/page.tsx'
import { AnswerForm, answerOf, errorsOf, faultsOf, half_text, type Typed } from './answer-form.tsx'
import { Answer } from './discussion.tsx'
import { type Change, changeOf, type Draft, Edit, faultOf } from './edit.tsx'
import type { Decision, Standing, Steered, Verb } from './steered.ts'

const reason_characters_max = 4_096

interface DecideProps {
  title: string
  agent: string
  of: Steered
  decide: (verb: Verb, decision: Decision) => Promise<Result<Checkpoint>>
  /** The request as it is now: the page hears of votes and changes some seconds later. */
  present: () => Promise<Result<Standing>>
  /** Called with the decision, with that of somebody else, or with a failure. */
  onEnd: (result: Result<Checkpoint>) => void
}

/** The form of a decision, or the reason that this key makes none. */
export function Decide(props: DecideProps) {
  const { may_decide, voted, approvals, required_approvals } = props.of
  const place = useRef<HTMLParagraphElement>(null)
  const had_form = useRef(false)
  useLayoutEffect(() => {
    // The buttons are gone, and the focus with them, unless it was elsewhere.
    if (had_form.current && voted !== null && document.activeElement === document.body) place.current?.focus()
    had_form.current = voted === null
  }, [voted])
  if (!may_decide)
    return (
      <p class="notice">
        You are not an approver of this request. You can read it, and see how it is decided.
      </p>
    )
  if (voted === null) return <DecisionForm {...props} />
  if (voted === 'unknown')
    return (
      <p class="notice" role="status">
        You can decide once it is known whether you have voted.
      </p>
    )
  return (
    <p ref={place} class="notice" role="status" tabIndex={-1}>
      You {voted} this. {counted(approvals, 'approval')} of {required_approvals}: it waits for others.
    </p>
  )
}

/** The decision as it was when the dialog opened: nothing that changes later slips into it. */
interface Asked {
  verb: Verb
  decision: Decision
  change: Change
}

/** The fields of the form, and the decision that they say. */
function useFields({ answer_schema: schema, proposed, edited, present_hash }: Steered) {
  const reason = useSignal('')
  const typed = useSignal<Typed>({})
  const draft = useSignal<Draft | null>(null)
  const uses = useSignal('1')
  const until = useSignal('')
  const read = (verb: Verb): Asked => {
    const change = changeOf(verb === 'reject' ? null : draft.value, { proposed, edited })
    const expires_at = isoOf(until.value)
    const text = reason.value.trim()
    if (verb === 'reject') return { verb, change, decision: { reason: text } }
    const decision = {
      reason: text,
      ...(schema && { answer: answerOf(schema, typed.value) }),
      ...(change.text !== null && { effective_payload: change.text }),
      ...(present_hash !== null && { expected_hash: present_hash }),
      ...(proposed !== null && uses.value.trim() !== '1' && { uses: usesOf(uses.value) }),
      ...(proposed !== null && expires_at !== undefined && { expires_at }),
    }
    return { verb, change, decision }
  }
  return { reason, typed, draft, uses, until, read }
}

/** Says what others did while this form was open. A change of the payload closes the question that was open. */
function useMoved(edited: string | null, asked: Signal<Asked | null>, busy: boolean) {
  const moved = useSignal<keyof typeof moved_texts | null>(null)
  const seen = useRef(edited)
  useLayoutEffect(() => {
    if (seen.current === edited) return
    seen.current = edited
    moved.value = 'payload'
    if (!busy && asked.peek()?.verb === 'approve') asked.value = null
  }, [edited])
  /** With the payload of a decision that is sent from here. */
  const onSend = ({ verb, change }: Asked) => {
    moved.value = null
    if (verb === 'approve') seen.current = change.text
  }
  return { moved, onSend }
}

/** The faults in the fields: those that a decision met here, marked from then on, and those that the service found. */
function useFaults(
  { answer_schema: schema }: Steered,
  { typed, until }: Pick<ReturnType<typeof useFields>, 'typed' | 'until'>,
  problem: Problem | null,
) {
  const form = useRef<HTMLDivElement>(null)
  /** How often a decision was stopped here. */
  const stopped = useSignal(0)
  const half = useSignal<readonly string[]>([])
  const look = () => ({
    answer: schema ? faultsOf(schema, typed.value, half.value) : {},
    until: untilFault(until.value, half.value.includes(until_path)),
  })
  /** True where the fields cannot be sent as they are. */
  const stops = () => {
    half.value = halfFilled(form.current)
    const found = look()
    if (found.until === undefined && Object.keys(found.answer).length === 0) return false
    stopped.value += 1
    return true
  }
  useLayoutEffect(() => {
    if (!isOfFields(problem) && stopped.value === 0) return
    const first = form.current?.querySelector<HTMLElement>('[aria-invalid=true]')
    // It may have been folded away again.
    first?.closest('details')?.setAttribute('open', '')
    first?.focus()
  }, [problem, stopped.value])
  const here = stopped.value > 0 ? look() : { answer: {}, until: undefined }
  const of_service = problem?.code === 'ANSWER_INVALID' ? errorsOf(problem) : {}
  return { form, stops, errors: { ...of_service, ...here.answer }, until_fault: here.until }
}

/** Of the end of the permit. `is_half`: a part of its date was written. */
function untilFault(text: string, is_half: boolean): string | undefined {
  if (text === '') return is_half ? half_text : undefined
  return Number.isNaN(Date.parse(text)) ? 'The year has four digits.' : undefined
}

/** True for a refusal that a field of the form shows. */
function isOfFields(problem: Problem | null): boolean {
  return (
    problem?.code === 'ANSWER_INVALID' || issuesOf(problem).some(({ path }) => permit_paths.includes(path))
  )
}

function useDecision({ of, decide, present, onEnd }: DecideProps) {
  const fields = useFields(of)
  const asked = useSignal<Asked | null>(null)
  const action = useAction()
  const { busy, problem } = action
  const { moved, onSend } = useMoved(of.edited, asked, busy)
  const { stops, ...faults } = useFaults(of, fields, problem)
  const open = (verb: Verb) => {
    if (verb === 'reject' || !stops()) asked.value = fields.read(verb)
  }
  /** Null where an edit may be sent: it would also end votes for the same payload, which the question did not name. */
  const stop = async (): Promise<Result<unknown> | null> => {
    const now = await present()
    if (now.ok && isSameStanding(now.value, of)) return null
    asked.value = null
    if (now.ok) moved.value = now.value.edited === of.edited ? 'votes' : 'payload'
    onEnd(now.ok ? failed('ABORTED', 'Nothing was sent.') : now)
    return now
  }
  const send = async (chosen: Asked) => {
    await action.run(async () => {
      const stopped = chosen.change.is_edit ? await stop() : null
      if (stopped) return stopped
      onSend(chosen)
      const result = await decide(chosen.verb, chosen.decision)
      asked.value = null
      onEnd(result)
      return result
    })
  }
  return { ...fields, ...faults, asked, busy, problem, moved, open, send }
}

function isSameStanding(one: Standing, other: Standing): boolean {
  const { edited, approvals, rejections } = one
  return edited === other.edited && approvals === other.approvals && rejections === other.rejections
}

function DecisionForm(props: DecideProps) {
  const { title, agent, of } = props
  const { answer_schema: schema, proposed, editable } = of
  const { reason, typed, draft, uses, until, ...decision } = useDecision(props)
  const { form, errors, until_fault, asked, busy, problem, moved, open, send } = decision
  const resolved = problem?.code === 'CHECKPOINT_ALREADY_RESOLVED'
  const unshown = unseen(problem, proposed === null ? [] : permit_paths)
  return (
    <div ref={form} class="decide stack">
      {schema && <AnswerForm {...{ schema, typed, errors }} />}
      {proposed !== null && editable && <Edit {...{ of, proposed, draft }} />}
      {proposed !== null && (
        <Permit type={of.effect?.type ?? ''} {...{ uses, until, until_fault, problem }} />
      )}
      <Field
        label="Reason"
        hint="Optional. The agent receives it."
        rows={2}
        characters_max={reason_characters_max}
        value={reason.value}
        onInput={setFrom(reason)}
      />
      {unshown && !resolved && <ErrorBox problem={unshown} />}
      <div role="status">{moved.value && <p class="notice">{moved_texts[moved.value]}</p>}</div>
      <div class="decide-buttons parts">
        <Button
          text="Approve…"
          kind="primary"
          disabled={draft.value !== null && faultOf(draft.value, of) !== undefined}
          onClick={() => open('approve')}
        />
        <Button text="Reject…" kind="danger" onClick={() => open('reject')} />
      </div>
      {asked.value && (
        <Sure
          {...{ title, agent, of, busy }}
          asked={asked.value}
          onConfirm={() => void send(asked.value!)}
          onClose={() => busy || setTo(asked, null)()}
        />
      )}
    </div>
  )
}

const moved_texts = {
  payload: 'Another approver has changed the payload meanwhile. Read it above again, then decide.',
  votes: 'Another approver has voted meanwhile. Your change would end that vote: nothing was sent yet.',
}

interface SureProps extends Pick<DecideProps, 'title' | 'agent' | 'of'> {
  asked: Asked
  busy: boolean
  onConfirm: () => void
  onClose: () => void
}

/** The question before a decision: all that is sent, in words. */
function Sure({ title, agent, of, asked, busy, onConfirm, onClose }: SureProps) {
  const { verb, change, decision } = asked
  const { answer, reason, uses, expires_at } = decision
  const approves = verb === 'approve'
  return (
    <Question
      title={approves ? 'Approve this?' : 'Reject this?'}
      verb={approves ? 'Yes, approve' : 'Yes, reject'}
      kind={approves ? 'primary' : 'danger'}
      action={{ busy, problem: null }}
      {...{ onConfirm, onClose }}
    >
      <Emphasis>{title}</Emphasis>
      {of.effect && (
        <p>
          <Code>{of.effect.type}</Code> <Code>{of.effect.key}</Code>
        </p>
      )}
      <Consequence {...{ verb, of, agent }} is_edit={change.is_edit} />
      {answer && <Answer of={answer} schema={of.answer_schema} />}
      {approves && change.text !== null && (
        <Difference
          before={change.before!}
          after={change.text}
          what={`between ${change.is_edit ? 'the payload above' : 'proposal'} and what you approve`}
        />
      )}
      {(uses !== undefined || expires_at !== undefined) && (
        <p>
          It may start {times(uses ?? 1)}
          {expires_at !== undefined && (
            <>
              , until <time dateTime={expires_at}>{moment(expires_at)}</time>
            </>
          )}
          .
        </p>
      )}
      {reason !== '' && (
        <p class="prompt">
          <span class="muted">Your reason: </span>
          {shown(reason)}
        </p>
      )}
    </Question>
  )
}

interface PermitProps {
  /** Of the effect. */
  type: string
  uses: Signal<string>
  until: Signal<string>
  /** Found here, before anything was sent. */
  until_fault: string | undefined
  problem: Problem | null
}

/** Where the parts of the permit stand in the body of a decision. */
const uses_path = '/uses'
const until_path = '/expires_at'
const permit_paths = [uses_path, until_path]

/** The reach of the approval of an effect. */
function Permit({ type, uses, until, until_fault, problem }: PermitProps) {
  const errorAt = (path: string) => {
    const issue = issuesOf(problem).find((each) => each.path === path)
    return issue && `It ${shown(issue.message)}.`
  }
  const [uses_error, until_error] = [errorAt(uses_path), until_fault ?? errorAt(until_path)]
  // It stays open once the fault is mended: the field has the focus.
  const had_fault = useRef(false)
  had_fault.current ||= Boolean(uses_error ?? until_error)
  return (
    <details class="permit" open={had_fault.current || undefined}>
      <summary>
        How often, and until when: {permitInWords(uses.value, until_fault === undefined ? until.value : '…')}
      </summary>
      <div class="stack">
        <Field
          label="How often"
          hint={`How many effects of this type, ${shown(type)}, with exactly these bytes may start under your approval: 1 to 100.`}
          inputmode="decimal"
          error={uses_error}
          value={uses.value}
          onInput={setFrom(uses)}
        />
        <Field
          label="Until"
          hint="Optional. Afterwards the effect no longer starts."
          name={until_path}
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
  const number = usesOf(uses)
  const often = number === 0 ? '…' : times(number)
  return until === '' ? `${often}, without an end` : `${often}, until ${shown(until.replace('T', ' '))}`
}

/** 0, which the service refuses, for what is not written with digits alone. */
function usesOf(text: string): number {
  return /^\d{1,6}$/.test(text.trim()) ? Number(text) : 0
}

interface ConsequenceProps extends Pick<DecideProps, 'of' | 'agent'> {
  verb: Verb
  is_edit: boolean
}

function Consequence({ verb, of, agent, is_edit }: ConsequenceProps) {
  const { approvals, rejections, required_approvals, required_rejections } = of
  const voided = is_edit ? approvals + rejections : 0
  const approved = is_edit ? 0 : approvals
  const missing = verb === 'approve' ? required_approvals - approved : required_rejections - rejections
  return (
    <>
      {voided > 0 && (
        <p>
          <strong>
            {counted(voided, 'vote')} {voided === 1 ? 'no longer counts' : 'no longer count'}:
          </strong>{' '}
          {voided === 1 ? 'it was' : 'they were'} for the payload before your change. Those approvers can vote
          again.
        </p>
      )}
      {missing > 1 ? (
        <p>
          Your vote is counted at once and cannot be undone. {counted(missing - 1, 'more vote')} will be
          needed.
        </p>
      ) : (
        <p>
          {frozen_at.value === null ? (
            <>
              The agent <Code>{agent}</Code> is notified at once.
            </>
          ) : (
            <>
              Everything is stopped now: the agent <Code>{agent}</Code> goes on once it is resumed.
            </>
          )}{' '}
          This cannot be undone.
        </p>
      )}
    </>
  )
}
