// One effect: what it waits for, the bytes that it is bound to, its lease, its approval, and what happened.

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint, Effect } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { type Loaded, useGet, useMember } from '../api/load.ts'
import { isPast, Permit } from '../approvals/permit.tsx'
import { outcomeLine } from '../approvals/request.tsx'
import { to } from '../router.ts'
import { payloadText } from '../text/json.ts'
import { count, resolver } from '../text/words.ts'
import { Badge, Code, CopiedCode, Copy, Countdown, Facts, LongText, Text, Time } from '../ui/basics.tsx'
import { Difference } from '../ui/difference.tsx'
import { Detail, DetailTitle, type OpenProps } from '../ui/list.tsx'
import { LoadedView, Part } from '../ui/page.tsx'
import { Tree } from '../ui/tree.tsx'
import { workflowOf } from '../ui/workflow-link.tsx'
import { EffectEvents, useEffectEvents } from './events.tsx'
import { refusals, StatusBadge } from './status.tsx'
import { Close, Verdict } from './verdict.tsx'

export function EffectDetail({ id, onChange }: OpenProps) {
  const path = pathOf('/v1/effects', id)
  const loaded = useGet<Effect>(path, {}, { on: ['effect'] })
  const events = useEffectEvents(id)
  const reload = () => {
    loaded.reload()
    onChange()
  }
  // Shown together, so that nothing moves when the second answer comes.
  const both = events.value || events.problem ? loaded : { ...loaded, value: null }
  return (
    <Detail
      loaded={both}
      what="the effect"
      title="Effect"
      name={({ type, key }) => `${type} ${key}`}
      actions={(effect) => <StatusBadge {...effect} />}
    >
      {(effect) => (
        <>
          <DetailTitle>{effect.key}</DetailTitle>
          <p class="origin">
            <Code>{effect.type}</Code>
          </p>
          {effect.note && <LongText>{effect.note}</LongText>}
          <Standing {...{ effect }} />
          <Verdict {...{ effect, path }} onChange={reload} />
          <EffectFacts {...{ effect }} />
          <Payload {...{ loaded, effect }} />
          {effect.checkpoint_id !== null && (
            <Approval id={effect.checkpoint_id} {...{ effect }} onChange={reload} />
          )}
          <Close {...{ effect, path }} onChange={reload} />
          <EffectEvents {...{ events }} />
        </>
      )}
    </Detail>
  )
}

/** How it stands, in words. It takes the focus when a verdict has taken the buttons away. */
function Standing({ effect }: { effect: Effect }) {
  const { status } = effect
  const place = useRef<HTMLDivElement>(null)
  const before = useRef(status)
  useLayoutEffect(() => {
    if (before.current !== status && document.activeElement === document.body) place.current?.focus()
    before.current = status
  }, [status])
  return (
    <div ref={place} tabIndex={-1} role="status">
      <Stands {...{ effect }} />
    </div>
  )
}

function Stands({ effect }: { effect: Effect }) {
  const { status, checkpoint_id, question_id, error, refused_as, held_by, lease_until } = effect
  const is_permit_over = status === 'approved' && isPast(effect.permit_expires_at)
  if (status === 'unknown') {
    return (
      <div class="outcome" data-status="expired">
        <p class="outcome-title">Nobody knows whether this happened</p>
        <p>
          {held_by !== null && <Code>{held_by}</Code>} had the lease, which ran out{' '}
          {lease_until && <Time at={lease_until} />} without a report.{' '}
          {question_id !== null && (
            <>
              A person is asked in{' '}
              <a href={to(pathOf('/console/approvals', question_id))}>a request for approval</a>.
            </>
          )}
        </p>
      </div>
    )
  }
  if (status === 'awaiting_approval') {
    return (
      <div class="outcome">
        <p class="outcome-title">Waits for its approval</p>
        <p class="muted">Nothing happens before it is approved, byte for byte.</p>
        {checkpoint_id !== null && (
          <p class="detail-links parts">
            <a class="button" data-kind="primary" href={to(pathOf('/console/approvals', checkpoint_id))}>
              Decide
            </a>
          </p>
        )}
      </div>
    )
  }
  if (status === 'succeeded' || status === 'failed') return <Finished {...effect} />
  if (status === 'rejected') {
    return (
      <div class="outcome" data-status="rejected">
        <p class="outcome-title">{refusals[refused_as ?? 'rejected']}</p>
        <p class="muted">It never happens under this key. Another attempt is another effect.</p>
      </div>
    )
  }
  return (
    <div class="outcome" data-status={status === 'approved' ? 'approved' : undefined}>
      <p class="outcome-title">{open_titles[status]}</p>
      <p class="muted">
        {status === 'running' && lease_until !== null ? (
          <>
            <Code>{held_by ?? '–'}</Code> has the lease for{' '}
            <Countdown until={lease_until} over="no longer: it has just run out" held />.
          </>
        ) : is_permit_over ? (
          'Its approval is over: no agent can start it any more.'
        ) : (
          'Nobody has the lease. An agent that claims or starts it gets it.'
        )}
      </p>
      {error !== null && status !== 'running' && (
        <p>
          <span class="muted">Last report: </span>
          <Text>{error}</Text>
        </p>
      )}
    </div>
  )
}

