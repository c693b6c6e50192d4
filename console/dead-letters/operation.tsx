// One operation on many dead letters: its progress, what became of each, and its end.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { quotaName, Successor } from '../actions/refusal.tsx'
import { pathOf } from '../api/address.ts'
import { type List, useGet, usePages } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { to } from '../router.ts'
import { causeInWords } from '../text/failure.ts'
import { count } from '../text/words.ts'
import { Badge, Code, CopiedCode, Facts, Text, Time, type Tone } from '../ui/basics.tsx'
import { Detail, DetailTitle, FailureCell, type OpenProps } from '../ui/list.tsx'
import { LoadedView, Part } from '../ui/page.tsx'
import { Progress } from '../ui/progress.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import { left_by } from './causes.tsx'
import { handled, operationTitle } from './operations.tsx'
import type { Operation, Outcome, Verb } from './shapes.ts'

const every_ms = 1_000
/** The outcomes of a long operation are many. */
const outcomes_every_ms = 3_000

export function OperationDetail({ id, onChange }: OpenProps) {
  const path = pathOf('/v1/dlq/operations', id)
  const final = useSignal(false)
  const loaded = useGet<Operation>(path, {}, { every_ms: final.value ? 0 : every_ms })
  const outcomes = usePages<Outcome>(`${path}/items`, {}, { every_ms: final.value ? 0 : outcomes_every_ms })
  const { value } = loaded
  const before = useRef<Operation['status'] | undefined>(undefined)
  useLayoutEffect(() => {
    if (!value) return
    if (before.current === 'running' && value.status !== 'running') {
      announce(summary(value))
      outcomes.reload()
      onChange()
    }
    before.current = value.status
    final.value = value.status !== 'running'
  }, [value?.status])
  return (
    <Detail
      {...{ loaded }}
      what="the operation"
      title="Operation"
      actions={({ status }) => <Badge>{status}</Badge>}
    >
      {(operation) => (
        <>
          <DetailTitle>{operationTitle(operation)}</DetailTitle>
          <Progress label="Progress" done={handled(operation)} of={operation.matched} />
          <p class="operation-summary">{summary(operation)}</p>
          {operation.waiting_for !== null && operation.status === 'running' && (
            <p class="note">
              It waits: the plan’s limit of {quotaName(operation.waiting_for)} is reached. It goes on by
              itself as soon as there is room.
            </p>
          )}
          {operation.more && (
            <p class="muted small">
              It takes {count(operation.max)} at most: more may match. Begin another one for the rest.
            </p>
          )}
          {operation.status === 'running' && <Cancel {...{ path, operation }} onDone={loaded.reload} />}
          <OperationFacts {...operation} />
          <Outcomes {...{ outcomes, operation }} />
        </>
      )}
    </Detail>
  )
}

const past: Record<Verb, string> = { redrive: 'redriven', discard: 'discarded' }

/** `38 discarded, 2 skipped, 0 failed.` */
function summary(operation: Operation): string {
  const { verb, status, matched, done, skipped, failed } = operation
  const left = matched - handled(operation)
  const parts = [
    `${count(done)} ${past[verb]}`,
    skipped > 0 && `${count(skipped)} skipped`,
    failed > 0 && `${count(failed)} failed`,
    left > 0 && `${count(left)} ${status === 'running' ? 'to come' : 'left as they were'}`,
  ]
  return `${status === 'cancelled' ? 'Cancelled: ' : ''}${parts.filter((part) => part).join(', ')}.`
}

function Cancel({ path, operation, onDone }: { path: string; operation: Operation; onDone: () => void }) {
  return (
    <div class="detail-actions parts">
      <Asking text="Cancel the rest">
        {(onClose) => (
          <ChangeQuestion
            title="Cancel the rest?"
            verb="Yes, cancel the rest"
            work={() => ask<Operation>('POST', `${path}/cancel`)}
            {...{ onDone, onClose }}
          >
            <p>
              Those that are {past[operation.verb]} already stay so. The others are left as they are, and can
              be chosen again.
            </p>
          </ChangeQuestion>
        )}
      </Asking>
    </div>
  )
}

function OperationFacts({ id, filter, per_second, created_at, finished_at }: Operation) {
  return (
    <Facts
      facts={{
        Chosen: <Chosen {...{ filter }} />,
        Pace: per_second === null ? 'as fast as the service can' : `${count(per_second)} a second`,
        Began: <Time at={created_at} />,
        Ended: finished_at && <Time at={finished_at} />,
        Id: <CopiedCode text={id} what="the id" />,
      }}
    />
  )
}

function Chosen({ filter }: Pick<Operation, 'filter'>) {
  const { status, source, cause, workflow_id, source_id, from, to: until, ids_count } = filter
  if (ids_count !== null) return <>one by one</>
  const narrowed: [word: string, by: ComponentChildren][] = [
    ['from', source && left_by[source]],
    ['by', cause && <Text>{source === 'agent' ? cause : causeInWords(cause)}</Text>],
    ['of', workflow_id && <Text>{workflow_id}</Text>],
    ['of', source_id && <Code>{source_id}</Code>],
    ['since', from && <Time at={from} />],
    ['until', until && <Time at={until} />],
  ]
  return (
    <>
      all {status ?? 'failed'}
      {narrowed.map(([word, by]) => by && [` ${word} `, by])}
    </>
  )
}

const tones: Record<Outcome['outcome'], Tone> = {
  waiting: 'neutral',
  done: 'good',
  skipped: 'warn',
  failed: 'bad',
}

/** The reasons for which one was skipped or failed. */
const reasons: Record<string, string> = {
  ALREADY_CLAIMED: 'an agent had claimed it',
  INVALID_STATE: 'it had ended, or there was nothing to send again',
  DLQ_NOT_FOUND: 'it had been removed',
  QUOTA_EXCEEDED: 'the plan’s limit was reached',
}

function Outcomes({ outcomes, operation }: { outcomes: List<Outcome>; operation: Operation }) {
  const columns: Column<Outcome>[] = [
    {
      title: 'Dead letter',
      grow: true,
      cell: (row) => (
        <FailureCell href={to(pathOf('/console/dlq', row.id))} title={row.id} what={followed(row)} />
      ),
    },
    {
      title: 'Outcome',
      cell: (row) => <Badge tone={tones[row.outcome]}>{wordOf(row, operation.verb)}</Badge>,
    },
  ]
  return (
    <Part title="Outcomes">
      <LoadedView loaded={outcomes} what="outcomes" lines={4}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="muted">None yet.</p>
          ) : (
            <Table caption="Outcome of each" id={({ id }) => id} list={outcomes} {...{ rows, columns }} />
          )
        }
      </LoadedView>
    </Part>
  )
}

/** The reason for which nothing was done, or what was sent again. */
function followed({ code, redriven_as }: Outcome): ComponentChildren {
  if (redriven_as !== null) {
    return (
      <>
        sent again as <Successor id={redriven_as} />
      </>
    )
  }
  return code === null ? null : (reasons[code] ?? code)
}

function wordOf({ outcome }: Outcome, verb: Verb): string {
  return outcome === 'done' ? past[verb] : outcome
}
