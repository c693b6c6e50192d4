// Subscriptions: where events are delivered, how far each is, and the form that creates one.

import { useSignal } from '@preact/signals'
import type { Subscription } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { usePages } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Badge, Button, Code, setTo } from '../ui/basics.tsx'
import { First } from '../ui/first.tsx'
import { FailureCell, Split, TableList } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { type Column, timeColumn } from '../ui/table.tsx'
import { CreateSubscription } from './create.tsx'
import { SubscriptionDetail } from './detail.tsx'
import { first } from './first.ts'
import { format_titles, nameOf, targetOf } from './words.ts'

/** Deliveries leave no event. */
const every_ms = 5_000

export function Subscriptions({ params: { id } }: { params: Record<string, string> }) {
  const list = usePages<Subscription>('/v1/subscriptions', {}, { every_ms, on: ['subscription'] })
  const creating = useSignal(false)
  return (
    <Page
      title="Subscriptions"
      docs="subscriptions"
      lead="Where events are delivered: to a program, to a channel, by mail."
      actions={<Button text="New subscription…" kind="primary" onClick={setTo(creating, true)} />}
    >
      <Split detail={id && <SubscriptionDetail key={id} id={id} onChange={list.reload} />}>
        <TableList
          what="subscriptions"
          empty={<First {...first} />}
          caption="Subscriptions"
          id={(row) => row.id}
          current={id}
          {...{ list, columns }}
        />
      </Split>
      {creating.value && <CreateSubscription onCreated={list.reload} onClose={setTo(creating, false)} />}
    </Page>
  )
}

const columns: Column<Subscription>[] = [
  {
    title: 'Delivers to',
    grow: true,
    cell: (row) => (
      <FailureCell
        href={to(pathOf('/console/subscriptions', row.id))}
        title={nameOf(row)}
        what={`${format_titles[row.format]} · ${row.name === null ? row.types.join(', ') : targetOf(row)}`}
      />
    ),
  },
  { title: 'State', cell: (row) => <State {...row} /> },
  {
    title: 'Types',
    wide: true,
    cell: ({ types }) => (
      <>
        <Code>{types[0]!}</Code>
        {types.length > 1 && <span class="muted"> and {count(types.length - 1)} more</span>}
      </>
    ),
  },
  timeColumn('Delivered', ({ delivered_at }) => delivered_at, true),
]

/** A receiver that does not answer is seen before the subscription is paused for it. */
export function State({ status, last_error }: Pick<Subscription, 'status' | 'last_error'>) {
  if (status === 'active' && last_error !== null) return <Badge>retrying</Badge>
  return <Badge tone={tones[status]}>{status}</Badge>
}

const tones = { active: 'good', paused: 'warn', unconfirmed: 'accent' } as const
