// Dead letters by status, or grouped by cause.

import type { ListedDeadLetter } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { type List, usePages } from '../api/load.ts'
import { address, setQuery, to } from '../router.ts'
import { agentCurl } from '../text/curl.ts'
import { count, firstLine } from '../text/words.ts'
import { Badge, Button, Commands, Countdown, Text } from '../ui/basics.tsx'
import { ListView, Split, useStatuses } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, codeColumn, linkColumn, More, Table, timeColumn } from '../ui/table.tsx'
import { type Cause, causesOf } from './cause.ts'
import { DeadLetterDetail } from './detail.tsx'

const titles = { failed: 'Failed', claimed: 'Claimed', resolved: 'Resolved', archived: 'Archived' }
type Status = keyof typeof titles

const empty: Record<Status, string> = {
  failed: 'No dead letter waits to be resolved',
  claimed: 'No dead letter is claimed',
  resolved: 'No dead letter was resolved',
  archived: 'No dead letter was archived',
}

const every_ms = 5_000
/** The size of a page where letters are counted. */
const grouped_a_page = 200

export function DeadLetters({ params: { id } }: { params: Record<string, string> }) {
  const { status, query, tabs, panel } = useStatuses(titles, 'letters')
  const by_cause = address.value.query.get('by') === 'cause'
  const cause = by_cause ? null : address.value.query.get('cause')
  const grouped = by_cause || cause !== null
  const list = usePages<ListedDeadLetter>(
    '/v1/dlq',
    grouped ? { status, limit: grouped_a_page } : { status },
    grouped ? { keep } : { every_ms, keep },
  )
  const seen = list.value?.find((row) => row.id === id)
  return (
    <Page
      title="Dead letters"
      lead="Failures that agents, schedules and approvals left."
      actions={
        <Button
          text="By cause"
          pressed={by_cause}
          onClick={() => setQuery({ by: by_cause ? undefined : 'cause', cause: undefined })}
        />
      }
    >
      {tabs}
      <Commands
        title="Work on the oldest"
        lead="Agents resolve dead letters. A claim takes the oldest that is free, or answers 204:"
        commands={[['Command that claims the oldest dead letter', agentCurl('POST', '/v1/dlq/claim')]]}
      />
      <Split
        panel={panel}
        detail={id && <DeadLetterDetail key={id} {...{ id, seen }} onChange={list.reload} />}
      >
        {cause !== null && <CauseFilter cause={cause} />}
        <ListView {...{ list }} what="dead letters" empty={<Empty title={empty[status]} />}>
          {(rows) => {
            if (by_cause) return <Causes {...{ list, rows, status, query }} />
            return <Letters {...{ list, rows, status, query, cause }} current={id} />
          }}
        </ListView>
      </Split>
    </Page>
  )
}

/** Errors may be long; rows show one line. */
function keep(letter: ListedDeadLetter): ListedDeadLetter {
  return { ...letter, error: firstLine(letter.error) }
}

function CauseFilter({ cause }: { cause: string }) {
  return (
    <p class="list-filter bar">
      <span>
        Cause: <Text>{cause}</Text>
      </span>
      <Button text="All causes" kind="quiet" onClick={() => setQuery({ cause: undefined })} />
    </p>
  )
}

interface CausesProps {
  list: List<ListedDeadLetter>
  rows: ListedDeadLetter[]
  status: Status
  /** The status in an address. */
  query: string | undefined
}

interface LettersProps extends CausesProps {
  cause: string | null
  current: string | undefined
}

function Letters({ list, rows, status, query, cause, current }: LettersProps) {
  const matching = cause === null ? rows : rows.filter((row) => row.cause === cause)
  const columns: Column<ListedDeadLetter>[] = [
    linkColumn('Error', ({ id, error }) => [
      to(pathOf('/console/dlq', id), { status: query, cause: cause ?? undefined }),
      firstLine(error).slice(0, 200),
    ]),
    { title: 'From', wide: true, cell: ({ source }) => <Badge>{source}</Badge> },
    status === 'claimed'
      ? codeColumn('Held by', ({ locked_by }) => locked_by)
      : codeColumn('Agent', ({ agent_id }) => agent_id),
    lastColumn(status),
  ]
  return (
    <>
      {matching.length === 0 ? (
        <Empty title="None of this cause">{list.more && 'There may be some further down.'}</Empty>
      ) : (
        <Table
          caption={`Dead letters: ${titles[status]}`}
          rows={matching}
          id={(row) => row.id}
          {...{ columns, current }}
        />
      )}
      {cause !== null && <Counted matching={matching.length} {...{ list, rows }} />}
      <More {...{ list }} />
    </>
  )
}

function lastColumn(status: Status): Column<ListedDeadLetter> {
  if (status === 'failed') return timeColumn('Captured', ({ created_at }) => created_at)
  if (status !== 'claimed') return timeColumn(titles[status], ({ updated_at }) => updated_at)
  const cell = ({ locked_until }: ListedDeadLetter) =>
    locked_until && <Countdown until={locked_until} over="now" />
  return { title: 'Lock ends', cell }
}

const sources = { agent: 'an agent', schedule: 'a schedule', checkpoint: 'an approval' }

function Causes({ list, rows, status, query }: CausesProps) {
  const columns: Column<Cause>[] = [
    linkColumn('Cause', ({ cause }) => [to('/console/dlq', { status: query, cause }), cause]),
    { title: 'From', wide: true, cell: ({ source }) => sources[source] },
    { title: 'Letters', number: true, cell: ({ letters }) => count(letters) },
    timeColumn('Oldest', ({ oldest }) => oldest, true),
    timeColumn('Latest', ({ latest }) => latest),
  ]
  return (
    <>
      <Table
        caption={`Causes: ${titles[status]}`}
        rows={causesOf(rows)}
        id={({ source, cause }) => `${source} ${cause}`}
        columns={columns}
      />
      <Counted {...{ list, rows }} />
      <More {...{ list }} />
    </>
  )
}

interface CountedProps extends Pick<CausesProps, 'list' | 'rows'> {
  /** The number of letters of one cause. Without it all causes are counted. */
  matching?: number
}

/** The API does not count by cause, so the loaded letters are counted. */
function Counted({ matching, list, rows }: CountedProps) {
  const counted = list.more ? `the ${count(rows.length)} newest` : `all ${count(rows.length)}`
  return (
    <p class="muted small list-note">
      {matching === undefined ? `Counted over ${counted}.` : `${count(matching)} among ${counted}.`}
    </p>
  )
}
