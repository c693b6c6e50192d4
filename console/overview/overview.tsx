// The overview: requests that wait, failures of the last day, calls by the hour, quotas.

import type { ComponentChildren } from 'preact'
import type { Checkpoint, ListedDeadLetter, Operations, Schedule, Tenant } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { type Loaded, useGet } from '../api/load.ts'
import { to } from '../router.ts'
import { day_ms, now } from '../text/time.ts'
import { count, firstLine } from '../text/words.ts'
import { Badge, Code, Countdown, Time } from '../ui/basics.tsx'
import { Row } from '../ui/list.tsx'
import { Quotas } from '../ui/meter.tsx'
import { Card, Empty, LoadedView, Page } from '../ui/page.tsx'
import { Chart } from './chart.tsx'
import './overview.css'

const every_ms = 5_000
const failures_every_ms = 60_000
const usage_every_ms = 30_000
/** The rows of a card. The page of the noun has the others. */
const rows_max = 6
/** The most items of one answer. */
const items_max = 200

type Usage = Operations['getUsage']['answer']

export function Overview() {
  const tenant = useGet<Tenant>('/v1/tenants/me', {}, { every_ms })
  const usage = useGet<Usage>('/v1/tenants/me/usage', { step: 'hour' }, { every_ms: usage_every_ms })
  return (
    <Page title="Overview">
      <div class="grid">
        <Waiting />
        <Failures />
        <Activity loaded={usage} />
        <Quotas loaded={tenant} />
      </div>
    </Page>
  )
}

function Waiting() {
  const query = { status: 'pending', limit: items_max }
  const loaded = useGet<PageOf<Checkpoint>>('/v1/checkpoints', query, { every_ms })
  return (
    <Card title="Waits for you" actions={<a href={to('/console/approvals')}>All approvals</a>}>
      <LoadedView {...{ loaded }} what="what waits" lines={rows_max}>
        {({ items, next_cursor }) => (
          <Newest items={items} cut={next_cursor !== null} of="to decide" empty="Nothing waits for you">
            {soonest(items).map(({ id, title, agent_id, expires_at }) => (
              <Row key={id} href={to(pathOf('/console/approvals', id))} text={title}>
                <Code>{agent_id}</Code> <Countdown until={expires_at} over="time is up" />
              </Row>
            ))}
          </Newest>
        )}
      </LoadedView>
    </Card>
  )
}

interface NewestProps {
  items: unknown[]
  /** There are more than these. */
  cut: boolean
  /** Said of the items, after their number. */
  of: string
  empty: string
  children: ComponentChildren
}

/** The number of items, and the first ones as rows. */
function Newest({ items, cut, of, empty, children }: NewestProps) {
  if (items.length === 0 && !cut) return <Empty title={empty} />
  return (
    <>
      <p class="figure">
        {count(items.length)}
        {cut && '+'} <span class="muted">{of}</span>
      </p>
      <ul class="rows">{children}</ul>
    </>
  )
}

function soonest(items: Checkpoint[]): Checkpoint[] {
  return items.toSorted((one, other) => (one.expires_at < other.expires_at ? -1 : 1)).slice(0, rows_max)
}

interface Failure {
  id: string
  at: string
  what: string
  text: string
  path: string
}

function useFailures() {
  const query = { status: 'failed', limit: items_max }
  // These answers hold payloads: they are loaded seldom.
  const options = { every_ms: failures_every_ms }
  const letters = useGet<PageOf<ListedDeadLetter>>('/v1/dlq', query, options)
  const schedules = useGet<PageOf<Schedule>>('/v1/schedules', query, options)
  const both = letters.value && schedules.value && { letters: letters.value, schedules: schedules.value }
  const reload = () => {
    letters.reload()
    schedules.reload()
  }
  return { value: both, problem: letters.problem ?? schedules.problem, reload }
}

function Failures() {
  const loaded = useFailures()
  return (
    <Card title="Failures of the last day">
      <LoadedView {...{ loaded }} what="failures" lines={rows_max}>
        {({ letters, schedules }) => {
          const failures = latest(letters.items, schedules.items)
          const cut = letters.next_cursor !== null || schedules.next_cursor !== null
          return (
            <Newest items={failures} {...{ cut }} of="failed and not resolved" empty="Nothing failed">
              {failures.slice(0, rows_max).map(({ id, at, what, text, path }) => (
                <Row key={id} href={to(path)} text={firstLine(text).slice(0, 200)}>
                  <Badge tone="bad">{what}</Badge> <Time {...{ at }} />
                </Row>
              ))}
            </Newest>
          )
        }}
      </LoadedView>
    </Card>
  )
}

/** A schedule that left a dead letter is listed once, as the letter. */
function latest(letters: ListedDeadLetter[], schedules: Schedule[]): Failure[] {
  const since = new Date(now.value - day_ms).toISOString()
  const listed = new Set(letters.map(({ source_id }) => source_id))
  return [
    ...letters.map(({ id, created_at, error, source }) => ({
      ...{ id, at: created_at, text: error, path: pathOf('/console/dlq', id) },
      what: source === 'agent' ? 'dead letter' : source,
    })),
    ...schedules
      .filter(({ id }) => !listed.has(id))
      .map(({ id, updated_at, last_error, callback_url }) => ({
        ...{ id, at: updated_at, path: pathOf('/console/schedules', id) },
        text: `${last_error ?? 'failed'}: ${callback_url}`,
        what: 'schedule',
      })),
  ]
    .filter(({ at }) => at >= since)
    .toSorted((one, other) => (one.at < other.at ? 1 : -1))
}

function Activity({ loaded }: { loaded: Loaded<Usage> }) {
  return (
    <Card title="Activity of the last day">
      <LoadedView {...{ loaded }} what="activity" lines={8}>
        {({ items }) => {
          const sum = (of: 'calls' | 'failures') => items.reduce((total, item) => total + item[of], 0)
          return (
            <>
              <p class="figure">
                {count(sum('calls'))} <span class="muted">calls,</span> {count(sum('failures'))}{' '}
                <span class="muted">refused or failed</span>
              </p>
              <Chart
                caption="Calls by the hour"
                times={items.map(({ start_at }) => Date.parse(start_at))}
                series={[
                  { title: 'Calls', color: '--accent', values: items.map(({ calls }) => calls) },
                  {
                    title: 'Refused or failed',
                    color: '--bad',
                    values: items.map(({ failures }) => failures),
                  },
                ]}
              />
            </>
          )
        }}
      </LoadedView>
    </Card>
  )
}
