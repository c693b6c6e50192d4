// Refused changes in words: the reason, and the next step.

import type { ComponentChildren } from 'preact'
import { pathOf } from '../api/address.ts'
import { isOutcomeUnknown, type Problem } from '../api/client.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Code } from '../ui/basics.tsx'
import { ErrorBox } from '../ui/page.tsx'

interface Refused {
  what: string
  next: ComponentChildren
}

/** A problem of a change. Those that it may meet in the course of work are explained, others are shown as they came. */
export function Refusal({ problem }: { problem: Problem }) {
  const refused = refusalOf(problem)
  if (refused === null) {
    return (
      <>
        <ErrorBox {...{ problem }} />
        {isOutcomeUnknown(problem) && (
          <p>It may have been done or not. A repeat is safe: it is not done twice.</p>
        )}
      </>
    )
  }
  return (
    <div class="error" role="alert">
      <p class="error-title">{refused.what}</p>
      <p>{refused.next}</p>
      <p class="muted small">{problem.code}</p>
    </div>
  )
}

function refusalOf({ code, details }: Problem): Refused | null {
  if (code === 'INVALID_STATE') return stateRefusal(details)
  if (code === 'QUOTA_EXCEEDED') return quotaRefusal(details)
  return refusals[code] ?? null
}

const at_agents = (
  <>
    Nothing was changed. Change that at the <a href={to('/console/keys')}>agents</a>.
  </>
)
const removed = { what: 'It has been removed in the meantime.', next: 'There is nothing left to do.' }

const refusals: { [code in Problem['code']]?: Refused } = {
  ALREADY_CLAIMED: {
    what: 'An agent works on it now.',
    next: 'Nothing was changed. Wait for the agent to finish, or for its lock to end, and try again.',
  },
  LOCK_NOT_HELD: {
    what: 'An agent holds its lock.',
    next: 'Nothing was changed. It can be resolved by that agent, or by others once the lock has ended.',
  },
  TENANT_FROZEN: {
    what: 'Everything is stopped.',
    next: 'Nothing was changed: the console does this through an agent. Resume first, in the banner.',
  },
  AGENT_PAUSED: { what: 'The console’s agent is paused.', next: at_agents },
  AGENT_READ_ONLY: { what: 'The console’s agent may only read.', next: at_agents },
  IDEMPOTENCY_IN_PROGRESS: {
    what: 'It is being done already.',
    next: 'Wait a moment, and look at it again.',
  },
  TOO_MANY_OPERATIONS: {
    what: 'Too many operations are under way.',
    next: 'Nothing was changed. Wait until one of them has ended, or cancel one.',
  },
  VERSION_MISMATCH: {
    what: 'It has changed in the meantime.',
    next: 'Nothing was changed. Look at the new value first.',
  },
  DLQ_NOT_FOUND: removed,
  SCHEDULE_NOT_FOUND: removed,
  AGENT_NOT_FOUND: removed,
}

function stateRefusal({ status, redriven_as, retried_as }: Record<string, unknown>): Refused {
  const successor = [redriven_as, retried_as].find((id) => typeof id === 'string')
  if (typeof successor === 'string') {
    return {
      what: 'It has been sent again already.',
      next: (
        <>
          Look at <Successor id={successor} />: only the latest one can be sent again.
        </>
      ),
    }
  }
  return {
    what: typeof status === 'string' ? `It is ${status} now.` : 'It changed in the meantime.',
    next: 'Nothing was changed. Reload the page to see where it stands.',
  }
}

/** The name of a quota, in words. */
export function quotaName(quota: string): string {
  return quota_names[quota] ?? quota
}

const quota_names: Record<string, string> = {
  active_schedules: 'schedules that wait',
  dlq_items: 'open dead letters',
  agents: 'agents',
  effects: 'effects that are not over',
  effect_policies: 'policies for effects',
  api_calls_per_month: 'calls of /api in a month',
}

const quota_steps: Record<string, string> = {
  active_schedules:
    'Wait until some of them have fired, cancel those that are not needed, or raise the plan.',
  dlq_items: 'Discard or resolve others first, or raise the plan.',
  effect_policies: 'Delete a policy that is not needed, or raise the plan.',
  agents: 'Delete an agent that is not needed, or raise the plan.',
}

function quotaRefusal({ quota, used, limit }: Record<string, unknown>): Refused {
  const name = quotaName(String(quota ?? 'this'))
  const numbers =
    typeof used === 'number' && typeof limit === 'number' ? `: ${count(used)} of ${count(limit)}` : ''
  return {
    what: `The plan’s limit of ${name} is reached${numbers}.`,
    next: (
      <>
        Nothing was changed. {quota_steps[String(quota)] ?? 'Wait until next month, or raise the plan.'}{' '}
        <a href={to('/console/keys/tenant')}>See all limits</a>
      </>
    ),
  }
}

/** The reasons for which buttons are disabled, one line for each. */
export function Refused({ refused }: { refused: [title: string, reason: string][] }) {
  const by_reason = new Map<string, string[]>()
  for (const [title, reason] of refused) by_reason.set(reason, [...(by_reason.get(reason) ?? []), title])
  return (
    <ul class="reasons muted small">
      {[...by_reason].map(([reason, titles]) => (
        <li key={reason}>
          {titles.join(', ')}: {reason}
        </li>
      ))}
    </ul>
  )
}

/** The page of what was sent again: a schedule, or the approval whose callback it is. */
export function successorPath(id: string): string {
  return pathOf(id.startsWith('sch_') ? '/console/schedules' : '/console/approvals', id)
}

export function Successor({ id }: { id: string }) {
  return (
    <a href={to(successorPath(id))}>
      <Code>{id}</Code>
    </a>
  )
}
