// What agents ask of people: the live queue, decided in place, and what was decided before.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint } from '../../sdk/src/types.ts'
import type { Result } from '../api.ts'
import { Decide, exactMember, Outcome, Question, type Verb } from '../checkpoint.tsx'
import { curl } from '../command.ts'
import { useGet, usePages } from '../load.ts'
import { address, setQuery, to } from '../router.ts'
import { ask } from '../session.ts'
import { Badge, Code, Command, Countdown, ExternalLink, Facts, Text, Time } from '../ui/basics.tsx'
import { Tabs } from '../ui/form.tsx'
import { Card, Page } from '../ui/page.tsx'
import { Empty, LoadedView } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'

const statuses = ['pending', 'approved', 'rejected', 'expired', 'cancelled'] as const
type Status = (typeof statuses)[number]

/** How old the queue may be. */
const every_ms = 3_000

const titles: Record<Status, string> = {
  pending: 'Waiting',
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Expired',
  cancelled: 'Withdrawn',
}

export function Approvals({ params: { id } }: { params: Record<string, string> }): JSX.Element {
  const wanted = address.value.query.get('status')
  const status = statuses.find((name) => name === wanted) ?? 'pending'
  const list = usePages<Checkpoint>('/v1/checkpoints', { status }, { every_ms })
  const pending = status === 'pending'
  const columns: Column<Checkpoint>[] = [
    {
      title: 'Request',
      grow: true,
      cell: ({ id: row_id, title }) => (
        <a href={to(`/console/approvals/${encodeURIComponent(row_id)}`, { status: queryOf(status) })}>
          <Text>{title}</Text>
        </a>
      ),
    },
    { title: 'Agent', wide: true, cell: ({ agent_id }) => <Code>{agent_id}</Code> },
    { title: 'Asked', wide: true, cell: ({ created_at }) => <Time at={created_at} /> },
    pending
      ? { title: 'Time left', cell: ({ expires_at }) => <Countdown until={expires_at} over="time is up" /> }
      : { title: 'When', cell: ({ resolved_at }) => resolved_at && <Time at={resolved_at} /> },
  ]
  return (
    <Page title="Approvals" lead="What agents ask of people. The list follows by itself.">
      <Tabs
        label="Status"
        panel="approvals"
        current={status}
        tabs={statuses.map((name) => ({ id: name, title: titles[name] }))}
        onChange={(name) => setQuery({ status: queryOf(name) })}
      />
      <div
        id="approvals"
        role="tabpanel"
        aria-label={titles[status]}
        class="split"
        data-open={id !== undefined}
      >
        <div class="split-list">
          <LoadedView loaded={list} what="approvals" lines={6}>
            {(rows) =>
              rows.length === 0 ? (
                <Empty title={pending ? 'Nothing waits for you' : 'Nothing here'}>
                  {pending && 'New requests appear here as agents make them.'}
                </Empty>
              ) : (
                <Table
                  caption={`Approvals: ${titles[status]}`}
                  rows={rows}
                  id={(row) => row.id}
                  current={id}
                  more={list.more}
                  onMore={list.showMore}
                  {...{ columns }}
                />
              )
            }
          </LoadedView>
        </div>
        {id !== undefined && <Detail key={id} id={id} onChange={list.reload} />}
      </div>
    </Page>
  )
}

/** The first tab needs no query. */
function queryOf(status: Status): string | undefined {
  return status === 'pending' ? undefined : status
}

function Detail({ id, onChange }: { id: string; onChange: () => void }): JSX.Element {
  const path = `/v1/checkpoints/${encodeURIComponent(id)}`
  const settled = useSignal(false)
  const own = useSignal(false)
  const loaded = useGet<Checkpoint>(path, {}, { every_ms: settled.value ? 0 : every_ms })
  const pending = loaded.value?.status === 'pending'
  const outcome = useRef<HTMLDivElement>(null)
  const was_pending = useRef(false)
  useLayoutEffect(() => {
    if (!loaded.value) return
    // A callback under way still changes.
    settled.value = !pending && loaded.value.callback.status !== 'pending'
    if (was_pending.current && !pending) outcome.current?.focus()
    was_pending.current = pending
  })
  const decide = (verb: Verb, reason: string) =>
    ask<Checkpoint>('POST', `${path}/${verb}`, { body: reason === '' ? {} : { reason } })
  const onEnd = (result: Result<Checkpoint>) => {
    if (result.ok) {
      own.value = true
      announce(result.value.status === 'approved' ? 'Approved.' : 'Rejected.')
    } else if (result.problem.code === 'CHECKPOINT_ALREADY_RESOLVED') announce('Somebody else was faster.')
    loaded.reload()
    onChange()
  }
  return (
    <div class="split-detail">
      <LoadedView {...{ loaded }} what="the request" lines={10}>
        {(checkpoint) => (
          <Card title="Request" actions={<Badge>{checkpoint.status}</Badge>}>
            <div class="card-body">
              <h3 class="detail-title">
                <Text>{checkpoint.title}</Text>
              </h3>
              <CheckpointFacts {...{ checkpoint }} />
              {!pending && (
                <div ref={outcome} tabIndex={-1} role="status">
                  <Outcome {...checkpoint} own={own.value} />
                </div>
              )}
              <Question prompt={checkpoint.prompt} payload={exactMember(loaded.text, 'callback_payload')} />
              {pending && (
                <>
                  <Decide title={checkpoint.title} agent={checkpoint.agent_id} {...{ decide, onEnd }} />
                  <details class="elsewhere">
                    <summary>Withdraw the request</summary>
                    <p class="muted">Only the agent that asked can withdraw it, with its own key:</p>
                    <Command what="Command that withdraws the request">{curl('DELETE', path)}</Command>
                  </details>
                </>
              )}
            </div>
          </Card>
        )}
      </LoadedView>
    </div>
  )
}

function CheckpointFacts({ checkpoint }: { checkpoint: Checkpoint }): JSX.Element {
  const { agent_id, created_at, expires_at, status, timeout_action, callback, callback_url } = checkpoint
  return (
    <Facts
      facts={[
        { name: 'Agent', value: <Code>{agent_id}</Code> },
        { name: 'Asked', value: <Time at={created_at} /> },
        ...(status === 'pending'
          ? [{ name: 'Time left', value: <Countdown until={expires_at} over="time is up" /> }]
          : []),
        {
          name: 'If nobody decides',
          value: timeout_action === 'dlq' ? 'expires, leaves a dead letter' : 'is rejected',
        },
        { name: 'Answer goes to', value: <ExternalLink url={callback_url} /> },
        {
          name: 'Delivery',
          value: (
            <>
              <Badge>{callback.status}</Badge>
              {callback.attempts > 0 && <span class="muted"> {times(callback.attempts)}</span>}
              {callback.last_error && (
                <span class="muted">
                  {': '}
                  <Text>{callback.last_error}</Text>
                </span>
              )}
            </>
          ),
        },
      ]}
    />
  )
}

function times(attempts: number): string {
  return attempts === 1 ? 'at the first try' : `after ${attempts} tries`
}
