// One schedule: when it is called, what came of each attempt, why it failed, and what it left.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { Attempt, ListedDeadLetter, Schedule } from '../sdk/src/types.ts'
import { exactMember } from './checkpoint.tsx'
import { curl } from './command.ts'
import { reasonOf } from './failure.ts'
import { Elsewhere, History, type Moment } from './history.tsx'
import { type Loaded, type Pages, useGet, useLoad, usePages } from './load.ts'
import { to } from './router.ts'
import { ask } from './session.ts'
import { count } from './text.ts'
import { Badge, Button, Code, Command, Copy, Countdown, ExternalLink, Facts, Time } from './ui/basics.tsx'
import { Card } from './ui/page.tsx'
import { LoadedView, Skeleton } from './ui/states.tsx'
import { More } from './ui/table.tsx'
import { Tree } from './ui/tree.tsx'

const every_ms = 3_000

export function ScheduleDetail({ id, onChange }: { id: string; onChange: () => void }): JSX.Element {
  const path = `/v1/schedules/${encodeURIComponent(id)}`
  const settled = useSignal(false)
  const options = { every_ms: settled.value ? 0 : every_ms }
  const loaded = useGet<Schedule>(path, {}, options)
  const attempts = usePages<Attempt>(`${path}/attempts`, {}, options)
  const status = loaded.value?.status
  const before = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    if (status === undefined) return
    if (before.current === 'pending' && status !== 'pending') onChange()
    before.current = status
    settled.value = status !== 'pending'
  }, [status])
  return (
    <div class="split-detail">
      <LoadedView loaded={loaded} what="the schedule" lines={14}>
        {(schedule) => (
          <Card title="Schedule" actions={<Badge>{schedule.status}</Badge>}>
            <div class="card-body">
              <h3 class="detail-title">
                <ExternalLink url={schedule.callback_url} />
              </h3>
              <ScheduleFacts schedule={schedule} event={attempts.value?.[0]?.webhook_id} />
              <WhyFailed schedule={schedule} />
              <Attempts attempts={attempts} />
              <Payload loaded={loaded} />
              <Commands schedule={schedule} path={path} />
            </div>
          </Card>
        )}
      </LoadedView>
    </div>
  )
}

function ScheduleFacts({ schedule, event }: { schedule: Schedule; event: string | undefined }): JSX.Element {
  const { id, agent_id, created_at, fire_at, next_attempt_at, fired_at, dlq_on_failure } = schedule
  return (
    <Facts
      facts={[
        { name: 'Agent', value: <Code>{agent_id}</Code> },
        { name: 'Due', value: <Time at={fire_at} /> },
        ...(next_attempt_at === null
          ? []
          : [{ name: 'Next attempt', value: <Countdown until={next_attempt_at} over="now" /> }]),
        ...(fired_at === null ? [] : [{ name: 'Fired', value: <Time at={fired_at} /> }]),
        { name: 'Created', value: <Time at={created_at} /> },
        { name: 'If it fails', value: dlq_on_failure ? 'leaves a dead letter' : 'leaves nothing' },
        { name: 'Id', value: <CopiedCode text={id} what="the id" /> },
        ...(event === undefined
          ? []
          : [{ name: 'webhook-id', value: <CopiedCode text={event} what="the webhook-id" /> }]),
      ]}
    />
  )
}

export function CopiedCode({ text, what }: { text: string; what: string }): JSX.Element {
  return (
    <span class="copied-code">
      <Code>{text}</Code>
      <Copy text={text} what={what} />
    </span>
  )
}

/** Also while attempts are to come: the first one has failed then. */
function WhyFailed({ schedule }: { schedule: Schedule }): JSX.Element | null {
  const { last_error, last_status_code, status, attempts, next_attempt_at } = schedule
  if (last_error === null || status === 'fired') return null
  const { what, advice } = reasonOf(last_error, last_status_code)
  const failed = status === 'failed'
  return (
    <section class="outcome" data-status={failed ? 'rejected' : status} aria-label="Why it failed">
      <p class="outcome-title">{failed ? `Gave up after ${tries(attempts)}` : `Failed ${times(attempts)}`}</p>
      <p>{what}</p>
      {advice && <p class="muted">{advice}</p>}
      {failed ? (
        <LeftLetter schedule={schedule} />
      ) : (
        next_attempt_at && (
          <p>
            Tried again in <Countdown until={next_attempt_at} over="a moment" />.
          </p>
        )
      )}
    </section>
  )
}

function tries(attempts: number): string {
  return attempts === 1 ? 'one attempt' : `${attempts} attempts`
}