const open_titles = {
  running: 'It is being done',
  ready: 'It may be started again',
  approved: 'Approved, not yet started',
}

function Finished({ status, finished_at, resolved_by, held_by, error }: Effect) {
  const succeeded = status === 'succeeded'
  return (
    <div class="outcome" data-status={succeeded ? 'approved' : undefined}>
      <p class="outcome-title">{succeeded ? 'It happened' : 'It did not happen, and never will'}</p>
      <p class="muted">
        {resolved_by !== null ? (
          <>Decided by {resolver(resolved_by)}</>
        ) : (
          <>
            Reported by <Code>{held_by ?? '–'}</Code>
          </>
        )}{' '}
        {finished_at && <Time at={finished_at} />}
      </p>
      {error !== null && <LongText>{error}</LongText>}
    </div>
  )
}

const on_unknown = {
  hold: 'waits for you',
  ask: 'a person is asked',
  retry: 'it may be started again',
}

function EffectFacts({ effect }: { effect: Effect }) {
  const { status, lease_until, permit_expires_at, held_by, fence, lease_seconds } = effect
  return (
    <Facts
      facts={{
        Agent: <Code>{effect.agent_id}</Code>,
        Workflow: workflowOf(effect.workflow_id),
        'Lease holder': held_by !== null && <Code>{held_by}</Code>,
        'Lease ends': status === 'running' && lease_until && (
          <Countdown until={lease_until} over="now" held />
        ),
        'Lease ran out': status === 'unknown' && lease_until && <Time at={lease_until} />,
        Fence: <span class="digits">{fence === 0 ? 'not started yet' : count(fence)}</span>,
        'A lease holds': <span class="digits">{count(lease_seconds)} s</span>,
        'If one runs out': on_unknown[effect.on_unknown],
        'Approval ends': permit_expires_at && <Time at={permit_expires_at} />,
        Claimed: <Time at={effect.created_at} />,
        Id: <CopiedCode text={effect.id} what="the id" />,
      }}
    />
  )
}

function Payload({ loaded, effect }: { loaded: Loaded<Effect>; effect: Effect }) {
  const { payload_hash, effective_hash, status } = effect
  const payload = payloadText(useMember(loaded, 'payload'), payload_hash)
  const effective = useMember(loaded, 'effective_payload')
  const result = useMember(loaded, 'result')
  const is_changed = effective_hash !== null
  return (
    <>
      <Part title={is_changed ? 'Payload, as it was proposed' : 'Payload'}>
        {payload === null ? (
          <p class="muted">Removed: the plan says how long payloads are kept.</p>
        ) : (
          <Tree text={payload} what="the payload" />
        )}
        <Hash text={payload_hash} what="the hash of the payload" />
      </Part>
      {is_changed && (
        <Part title="Effective payload, as it was approved">
          {payload !== null && effective !== null ? (
            <Difference before={payload} after={effective} what="between proposal and approval" />
          ) : (
            <p class="muted">Removed.</p>
          )}
          <Hash text={effective_hash} what="the hash of the effective payload" />
        </Part>
      )}
      {status === 'succeeded' && result !== null && (
        <Part title="Result">
          <Tree text={result} what="the result" />
        </Part>
      )}
    </>
  )
}

/** The start of it is enough to compare. */
const hash_characters = 16

function Hash({ text, what }: { text: string; what: string }) {
  return (
    <p class="effect-hash muted small">
      SHA-256 <Code>{`${text.slice(0, hash_characters)}…`}</Code> <Copy {...{ text, what }} />
    </p>
  )
}

interface ApprovalProps {
  id: string
  effect: Effect
  onChange: () => void
}

function Approval({ id, effect, onChange }: ApprovalProps) {
  const loaded = useGet<Checkpoint>(pathOf('/v1/checkpoints', id), {}, { on: ['checkpoint'] })
  const reload = () => {
    loaded.reload()
    onChange()
  }
  return (
    <Part title="Approval">
      <LoadedView {...{ loaded }} what="the approval" lines={2}>
        {(checkpoint) => (
          <>
            <p>
              <a href={to(pathOf('/console/approvals', id))}>
                <Text>{checkpoint.title}</Text>
              </a>{' '}
              <Badge>{checkpoint.status}</Badge>
            </p>
            <p class="muted small">{standingOf(checkpoint)}</p>
            <Permit is_open={effect.finished_at === null} onChange={reload} {...{ checkpoint }} />
          </>
        )}
      </LoadedView>
    </Part>
  )
}

function standingOf(checkpoint: Checkpoint): string {
  const { status, approvals, required_approvals } = checkpoint
  if (status !== 'pending') return outcomeLine(checkpoint)
  return `${count(approvals)} of ${count(required_approvals)} approvals so far`
}
