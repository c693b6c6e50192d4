// The approval page: one request, followed until it is decided, and the form that decides it.

import { useComputed, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { Approval, Checkpoint } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { call, isSame, type Problem, type Result } from '../api/client.ts'
import { pause } from '../api/wait.ts'
import { exactMember } from '../text/json.ts'
import { now } from '../text/time.ts'
import { shown } from '../text/words.ts'
import { Code, Countdown, Facts, Text, Time } from '../ui/basics.tsx'
import { ErrorBox, Skeleton } from '../ui/page.tsx'
import { Content, Decide, Outcome, type Verb } from './request.tsx'

/** One request of the page waits this long for a decision made elsewhere. */
const wait_seconds = 25
/** Between two requests, whatever the answer. Each failure doubles it. */
const pause_ms = 1_500
const pause_ms_max = 15_000

interface Followed {
  approval: Approval
  /** As stored. */
  payload: string | null
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
      followed.value = { approval: result.value, payload: exactMember(result.text, 'payload') }
      document.title = `${titleOf(result.value)} · Waystation`
    } else if (!isSame(problem.peek(), result.problem)) problem.value = result.problem
    if (!result.ok && isFinal(result.problem)) document.title = 'Approval · Waystation'
  }
  const follow = async () => {
    running.current.abort()
    running.current = new AbortController()
    const { signal } = running.current
    for (let failures = 0; !signal.aborted; ) {
      const wait = failures === 0 && followed.peek() ? wait_seconds : undefined
      const result = await call<Approval>(approval_key, 'GET', path, { query: { wait }, signal })
      if (signal.aborted) return
      note(result)
      if (result.ok ? result.value.status !== 'pending' : isFinal(result.problem)) return
      failures = result.ok ? 0 : failures + 1
      // A device that is online again, or a tab that is visible again, asks at once.
      await pause(Math.min(pause_ms * 2 ** failures, pause_ms_max), signal, [
        [window, 'online'],
        [document, 'visibilitychange'],
      ])
    }
  }
  useEffect(() => {
    void follow()
    return () => running.current.abort()
  }, [id, approval_key])
  const decide = (verb: Verb, reason: string) =>
    call<Checkpoint>(approval_key, 'POST', `${pathOf('/v1/checkpoints', id)}/${verb}`, {
      body: reason === '' ? {} : { reason },
    })
  const onEnd = (result: Result<Checkpoint>) => {
    const current = followed.peek()
    if (!result.ok || !current) return void follow()
    const { status, reason, resolved_by, resolved_at } = result.value
    // An answer that is still under way is older than this one.
    running.current.abort()
    own.value = true
    problem.value = null
    const approval = { ...current.approval, status, reason, resolved_by, resolved_at }
    followed.value = { ...current, approval }
    document.title = `${titleOf(approval)} · Waystation`
  }
  return { followed: followed.value, problem: problem.value, own: own.value, decide, onEnd }
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
  decide: (verb: Verb, reason: string) => Promise<Result<Checkpoint>>
  onEnd: (result: Result<Checkpoint>) => void
}

function Request({ approval, payload, own, entered, decide, onEnd }: RequestProps) {
  const { title, prompt, agent, status, created_at, expires_at } = approval
  const pending = status === 'pending'
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
          'Time left': pending && <Countdown until={expires_at} over="none" />,
        }}
      />
      <Outcome of={approval} own={own}>
        <p>{afterwards(status, own)}</p>
      </Outcome>
      <Content heading="h2" prompt={prompt} payload={payload} />
      {pending && (
        <div class="approve-foot">
          <TimeUp expires_at={expires_at} />
          <Decide title={title} agent={agent.agent_id} {...{ decide, onEnd }} />
        </div>
      )}
    </article>
  )
}

function TimeUp({ expires_at }: { expires_at: string }) {
  const over = useComputed(() => Date.parse(expires_at) <= now.value)
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
  return own ? 'The agent is being notified. You can close this page.' : 'It can no longer be changed.'
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
    'Its key is not valid: it was copied incompletely, or it was revoked. Ask for a new link.',
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