function times(attempts: number): string {
  return attempts === 1 ? 'once so far' : `${attempts} times so far`
}

interface Search {
  letter: ListedDeadLetter | null
  /** Every letter that could be the one was looked at. */
  whole: boolean
  seen: number
}

const letters_a_page = 200
const pages_a_search = 5

/** No filter of the API finds it: letters are looked through from the newest to the time of the failure. */
function LeftLetter({ schedule }: { schedule: Schedule }): JSX.Element {
  const pages = useSignal(pages_a_search)
  const found = useLoad<Search>(
    `letter of ${schedule.id} ${schedule.dlq_on_failure} ${pages.value}`,
    (signal) => letterOf(schedule, pages.value, signal),
  )
  if (!schedule.dlq_on_failure) {
    return <p class="muted">It left no dead letter: it was created without dlq_on_failure.</p>
  }
  return (
    <div class="letter-place">
      <LoadedView loaded={found} what="its dead letter" lines={1}>
        {({ letter, whole, seen }) =>
          letter ? (
            <p>
              <a href={to(`/console/dlq/${encodeURIComponent(letter.id)}`, { status: letter.status })}>
                Go to the dead letter it left
              </a>{' '}
              <Badge>{letter.status}</Badge>
            </p>
          ) : whole ? (
            <p class="muted">The dead letter that it left has been removed since.</p>
          ) : (
            <p>
              Its dead letter is not among the {count(seen)} newest.{' '}
              <Button
                kind="quiet"
                onClick={() => {
                  pages.value += pages_a_search * 4
                }}
              >
                Look further
              </Button>
            </p>
          )
        }
      </LoadedView>
    </div>
  )
}

async function letterOf({ id, updated_at, dlq_on_failure }: Schedule, pages: number, signal: AbortSignal) {
  const search: Search = { letter: null, whole: !dlq_on_failure, seen: 0 }
  let cursor: string | undefined
  for (let page = 0; page < pages && !search.whole; page += 1) {
    const query = { limit: letters_a_page, cursor }
    const result = await ask<{ items: ListedDeadLetter[]; next_cursor: string | null }>('GET', '/v1/dlq', {
      ...{ query, signal },
    })
    if (!result.ok) return result
    const { items, next_cursor } = result.value
    search.seen += items.length
    search.letter = items.find(({ source_id }) => source_id === id) ?? null
    const last = items.at(-1)
    search.whole =
      search.letter !== null || next_cursor === null || (last && last.created_at < updated_at) === true
    cursor = next_cursor ?? undefined
  }
  return { ok: true as const, value: search, text: '' }
}

function Attempts({ attempts }: { attempts: Pages<Attempt> }): JSX.Element {
  return (
    <section class="detail-part" aria-label="Attempts">
      <h3 class="label">Attempts</h3>
      <LoadedView loaded={attempts} what="attempts" lines={2}>
        {(tried) =>
          tried.length === 0 ? (
            <p class="muted">None yet.</p>
          ) : (
            <>
              <History what="Attempts, newest first" moments={tried.map(momentOf)} />
              <More more={attempts.more} onMore={attempts.showMore} />
            </>
          )
        }
      </LoadedView>
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

function Payload({ loaded }: { loaded: Loaded<Schedule> }): JSX.Element {
  const payload = useMemo(() => exactMember(loaded.text, 'callback_payload') ?? 'null', [loaded.text])
  return (
    <section class="detail-part" aria-label="Payload">
      <h3 class="label">Payload</h3>
      {loaded.text === '' ? (
        <Skeleton lines={1} what="the payload" />
      ) : (
        <Tree text={payload} what="the payload" />
      )}
    </section>
  )
}

function Commands({ schedule, path }: { schedule: Schedule; path: string }): JSX.Element {
  if (schedule.status !== 'pending') {
    const again = `{"callback_url": ${JSON.stringify(schedule.callback_url)},\n    "callback_payload": …, "fire_at": "${schedule.fire_at}"}`
    return (
      <Elsewhere
        title="Call it once more"
        lead="This one is final. Only an agent's key creates another, with the payload in place of the dots. A time in the past means now:"
      >
        <Command what="Command that schedules the call again">{curl('POST', '/v1/schedules', again)}</Command>
      </Elsewhere>
    )
  }
  return (
    <Elsewhere title="Change or cancel it" lead="Only agents can, with the key of any agent of this tenant:">
      <Command what="Command that changes its time">
        {curl('PATCH', path, `{"fire_at": "${schedule.fire_at}"}`)}
      </Command>
      <Command what="Command that cancels the schedule">{curl('DELETE', path)}</Command>
    </Elsewhere>
  )
}
