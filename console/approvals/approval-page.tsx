// The approval page: one request, followed until it is decided, and the form that decides it.

import { useComputed, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { Approval, Checkpoint } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { call, isSame, type Problem, type Result } from '../api/client.ts'
import { pause, whenBack } from '../api/wait.ts'
import { exactMember } from '../text/json.ts'
import { frozen_at, held_now } from '../text/time.ts'
import { shown } from '../text/words.ts'
import { Code, Countdown, Facts, Text, Time } from '../ui/basics.tsx'
import { ErrorBox, Skeleton } from '../ui/page.tsx'
import { Decide } from './decide.tsx'
import { type Asking, Comments, useVotes, Votes } from './discussion.tsx'
import { Content, EffectPayload, Outcome } from './request.tsx'
import {
  type Decision,
  decisionText,
  type Standing,
  type Steered,
  standingOf,
  steeredOf,
  type Verb,
} from './steered.ts'

/** One request of the page waits this long for a decision made elsewhere. A freeze, a vote or a comment ends no wait. */
const wait_seconds = 4
/** Between two requests, whatever the answer. Each failure doubles it. */
const pause_ms = 1_500
const pause_ms_max = 15_000

interface Followed {
  approval: Approval
  /** As stored. */
  payload: string | null
  of: Steered
}

interface ApprovalPageProps {
  id: string
  approval_key: string
  /** The approver has just entered the key: the heading takes the focus from the form. */
  entered?: boolean
  /** Shows a refusal of the key in another way; null where it does not. */
  refused?: (problem: Problem) => JSX.Element | null
}

export function ApprovalPage({ id, approval_key, entered = false, refused }: ApprovalPageProps) {
  const { followed, problem, ...request } = useApproval(id, approval_key)
  if (problem && isFinal(problem)) return refused?.(problem) ?? <Refused problem={problem} />
  return (
    <>
      {problem && <ErrorBox problem={problem} />}
      {followed ? (
        <Request {...followed} {...request} {...{ entered }} />
      ) : (
        !problem && <Skeleton lines={9} what="the request" />
      )}
    </>
  )
}

function useApproval(id: string, approval_key: string) {
  const followed = useSignal<Followed | null>(null)
  const problem = useSignal<Problem | null>(null)
  const own = useSignal(false)
  const running = useRef(new AbortController())
  const path = pathOf('/v1/approvals', id)
  const note = (result: Result<Approval>) => {
    if (result.ok) {
      problem.value = null
      const { value, text } = result
      frozen_at.value = value.frozen_at ? Date.parse(value.frozen_at) : null
      const { may_decide, voted } = value
      const of = steeredOf(value, { text, name: 'effect_payload', may_decide, voted })
      followed.value = { approval: value, payload: exactMember(text, 'payload'), of }
      document.title = `${titleOf(result.value)} · Waystation`
    } else if (!isSame(problem.peek(), result.problem)) problem.value = result.problem
    if (!result.ok && isFinal(result.problem)) document.title = 'Approval · Waystation'
  }
  const follow = async (at_once = false) => {
    let is_first = at_once
    running.current.abort()
    const controller = new AbortController()
    running.current = controller
    const { signal } = controller
    for (let failures = 0; !signal.aborted; ) {
      const seen = failures === 0 && !is_first ? followed.peek() : null
      is_first = false
      const wait = seen ? wait_seconds : undefined
      const result = await call<Approval>(approval_key, 'GET', path, { query: { wait }, signal })
      if (signal.aborted) return
      note(result)
      if (result.ok ? result.value.status !== 'pending' : isFinal(result.problem)) return controller.abort()
      failures = result.ok ? 0 : failures + 1
      // A device that is online again asks at once.
      await pause(Math.min(pause_ms * 2 ** failures, pause_ms_max), signal, [[window, 'online']])
    }
  }
  /** Reads the request as it is now, at once. */
  const again = () => follow(true)
  useEffect(() => {
    void follow()
    // The line may have died while nobody looked: what it says of that comes later than the approver.
    const forget = whenBack(() => running.current.signal.aborted || void again())
    return () => {
      forget()
      running.current.abort()
    }
  }, [id, approval_key])
  const checkpoint_path = pathOf('/v1/checkpoints', id)
  const ask: Asking = (method, at, given) => call(approval_key, method, at, given)
  const decide = (verb: Verb, decision: Decision) =>
    call<Checkpoint>(approval_key, 'POST', `${checkpoint_path}/${verb}`, {
      body_text: decisionText(decision),
    })
  const present = async () => standingOf(await call<Approval>(approval_key, 'GET', path))
  const onEnd = (result: Result<Checkpoint>) => {
    const current = followed.peek()
    if (!result.ok || !current) return void again()
    const { status, reason, resolved_by, resolved_at, answer, approvals, rejections } = result.value
    if (status === 'pending') return void again()
    // An answer that is still under way is older than this one.
    running.current.abort()
    own.value = true
    problem.value = null
    const approval = { ...current.approval, status, reason, resolved_by, resolved_at, answer }
    const effective = exactMember(result.text, 'effective_payload')
    const of = { ...current.of, status, approvals, rejections, effective, edited: null }
    followed.value = { ...current, approval, of }
    document.title = `${titleOf(approval)} · Waystation`
  }
  return {
    ...{ followed: followed.value, problem: problem.value, own: own.value, decide, present, onEnd },
    ...{ ask, path: checkpoint_path },
  }
}

function titleOf({ status, title }: Approval): string {
  return `${status === 'pending' ? 'Decide' : status}: ${shown(title)}`
}

/** True when the service itself refuses, so that a repeat would not help. A proxy may answer better next time. */
function isFinal({ code, status }: Problem): boolean {
  return code !== 'UNAVAILABLE' && status >= 400 && status < 500 && status !== 429
}

interface RequestProps extends Followed {
  own: boolean
  entered: boolean
  path: string
  ask: Asking
  decide: (verb: Verb, decision: Decision) => Promise<Result<Checkpoint>>
  present: () => Promise<Result<Standing>>
  onEnd: (result: Result<Checkpoint>) => void
}

function Request({ approval, payload, of, own, entered, path, ask, ...deciding }: RequestProps) {
  const { title, prompt, agent, status, created_at, expires_at } = approval
  const pending = status === 'pending'
  const votes = useVotes(of, path, ask)
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    if (entered) heading.current?.focus()
  }, [])
  return (
    <article>
      <h1 ref={heading} tabIndex={-1}>
        <Text>{title}</Text>
      </h1>
      <Facts
        facts={{
          'Asked by': <Code>{agent.agent_id}</Code>,
          Asked: <Time at={created_at} />,
          'Time left': pending && <Countdown until={expires_at} over="none" held />,
        }}
      />
      <Outcome of={approval} own={own}>
        <p>{afterwards(status, own)}</p>
      </Outcome>
      <Content heading="h2" prompt={prompt} payload={payload} />
      <EffectPayload {...{ of }} />
      <Votes {...{ of, votes }} />
      {pending && (
        <div class="approve-foot">
          <Stopped />
          <TimeUp expires_at={expires_at} />
          <Decide title={title} agent={agent.agent_id} {...{ of }} {...deciding} />
        </div>
      )}
      <Comments {...{ of, path, ask }} />
    </article>
  )
}

