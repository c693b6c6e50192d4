// What an operator asks first: does anything wait for me, did anything break, how much is used, what goes on.

import type { JSX } from 'preact'
import type {
  Checkpoint,
  ListedDeadLetter,
  Operations,
  Quota,
  Schedule,
  Tenant,
} from '../../sdk/src/types.ts'
import { Chart } from '../chart.tsx'
import { type Loaded, useGet } from '../load.ts'
import { to } from '../router.ts'
import { byteCount, count, shown } from '../text.ts'
import { day_ms, now } from '../time.ts'
import { Badge, Code, Countdown, Text, Time } from '../ui/basics.tsx'
import { Meter } from '../ui/form.tsx'
import { Card, Page } from '../ui/page.tsx'
import { Empty, LoadedView } from '../ui/states.tsx'

const failures_every_ms = 60_000
const every_ms = 5_000
const usage_every_ms = 30_000
/** Rows of a list here; the rest is on its own page. */
const rows_max = 6
/** As many as one answer holds. */
const looked_at_max = 200

type Usage = Operations['getUsage']['answer']

interface PageOf<T> {
  items: T[]
  next_cursor: string | null
}

export function Overview(): JSX.Element {
  const tenant = useGet<Tenant>('/v1/tenants/me', {}, { every_ms })
  const waiting = useGet<PageOf<Checkpoint>>(
    '/v1/checkpoints',
    { status: 'pending', limit: looked_at_max },
    { every_ms },
  )
  const usage = useGet<Usage>('/v1/tenants/me/usage', { step: 'hour' }, { every_ms: usage_every_ms })
  return (
    <Page title="Overview">
      <div class="grid">
        <Waiting loaded={waiting} />
        <Failures />
        <Activity loaded={usage} />
        <Quotas loaded={tenant} />
      </div>
    </Page>
  )
}

function Waiting({ loaded }: { loaded: Loaded<PageOf<Checkpoint>> }): JSX.Element {
  return (
    <Card title="Waits for you" actions={<a href={to('/console/approvals')}>All approvals</a>}>
      <LoadedView {...{ loaded }} what="what waits" lines={rows_max}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <Empty title="Nothing waits for you" />
          ) : (
            <>
              <p class="figure">
                {count(items.length)}
                {next_cursor !== null && '+'} <span class="muted">to decide</span>
              </p>
              <ul class="rows">
                {soonest(items).map(({ id, title, agent_id, expires_at }) => (
                  <li key={id}>
                    <a href={to(`/console/approvals/${encodeURIComponent(id)}`)}>
                      <Text>{title}</Text>
                    </a>
                    <span class="rows-side">
                      <Code>{agent_id}</Code> <Countdown until={expires_at} over="time is up" />
                    </span>
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </LoadedView>
    </Card>
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

function Failures(): JSX.Element {
  const query = { status: 'failed', limit: looked_at_max }
  // Pages of payloads: asked for seldom.
  const letters = useGet<PageOf<ListedDeadLetter>>('/v1/dlq', query, { every_ms: failures_every_ms })
  const schedules = useGet<PageOf<Schedule>>('/v1/schedules', query, { every_ms: failures_every_ms })
  const both = letters.value && schedules.value && { letters: letters.value, schedules: schedules.value }
  const loaded = {
    value: both,
    problem: letters.problem ?? schedules.problem,
    reload: () => {
      letters.reload()
      schedules.reload()
    },
  }
  return (
    <Card title="Failures of the last day">
      <LoadedView {...{ loaded }} what="failures" lines={rows_max}>
        {(value) => {
          const failures = latest(value.letters.items, value.schedules.items)
          const cut = value.letters.next_cursor !== null || value.schedules.next_cursor !== null
          if (failures.length === 0 && !cut) return <Empty title="Nothing failed" />
          return (
            <>
              <p class="figure">
                {count(failures.length)}
                {cut && '+'} <span class="muted">failed and not mended</span>
              </p>
              <ul class="rows">
                {failures.slice(0, rows_max).map(({ id, at, what, text, path }) => (
                  <li key={id}>
                    <a href={to(path)}>
                      <Text>{firstLine(text)}</Text>
                    </a>
                    <span class="rows-side">
                      <Badge tone="bad">{what}</Badge> <Time {...{ at }} />
                    </span>
                  </li>
                ))}
              </ul>
            </>
          )
        }}
      </LoadedView>
    </Card>
  )
}

/** A schedule that left a dead letter is told once, by the letter. */
function latest(letters: ListedDeadLetter[], schedules: Schedule[]): Failure[] {
  const since = new Date(now.value - day_ms).toISOString()
  const told = new Set(letters.map(({ source_id }) => source_id))
  return [
    ...letters.map(({ id, created_at, error, source }) => ({
      ...{ id, at: created_at, text: error, path: `/console/dlq/${encodeURIComponent(id)}` },
      what: source === 'agent' ? 'dead letter' : source,
    })),
    ...schedules
      .filter(({ id }) => !told.has(id))
      .map(({ id, updated_at, last_error, callback_url }) => ({
        ...{ id, at: updated_at, path: `/console/schedules/${encodeURIComponent(id)}` },
        text: `${last_error ?? 'failed'}: ${callback_url}`,
        what: 'schedule',
      })),
  ]
    .filter(({ at }) => at >= since)
    .toSorted((one, other) => (one.at < other.at ? 1 : -1))
}

function firstLine(text: string): string {
  return (text.split('\n').find((line) => line.trim() !== '') ?? '(no text)').slice(0, 200)
}

function Activity({ loaded }: { loaded: Loaded<Usage> }): JSX.Element {
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
                timeOf={(ms) => hours.format(ms)}
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

const hours = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' })

const quota_titles: Record<keyof Quota, string> = {
  agents: 'Agents',
  kv_keys: 'Keys in the store',
  dlq_items: 'Dead letters',
  active_schedules: 'Active schedules',
  inboxes: 'Inboxes',
  api_calls_per_month: 'Calls of /api this month',
  storage_bytes: 'Stored data',
}

export function Quotas({ loaded }: { loaded: Loaded<Tenant> }): JSX.Element {
  return (
    <Card title="Quotas">
      <LoadedView {...{ loaded }} what="quotas" lines={8}>
        {({ quota, plan }) => (
          <div class="meters">
            {Object.entries(quota).map(([name, { used, limit }]) => (
              <Meter
                key={name}
                label={quota_titles[name as keyof Quota] ?? shown(name)}
                {...{ used, limit }}
                format={name === 'storage_bytes' ? byteCount : count}
              />
            ))}
            <p class="muted small">Plan: {shown(plan)}. The operator of the service changes it.</p>
          </div>
        )}
      </LoadedView>
    </Card>
  )
}
