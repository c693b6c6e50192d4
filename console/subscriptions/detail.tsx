// One subscription: its state, what it delivers, its changes, and its last attempts.

import type { Subscription, SubscriptionAttempt } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { useAction } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { useGet, usePages } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { useWayOn } from '../router.ts'
import { reasonOf } from '../text/reason.ts'
import { count, counted, times } from '../text/words.ts'
import { Button, Code, CopiedCode, Countdown, Facts, Text, Time } from '../ui/basics.tsx'
import { Confirm, Emphasis } from '../ui/dialog.tsx'
import { Attempts, Detail, DetailTitle, type Moment, type OpenProps } from '../ui/list.tsx'
import { ErrorBox } from '../ui/page.tsx'
import { announce } from '../ui/toast.tsx'
import { workflowOf } from '../ui/workflow-link.tsx'
import { State } from './list.tsx'
import { Replay } from './replay.tsx'
import { format_titles, isForHolder, nameOf, paused_reasons, targetOf } from './words.ts'

/** Deliveries leave no event. */
const every_ms = 3_000

export function SubscriptionDetail({ id, onChange }: OpenProps) {
  const path = pathOf('/v1/subscriptions', id)
  const options = { every_ms, on: ['subscription'] as const }
  const loaded = useGet<Subscription>(path, {}, options)
  const attempts = usePages<SubscriptionAttempt>(`${path}/attempts`, {}, options)
  const reload = () => {
    loaded.reload()
    attempts.reload()
    onChange()
  }
  // Shown together, so that nothing moves when the second answer comes.
  const both = attempts.value || attempts.problem ? loaded : { ...loaded, value: null }
  return (
    <Detail
      loaded={both}
      what="the subscription"
      title="Subscription"
      name={nameOf}
      actions={(subscription) => <State {...subscription} />}
    >
      {(subscription) => (
        <>
          <DetailTitle>{nameOf(subscription)}</DetailTitle>
          <Why {...subscription} />
          <Changes {...{ subscription, path }} onChange={reload} />
          <SubscriptionFacts {...subscription} />
          <Attempts
            title="Last attempts"
            none="None yet. The next event that it names is delivered at once."
            {...{ attempts, momentOf }}
          />
        </>
      )}
    </Detail>
  )
}

/** Why nothing is delivered now. */
function Why({ status, paused_reason, last_error, last_status_code, ...rest }: Subscription) {
  if (status === 'unconfirmed') {
    return (
      <section class="outcome" data-status="pending" aria-label="State">
        <p class="outcome-title">Waits for the holder of the address</p>
        <p>An email asked them. Nothing else is sent until they have pressed the button behind its link.</p>
      </section>
    )
  }
  if (status === 'active' && last_error === null) return null
  const reason = last_error === null ? null : reasonOf(last_error, last_status_code)
  const [what, next] = paused_reason ? paused_reasons[paused_reason] : ['', '']
  const { attempts, next_attempt_at } = rest
  return (
    <section class="outcome" data-status={status === 'paused' ? 'expired' : 'pending'} aria-label="State">
      <p class="outcome-title">{status === 'paused' ? 'Paused' : `Failed ${times(attempts)} so far`}</p>
      {what && <p>{what}</p>}
      {reason && <p>{reason.what}</p>}
      {reason?.advice && <p class="muted">{reason.advice}</p>}
      {next && <p class="muted">{next}</p>}
      {next_attempt_at && (
        <p>
          The next attempt is in <Countdown until={next_attempt_at} over="a moment" />.
        </p>
      )}
    </section>
  )
}

interface ChangesProps {
  subscription: Subscription
  path: string
  onChange: () => void
}

function Changes({ subscription, path, onChange }: ChangesProps) {
  const { status } = subscription
  const { busy, problem, run } = useAction()
  const { leaveRemoved } = useWayOn()
  const paused = status === 'paused'
  const change = async () => {
    const done = await run(() => ask<Subscription>('PATCH', path, { body: { paused: !paused } }))
    if (!done) return
    announce(paused ? 'Resumed.' : 'Paused: nothing is delivered until you resume it.')
    onChange()
  }
  const refused = isForHolder(subscription)
  return (
    <div class="mend">
      <div class="detail-actions parts">
        <Button
          text={paused ? 'Resume' : 'Pause'}
          kind={paused && !refused ? 'primary' : 'plain'}
          disabled={refused}
          {...{ busy }}
          onClick={() => void change()}
        />
        <Replay {...{ subscription, path, onChange }} />
        <Asking text="Delete" kind="danger">
          {(onClose) => (
            <Confirm
              title="Delete this subscription?"
              verb="Yes, delete"
              work={() => ask('DELETE', path)}
              onDone={() => {
                announce('Deleted.')
                leaveRemoved('/console/subscriptions')
                onChange()
              }}
              {...{ onClose }}
            >
              <Emphasis>{nameOf(subscription)}</Emphasis>
              <p>Nothing more is delivered there. What happened stays in the journal.</p>
            </Confirm>
          )}
        </Asking>
      </div>
      {problem && <ErrorBox {...{ problem }} />}
    </div>
  )
}

function SubscriptionFacts(subscription: Subscription) {
  const { id, format, types, workflow_id, behind, after, delivered_at, created_at } = subscription
  return (
    <Facts
      facts={{
        Kind: format_titles[format],
        To: <Text>{targetOf(subscription)}</Text>,
        Types: (
          <span class="parts">
            {types.map((type) => (
              <Code key={type}>{type}</Code>
            ))}
          </span>
        ),
        Workflow: workflow_id === null ? 'all' : workflowOf(workflow_id),
        Delivered: delivered_at === null ? 'nothing yet' : <Time at={delivered_at} />,
        'Up to event': <span class="digits">{after}</span>,
        'Since then': behind > 0 && <span class="digits">{`${counted(behind, 'event')} of all types`}</span>,
        Created: <Time at={created_at} />,
        Id: <CopiedCode text={id} what="the id" />,
      }}
    />
  )
}

function momentOf(one: SubscriptionAttempt): Moment {
  const { number, event_type, event_seq, attempt, started_at, duration_ms, status_code, error } = one
  return {
    id: String(number),
    tone: error === null ? 'good' : 'bad',
    title: (
      <>
        <Code>{event_type}</Code> <span class="muted digits">{event_seq}</span>
      </>
    ),
    at: started_at,
    note: `${attempt > 1 ? `Attempt ${attempt}. ` : ''}${
      error === null
        ? `Taken${status_code === null ? '' : ` with ${status_code}`} after ${count(duration_ms)} ms.`
        : `${reasonOf(error, status_code).what} After ${count(duration_ms)} ms.`
    }`,
  }
}