function Stopped() {
  return (
    <div role="status">
      {frozen_at.value !== null && (
        <p class="notice">
          Everything is stopped. You can decide as before: the agent goes on once it is resumed, and the time
          that is left stands still.
        </p>
      )}
    </div>
  )
}

function TimeUp({ expires_at }: { expires_at: string }) {
  const over = useComputed(() => Date.parse(expires_at) <= held_now.value)
  return (
    <div role="status">
      {over.value && (
        <p class="notice">
          The time is up. A decision still counts until the service has closed the request.
        </p>
      )}
    </div>
  )
}

function afterwards(status: Approval['status'], own: boolean): string {
  if (status === 'cancelled') return 'There is nothing left to decide.'
  if (status === 'expired') {
    return 'The request was put aside for the team to look at. It can no longer be decided.'
  }
  if (!own) return 'It can no longer be changed.'
  return frozen_at.value === null
    ? 'The agent is being notified. You can close this page.'
    : 'Everything is stopped: the agent goes on once it is resumed. You can close this page.'
}

function NoRequest({ title, children }: { title: string; children: string }) {
  return (
    <div role="alert">
      <h1>{title}</h1>
      <p class="muted">{children}</p>
    </div>
  )
}

const refusals: Partial<Record<Problem['code'], [title: string, text: string]>> = {
  UNAUTHORIZED: [
    'This link does not work',
    'Its key is not valid: it was copied incompletely, it was revoked, or it has expired. Ask for a new link.',
  ],
  FORBIDDEN: ['This link is for another request', 'Its key may not decide this one. Ask for the right link.'],
  CHECKPOINT_NOT_FOUND: [
    'There is no such request',
    'The link is wrong, or the request was removed. Ask the person who sent it.',
  ],
  TENANT_PENDING_DELETION: [
    'This request cannot be decided',
    'The account that it belongs to is about to be deleted.',
  ],
}

function Refused({ problem: { code, message } }: { problem: Problem }) {
  const [title, text] = refusals[code] ?? ['This request cannot be shown', message]
  return <NoRequest title={title}>{shown(text)}</NoRequest>
}
