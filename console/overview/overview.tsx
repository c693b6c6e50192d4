// The overview: requests that wait, failures of the last day, calls by the hour, quotas.

import type { Checkpoint, Operations, Tenant } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { type Loaded, useGet } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Code, Countdown, DocsLink } from '../ui/basics.tsx'
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
  const loaded = useGet<PageOf<Checkpoint>>('/v1/checkpoints', query, { every_ms, on: ['checkpoint'] })
  return (
    <Card title="Waits for you" actions={<a href={to('/console/approvals')}>All approvals</a>}>
      <LoadedView {...{ loaded }} what="what waits" lines={rows_max}>
        {({ items, next_cursor }) => (
          <Newest
            items={items}
            cut={next_cursor !== null}
            of="to decide"
            empty="Nothing waits for you"
            hint={waiting_hint}
          >
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
