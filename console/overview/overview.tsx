// The overview: requests and unknown effects that wait, failures of the last day, calls by the hour, quotas.

import type { JSX } from 'preact'
import type { Checkpoint, ListedEffect, Operations, Tenant } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { type Loaded, useGet } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Code, Countdown, DocsLink, Time } from '../ui/basics.tsx'
import { Row } from '../ui/list.tsx'
import { Quotas } from '../ui/meter.tsx'
import { Card, LoadedView, Page } from '../ui/page.tsx'
import { Chart } from './chart.tsx'
import { Failures } from './failures.tsx'
import { Newest, rows_max } from './newest.tsx'
import './overview.css'

/** For what no event says: calls, stored bytes. */
const every_ms = 30_000
/** The most items of one answer. */
const items_max = 200

/** The nouns that quotas count. */
const counted = ['agent', 'dlq', 'inbox', 'schedule', 'subscription', 'tenant'] as const

type Usage = Operations['getUsage']['answer']

export function Overview() {
  const tenant = useGet<Tenant>('/v1/tenants/me', {}, { every_ms, on: counted })
  const usage = useGet<Usage>('/v1/tenants/me/usage', { step: 'hour' }, { every_ms })
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

const waiting_hint = (
  <>
    Agents ask here before they do what a person should decide.{' '}
    <DocsLink page="tutorial">Try it in ten minutes</DocsLink>
  </>
)

function Waiting() {
  const query = { status: 'pending', limit: items_max }
  const requests = useGet<PageOf<Checkpoint>>('/v1/checkpoints', query, { every_ms, on: ['checkpoint'] })
  const lost = { status: 'unknown', limit: items_max }
  const unknown = useGet<PageOf<ListedEffect>>('/v1/effects', lost, { every_ms, on: ['effect'] })
  const reload = () => {
    requests.reload()
    unknown.reload()
  }
  const loaded = {
    value: requests.value && unknown.value && { requests: requests.value, unknown: unknown.value },
    ...{ problem: requests.problem ?? unknown.problem, reload },
  }
  return (
    <Card title="Waits for you" actions={<a href={to('/console/approvals')}>All approvals</a>}>
      <LoadedView {...{ loaded }} what="what waits" lines={rows_max}>
        {({ requests, unknown }) => (
          <Newest
            items={[...unaskedOf(unknown.items), ...requests.items]}
            cut={requests.next_cursor !== null || unknown.next_cursor !== null}
            of="to decide"
            empty="Nothing waits for you"
            hint={waiting_hint}
          >
            {rowsOf(unaskedOf(unknown.items), requests.items)}
          </Newest>
        )}
      </LoadedView>
    </Card>
  )
}

/** Of the others a person is asked already, in a request. */
function unaskedOf(effects: ListedEffect[]): ListedEffect[] {
  return effects.filter(({ question_id }) => question_id === null)
}

/** Each may take two lines on a telephone: with more of them the cards below would move once they are there. */
const waiting_rows_max = 4

/** Effects of which nobody knows are not to wait, and requests that are over soon. */
function rowsOf(effects: ListedEffect[], requests: Checkpoint[]): JSX.Element[] {
  return [
    ...effects.map(({ id, type, key, held_by, updated_at }) => (
      <Row key={id} href={to(pathOf('/console/effects', id))} text={`Did ${type} ${key} happen?`}>
        <Code>{held_by ?? '–'}</Code> <Time at={updated_at} />
      </Row>
    )),
    ...soonest(requests).map(({ id, title, agent_id, expires_at }) => (
      <Row key={id} href={to(pathOf('/console/approvals', id))} text={title}>
        <Code>{agent_id}</Code> <Countdown until={expires_at} over="time is up" held />
      </Row>
    )),
  ].slice(0, waiting_rows_max)
}

function soonest(items: Checkpoint[]): Checkpoint[] {
  return items.toSorted((one, other) => (one.expires_at < other.expires_at ? -1 : 1)).slice(0, rows_max)
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
