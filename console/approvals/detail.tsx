// One request for approval, decided in the console.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint, Vote } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { Result } from '../api/client.ts'
import { type Loaded, useGet, useMember } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { to } from '../router.ts'
import { agentCurl } from '../text/curl.ts'
import {
  Badge,
  Code,
  Commands,
  CopiedCode,
  Countdown,
  ExternalLink,
  Facts,
  Text,
  Time,
} from '../ui/basics.tsx'
import { Detail, DetailTitle, type OpenProps } from '../ui/list.tsx'
import { Part } from '../ui/page.tsx'
import { announce } from '../ui/toast.tsx'
import { workflowOf } from '../ui/workflow-link.tsx'
import { Decide } from './decide.tsx'
import { Comments, useVotes, Votes } from './discussion.tsx'
import { Permit } from './permit.tsx'
import { Content, EffectPayload, Outcome } from './request.tsx'
import { type Decision, decisionText, type Steered, standingOf, steeredOf, type Verb } from './steered.ts'

export function ApprovalDetail({ id, onChange }: OpenProps) {
  const { loaded, own, path, send, present, onEnd } = useCheckpoint(id, onChange)
  const { value } = loaded
  const edited = useMember(loaded, 'edited_payload')
  const votes = useVotes(value && { ...value, edited }, path, ask)
  const { own: voted, decide } = useOwnVote(votes, send)
  const payload = useMember(loaded, 'callback_payload')
  const onPermit = () => {
    loaded.reload()
    onChange()
  }
  const of = (checkpoint: Checkpoint) =>
    steeredOf(checkpoint, {
      ...{ text: loaded.text, name: 'payload', voted },
      may_decide: checkpoint.approvers?.includes('admin') ?? true,
    })
  return (
    <Detail
      {...{ loaded }}
      what="the request"
      title="Request"
      name={({ title }) => title}
      actions={({ status }) => <Badge>{status}</Badge>}
    >
      {(checkpoint) => (
        <>
          <DetailTitle>{checkpoint.title}</DetailTitle>
          <CheckpointFacts {...{ checkpoint }} />
          <Outcome of={checkpoint} own={own} />
          <Permit is_open={false} onChange={onPermit} {...{ checkpoint }} />
          <Content heading="h4" prompt={checkpoint.prompt} {...{ payload }} />
          <EffectPayload of={of(checkpoint)} />
          <Votes of={of(checkpoint)} {...{ votes }} />
          {checkpoint.status === 'pending' && (
            <>
              <HandOn {...checkpoint} />
              <Decide
                title={checkpoint.title}
                agent={checkpoint.agent_id}
                of={of(checkpoint)}
                {...{ decide, present, onEnd }}
              />
              <Commands
                title="Withdraw the request"
                lead="Only the agent that asked can withdraw it, with its own key:"
                commands={[
                  ['Command that withdraws the request', agentCurl('DELETE', pathOf('/v1/checkpoints', id))],
                ]}
              />
            </>
          )}
          <Comments of={of(checkpoint)} {...{ path, ask }} />
        </>
      )}
    </Detail>
  )
}

/** The link without a key, which an agent may also hand on. */
function HandOn({ approval_url }: Checkpoint) {
  return (
    <Part title="Link to hand on">
      <CopiedCode text={approval_url} what="the link" />
      <p class="muted small">
        To read the request and decide, a person also needs an{' '}
        <a href={to('/console/keys/approval-keys')}>approval key</a>.
      </p>
    </Part>
  )
}

function useCheckpoint(id: string, onChange: () => void) {
  const path = pathOf('/v1/checkpoints', id)
  const final = useSignal(false)
  const own = useSignal(false)
  const repeats = { on: ['checkpoint', 'callback'] as const, ...(final.value && { every_ms: 0 }) }
  const loaded = useGet<Checkpoint>(path, {}, repeats)
  const { value } = loaded
  useLayoutEffect(() => {
    // A decided request still changes while its callback is under way.
    if (value) final.value = value.status !== 'pending' && value.callback.status !== 'pending'
  }, [value])
  const send: Deciding = (verb, decision) =>
    ask<Checkpoint>('POST', `${path}/${verb}`, { body_text: decisionText(decision) })
  const present = async () => standingOf(await ask<Checkpoint>('GET', path))
  const onEnd = (result: Result<Checkpoint>) => {
    if (result.ok) {
      const { status } = result.value
      // A vote that decides nothing leaves the decision to another.
      own.value = status !== 'pending'
      announce({ approved: 'Approved.', rejected: 'Rejected.' }[status as string] ?? 'Your vote is counted.')
    } else if (result.problem.code === 'CHECKPOINT_ALREADY_RESOLVED') announce('Somebody else was faster.')
    loaded.reload()
    onChange()
  }
  return { loaded, own: own.value, path, send, present, onEnd }
}

type Deciding = (verb: Verb, decision: Decision) => Promise<Result<Checkpoint>>

/** The vote of the admin key, where votes are counted: as it was cast here, until the list has it. */
function useOwnVote({ value: list }: Loaded<Vote[]>, send: Deciding) {
  const latest = useRef(list)
  latest.current = list
  const cast = useSignal<{ decision: Vote['decision']; before: Vote[] | null } | null>(null)
  const decide: Deciding = async (verb, decision) => {
    const result = await send(verb, decision)
    if (result.ok)
      cast.value = { decision: verb === 'approve' ? 'approved' : 'rejected', before: latest.current }
    return result
  }
  const listed = list?.find(({ voter }) => voter === 'admin')
  // A list that was on its way meanwhile lacks it too.
  const is_cast = cast.value !== null && (listed === undefined || cast.value.before === list)
  if (is_cast) return { own: cast.value!.decision, decide }
  const own: Steered['voted'] = list === null ? 'unknown' : listed?.counts ? listed.decision : null
  return { own, decide }
}

function CheckpointFacts({ checkpoint }: { checkpoint: Checkpoint }) {
  const { agent_id, effect_id, created_at, expires_at, status, timeout_action, callback_url } = checkpoint
  return (
    <Facts
      facts={{
        Agent: <Code>{agent_id}</Code>,
        Workflow: workflowOf(checkpoint.workflow_id),
        'What it is for': effect_id !== null && (
          <a href={to(pathOf('/console/effects', effect_id))}>its effect</a>
        ),
        Asked: <Time at={created_at} />,
        'Time left': status === 'pending' && <Countdown until={expires_at} over="time is up" held />,
        'If nobody decides': timeout_action === 'dlq' ? 'expires, leaves a dead letter' : 'is rejected',
        'Answer goes to':
          callback_url === null ? 'the agent, which waits for it' : <ExternalLink url={callback_url} />,
        Delivery: callback_url !== null && <Delivery {...checkpoint} />,
      }}
    />
  )
}

function Delivery({ callback: { status, attempts, last_error, dead_letter_id } }: Checkpoint) {
  return (
    <>
      <Badge>{status}</Badge>
      {attempts > 0 && (
        <span class="muted"> {attempts === 1 ? 'at the first try' : `after ${attempts} tries`}</span>
      )}
      {last_error && (
        <span class="muted">
          {': '}
          <Text>{last_error}</Text>
        </span>
      )}
      {status === 'failed' && dead_letter_id !== null && (
        <>
          {' '}
          <a href={to(pathOf('/console/dlq', dead_letter_id))}>its dead letter</a>
        </>
      )}
    </>
  )
}
