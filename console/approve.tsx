// The approval page, /approve/{checkpoint_id}#{approval key}. The key stays in the fragment, which browsers send nowhere,
// and leaves it in the Authorization header of calls of the API alone.

import { useComputed, useSignal } from '@preact/signals'
import { type ComponentChildren, type JSX, render } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { Approval, Checkpoint } from '../sdk/src/types.ts'
import { decoded } from './address.ts'
import { call, isSame, type Problem, type Result } from './api.ts'
import { Decide, exactMember, Outcome, Question, type Verb } from './checkpoint.tsx'
import './style.css'
import './approve.css'
import './theme.ts'
import { shown } from './text.ts'
import { now } from './time.ts'
import { Code, Countdown, type Fact, Facts, Text, Time } from './ui/basics.tsx'
import { ErrorBox, Skeleton } from './ui/states.tsx'
import { Toast } from './ui/toast.tsx'

/** How long one request waits for a decision made elsewhere. */
const wait_seconds = 25
/** Between two requests, whatever the answer; more after each that failed. */
const pause_ms = 1_500
const pause_ms_max = 15_000

interface Seen {
  approval: Approval
  /** As stored. */
  payload: string | null
}

function Approve({ id, approval_key }: { id: string; approval_key: string }): JSX.Element {
  const seen = useSignal<Seen | null>(null)
  const problem = useSignal<Problem | null>(null)
  const own = useSignal(false)
  const again = useRef(() => {})
  const stop = useRef(() => {})

  const note = (result: Result<Approval>) => {
    if (!result.ok) {
      if (!isSame(problem.peek(), result.problem)) problem.value = result.problem
      if (isFinal(result.problem)) document.title = 'Approval · Waystation'
      return
    }
    problem.value = null
    seen.value = { approval: result.value, payload: exactMember(result.text, 'payload') }
    document.title = `${titleOf(result.value)} · Waystation`
  }

  useEffect(() => {
    let running = new AbortController()
    const follow = async ({ signal }: AbortController) => {
      for (let failures = 0; ; ) {
        const wait = failures === 0 && seen.peek() ? wait_seconds : undefined
        const result = await call<Approval>(approval_key, 'GET', `/v1/approvals/${encodeURIComponent(id)}`, {
          query: { wait },
          signal,
        })
        if (signal.aborted) return
        note(result)
        if (result.ok ? result.value.status !== 'pending' : isFinal(result.problem)) return
        failures = result.ok ? 0 : failures + 1
        await pause(Math.min(pause_ms * 2 ** failures, pause_ms_max), signal)
        if (signal.aborted) return
      }
    }
    again.current = () => {
      running.abort()
      running = new AbortController()
      void follow(running)
    }
    stop.current = () => running.abort()
    if (approval_key !== '') again.current()
    return () => running.abort()
  }, [id, approval_key])

  const decide = (verb: Verb, reason: string) =>
    call<Checkpoint>(approval_key, 'POST', `/v1/checkpoints/${encodeURIComponent(id)}/${verb}`, {
      body: reason === '' ? {} : { reason },
    })
  const onEnd = (result: Result<Checkpoint>) => {
    const current = seen.peek()
    if (result.ok && current) {
      const { status, reason, resolved_by, resolved_at } = result.value
      // An answer that is still on its way is older than this one.
      stop.current()
      problem.value = null
      own.value = true
      seen.value = { ...current, approval: { ...current.approval, status, reason, resolved_by, resolved_at } }
      document.title = `${titleOf(seen.value.approval)} · Waystation`
    } else again.current()
  }

  if (approval_key === '') return <Incomplete />
  if (problem.value && isFinal(problem.value)) return <Refused problem={problem.value} />
  if (!seen.value) {
    return problem.value ? <ErrorBox problem={problem.value} /> : <Skeleton lines={9} what="the request" />
  }
  return (
    <>
      {problem.value && <ErrorBox problem={problem.value} />}
      <Request seen={seen.value} own={own.value} {...{ decide, onEnd }} />
    </>
  )
}

interface RequestProps {
  seen: Seen
  own: boolean
  decide: (verb: Verb, reason: string) => Promise<Result<Checkpoint>>
  onEnd: (result: Result<Checkpoint>) => void
}

