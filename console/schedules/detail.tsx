// One schedule: its times, its attempts, the reason of a failure, and its payload.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Attempt, Schedule } from '../../sdk/src/types.ts'
import { Successor } from '../actions/refusal.tsx'
import { pathOf } from '../api/address.ts'
import { type Loaded, useGet, useMember, usePages } from '../api/load.ts'
import { to } from '../router.ts'
import { agentCurl } from '../text/curl.ts'
import { reasonOf } from '../text/reason.ts'
import { count, times } from '../text/words.ts'
import { Badge, Code, Commands, CopiedCode, Countdown, ExternalLink, Facts, Time } from '../ui/basics.tsx'
import { Attempts, Detail, DetailTitle, type Moment, type OpenProps } from '../ui/list.tsx'
import { Part, Skeleton } from '../ui/page.tsx'
import { Tree } from '../ui/tree.tsx'
import { workflowOf } from '../ui/workflow-link.tsx'
import { LeftLetter } from './left-letter.tsx'
import { Mend } from './mend.tsx'

export function ScheduleDetail({ id, onChange }: OpenProps) {
  const path = pathOf('/v1/schedules', id)
  const final = useSignal(false)
  const options = { on: ['schedule'] as const, ...(final.value && { every_ms: 0 }) }
  const loaded = useGet<Schedule>(path, {}, options)
  const attempts = usePages<Attempt>(`${path}/attempts`, {}, options)
  const status = loaded.value?.status
  const before = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    if (status === undefined) return
    if (before.current === 'pending' && status !== 'pending') onChange()
    before.current = status
    final.value = status !== 'pending'
  }, [status])
  const reload = () => {
    loaded.reload()
    onChange()
  }
  // Shown together, so that nothing moves when the second answer comes.
  const both = attempts.value || attempts.problem ? loaded : { ...loaded, value: null }
  return (
    <Detail
      loaded={both}
      what="the schedule"
      title="Schedule"
      name={({ name, callback_url }) => name ?? callback_url}
      actions={(schedule) => <Badge>{schedule.status}</Badge>}
    >
      {(schedule) => (
        <>
          {schedule.name !== null && <DetailTitle>{schedule.name}</DetailTitle>}
          <p class={schedule.name === null ? 'detail-title' : 'origin'}>
            <ExternalLink url={schedule.callback_url} />
          </p>
          <WhyFailed schedule={schedule} />
          <Mend {...{ schedule, path }} onChange={reload} />
          <ScheduleFacts schedule={schedule} event={attempts.value?.[0]?.webhook_id} />
          <Attempts title="Attempts" none="None yet." {...{ attempts, momentOf }} />
          <Payload loaded={loaded} />
          <Changes schedule={schedule} path={path} />
        </>
      )}
    </Detail>
  )
}

function ScheduleFacts({ schedule, event }: { schedule: Schedule; event: string | undefined }) {
  const { id, agent_id, created_at, fire_at, next_attempt_at, fired_at, dlq_on_failure } = schedule
  const { retry_of, redrive_of } = schedule
  return (
    <Facts
      facts={{
        Agent: <Code>{agent_id}</Code>,
        Workflow: workflowOf(schedule.workflow_id),
        Due: <Time at={fire_at} />,
        'Next attempt': next_attempt_at && <Countdown until={next_attempt_at} over="now" />,
        Fired: fired_at && <Time at={fired_at} />,
        Created: <Time at={created_at} />,
        Repeats: retry_of !== null && <Successor id={retry_of} />,
        'Redrive of': redrive_of !== null && (
          <a href={to(pathOf('/console/dlq', redrive_of), { status: 'resolved' })}>the dead letter</a>
        ),
        'If it fails': dlq_on_failure ? 'leaves a dead letter' : 'leaves nothing',
        Id: <CopiedCode text={id} what="the id" />,
        'webhook-id': event && <CopiedCode text={event} what="the webhook-id" />,
      }}
    />
  )
}

/** The reason of the latest failure, also between two attempts. */
function WhyFailed({ schedule }: { schedule: Schedule }) {
  const { last_error, last_status_code, status, attempts, next_attempt_at } = schedule
  if (last_error === null || status === 'fired') return null
  const { what, advice } = reasonOf(last_error, last_status_code)
  const failed = status === 'failed'
  const title = failed
    ? `Gave up after ${attempts === 1 ? 'one attempt' : `${attempts} attempts`}`
    : `Failed ${times(attempts)} so far`
  return (
    <section class="outcome" data-status={failed ? 'rejected' : status} aria-label="Why it failed">
      <p class="outcome-title">{title}</p>
      <p>{what}</p>
      {advice && <p class="muted">{advice}</p>}
      {failed && <LeftLetter schedule={schedule} />}
      {!failed && next_attempt_at && (
        <p>
          The next attempt is in <Countdown until={next_attempt_at} over="a moment" />.
        </p>
      )}
    </section>
  )
}

function momentOf({ attempt, started_at, duration_ms, status_code, error, webhook_id }: Attempt): Moment {
  return {
    id: `${webhook_id} ${attempt} ${started_at}`,
    tone: error === null ? 'good' : error === 'interrupted' ? 'warn' : 'bad',
    title: `Attempt ${attempt}`,
    at: started_at,
    note:
      error === null
        ? `Delivered: the receiver answered ${status_code} after ${count(duration_ms)} ms.`
        : `${reasonOf(error, status_code).what}${error === 'interrupted' ? '' : ` After ${count(duration_ms)} ms.`}`,
  }
}

function Payload({ loaded }: { loaded: Loaded<Schedule> }) {
  const payload = useMember(loaded, 'callback_payload') ?? 'null'
  return (
    <Part title="Payload">
      {loaded.text === '' ? (
        <Skeleton lines={1} what="the payload" />
      ) : (
        <Tree text={payload} what="the payload" />
      )}
    </Part>
  )
}

function Changes({ schedule, path }: { schedule: Schedule; path: string }) {
  const { status, fire_at, retried_as } = schedule
  if (status === 'pending') {
    return (
      <Commands
        title="Change or cancel it with commands"
        lead="Only agents can do this. Use any agent key of this tenant:"
        commands={[
          ['Command that changes its time', agentCurl('PATCH', path, { json: `{"fire_at": "${fire_at}"}` })],
          ['Command that cancels the schedule', agentCurl('DELETE', path)],
        ]}
      />
    )
  }
  if (status === 'cancelled' || retried_as !== null) return null
  return (
    <Commands
      title="Send it again with a command"
      lead="Use any agent key of this tenant. The new schedule names this one:"
      commands={[['Command that schedules the call again', agentCurl('POST', `${path}/retry`)]]}
    />
  )
}