function Request({ seen: { approval, payload }, own, decide, onEnd }: RequestProps): JSX.Element {
  const { title, prompt, agent, status, created_at, expires_at } = approval
  const pending = status === 'pending'
  const outcome = useRef<HTMLDivElement>(null)
  const was_pending = useRef(pending)
  useLayoutEffect(() => {
    // The buttons are gone, and the focus with them.
    if (was_pending.current && !pending) outcome.current?.focus()
    was_pending.current = pending
  }, [pending])
  const facts: Fact[] = [
    { name: 'Asked by', value: <Code>{agent.agent_id}</Code> },
    { name: 'Asked', value: <Time at={created_at} /> },
    ...(pending ? [{ name: 'Time left', value: <Countdown until={expires_at} over="none" /> }] : []),
  ]
  return (
    <article>
      <h1>
        <Text>{title}</Text>
      </h1>
      <Facts facts={facts} />
      {!pending && (
        <div ref={outcome} tabIndex={-1} role="status">
          <Outcome {...approval} own={own}>
            <p>{afterwards(status, own)}</p>
          </Outcome>
        </div>
      )}
      <Question prompt={prompt} payload={payload} />
      {pending && (
        <div class="approve-foot">
          <TimeUp expires_at={expires_at} />
          <Decide title={title} agent={agent.agent_id} {...{ decide, onEnd }} />
        </div>
      )}
    </article>
  )
}

function TimeUp({ expires_at }: { expires_at: string }): JSX.Element {
  const over = useComputed(() => Date.parse(expires_at) <= now.value)
  return (
    <div role="status">
      {over.value && (
        <p class="notice">
          The time is up. A decision still counts until the service has settled the request.
        </p>
      )}
    </div>
  )
}

function afterwards(status: Approval['status'], own: boolean): string {
  if (status === 'cancelled') return 'There is nothing left to decide.'
  if (status === 'expired')
    return 'The request was put aside for the team to look at. It can no longer be decided.'
  return own ? 'The agent is being told. You can close this page.' : 'It can no longer be changed.'
}

function titleOf({ status, title }: Approval): string {
  return `${status === 'pending' ? 'Decide' : status}: ${shown(title)}`
}

/** The service itself refuses, and asking again would not help. Others in between may be gone the next time. */
function isFinal({ code, status }: Problem): boolean {
  return code !== 'UNAVAILABLE' && status >= 400 && status < 500 && status !== 429
}

function Incomplete(): JSX.Element {
  return (
    <NoRequest title="This link is incomplete">
      The part after # is missing: it is the key that allows you to decide. Open the link again as it was sent
      to you, whole.
    </NoRequest>
  )
}

function NoRequest({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <div role="alert">
      <h1>{title}</h1>
      <p class="muted">{children}</p>
    </div>
  )
}

function Refused({ problem: { code, message } }: { problem: Problem }): JSX.Element {
  const words: Partial<Record<Problem['code'], [title: string, text: string]>> = {
    UNAUTHORIZED: [
      'This link does not work',
      'Its key is not valid: it was copied incompletely, or it was revoked. Ask whoever sent it for a new link.',
    ],
    FORBIDDEN: [
      'This link is for another request',
      'Its key may not decide this one. Ask for the right link.',
    ],
    CHECKPOINT_NOT_FOUND: [
      'There is no such request',
      'The link is wrong, or the request was removed. Ask whoever sent it to you.',
    ],
    TENANT_PENDING_DELETION: [
      'This request cannot be decided',
      'The account that it belongs to is about to be deleted.',
    ],
  }
  const [title, text] = words[code] ?? ['This request cannot be shown', message]
  return <NoRequest title={title}>{shown(text)}</NoRequest>
}

/** Over early when the device is online again or somebody comes back to the page. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      removeEventListener('online', done)
      document.removeEventListener('visibilitychange', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    addEventListener('online', done)
    document.addEventListener('visibilitychange', done)
    signal.addEventListener('abort', done)
  })
}

function App(): JSX.Element {
  const approval_key = useSignal(keyOfAddress())
  useEffect(() => {
    const changed = () => {
      approval_key.value = keyOfAddress()
    }
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  const id = decoded(location.pathname.replace(/\/$/, '').split('/').at(-1) ?? '')
  return (
    <>
      <main class="approve">
        <p class="brand">Waystation</p>
        <Approve key={approval_key.value} id={id} approval_key={approval_key.value} />
      </main>
      <Toast />
    </>
  )
}

/** What is no key at all counts as none: it could not even be sent in a header. */
function keyOfAddress(): string {
  const text = location.hash.slice(1).trim()
  return /^[\x21-\x7e]+$/.test(text) ? text : ''
}

render(<App />, document.getElementById('app')!)
