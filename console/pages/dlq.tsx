// Failures that somebody has to look at, by status and by cause.

import type { JSX } from 'preact'
import type { ListedDeadLetter } from '../../sdk/src/types.ts'
import { curl } from '../command.ts'
import { DeadLetterDetail } from '../dead-letter.tsx'
import { causeOf, firstLine } from '../failure.ts'
import { Elsewhere } from '../history.tsx'
import { type Pages, usePages } from '../load.ts'
import { address, setQuery, to } from '../router.ts'
import { count } from '../text.ts'
import { Badge, Button, Code, Command, Countdown, Text, Time } from '../ui/basics.tsx'
import { Tabs } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, LoadedView } from '../ui/states.tsx'
import { type Column, More, Table } from '../ui/table.tsx'
import '../work.css'

const statuses = ['failed', 'claimed', 'resolved', 'archived'] as const
type Status = (typeof statuses)[number]

const titles: Record<Status, string> = {
  failed: 'Failed',
  claimed: 'Claimed',
  resolved: 'Resolved',
  archived: 'Archived',
}

const empty: Record<Status, string> = {
  failed: 'No failure waits to be mended',
  claimed: 'Nobody works on one',
  resolved: 'None was resolved',
  archived: 'None was given up',
}

const every_ms = 5_000
/** More at once where they are counted. */
const grouped_a_page = 200

const sources = { agent: 'an agent', schedule: 'a schedule', checkpoint: 'an approval' }

export function DeadLetters({ params: { id } }: { params: Record<string, string> }): JSX.Element {
  const { query } = address.value
  const status = statuses.find((name) => name === query.get('status')) ?? 'failed'
  const by_cause = query.get('by') === 'cause'
  const cause = by_cause ? null : query.get('cause')
  const grouped = by_cause || cause !== null
  const list = usePages<ListedDeadLetter>(
    '/v1/dlq',
    grouped ? { status, limit: grouped_a_page } : { status },
    grouped ? { keep } : { every_ms, keep },
  )
  return (
    <Page
      title="Dead letters"
      lead="What agents, schedules and approvals gave up on."
      actions={
        <Button
          pressed={by_cause}
          onClick={() => setQuery({ by: by_cause ? undefined : 'cause', cause: undefined })}
        >
          By cause
        </Button>
      }
    >
      <Tabs
        label="Status"
        panel="letters"
        current={status}
        tabs={statuses.map((name) => ({ id: name, title: titles[name] }))}
        onChange={(name) => setQuery({ status: queryOf(name) })}
      />
      <Elsewhere
        title="Work on the oldest"
        lead="Dead letters are mended by agents. A claim takes the oldest that is free, or answers 204:"
      >
        <Command what="Command that claims the oldest dead letter">{curl('POST', '/v1/dlq/claim')}</Command>
      </Elsewhere>
      <div
        id="letters"
        role="tabpanel"
        aria-label={titles[status]}
        class="split"
        data-open={id !== undefined}
      >
        <div class="split-list">
          {cause !== null && (
            <p class="list-filter">
              <span>
                Cause: <Text>{cause}</Text>
              </span>
              <Button kind="quiet" onClick={() => setQuery({ cause: undefined })}>
                All causes
              </Button>
            </p>
          )}
          <LoadedView loaded={list} what="dead letters" lines={8}>
            {(rows) => {
              if (rows.length === 0 && !list.more) return <Empty title={empty[status]} />
              if (by_cause) return <Causes {...{ list, rows, status }} />
              return <Letters {...{ list, rows, status, cause }} current={id} />
            }}
          </LoadedView>
        </div>
        {id !== undefined && (
          <DeadLetterDetail
            key={id}
            id={id}
            seen={list.value?.find((row) => row.id === id)}
            onChange={list.reload}
          />
        )}
      </div>
    </Page>
  )
}

/** The first tab needs no query. */
function queryOf(status: Status): string | undefined {
  return status === 'failed' ? undefined : status
}

/** Errors may be long; rows show one line. */
function keep(letter: ListedDeadLetter): ListedDeadLetter {
  return { ...letter, error: firstLine(letter.error) }
}

interface LettersProps {
  list: Pages<ListedDeadLetter>
  rows: ListedDeadLetter[]
  status: Status
  cause: string | null
  current: string | undefined
}

function Letters({ list, rows, status, cause, current }: LettersProps): JSX.Element {
  const matching = cause === null ? rows : rows.filter(({ error }) => causeOf(error) === cause)
  const last: Column<ListedDeadLetter> =
    status === 'claimed'
      ? {
          title: 'Lock ends',
          cell: ({ locked_until }) => locked_until && <Countdown until={locked_until} over="now" />,
        }
      : status === 'failed'
        ? { title: 'Captured', cell: ({ created_at }) => <Time at={created_at} /> }
        : { title: titles[status], cell: ({ updated_at }) => <Time at={updated_at} /> }
  const columns: Column<ListedDeadLetter>[] = [
    {
      title: 'Error',
      grow: true,
      cell: ({ id, error }) => (
        <a
          href={to(`/console/dlq/${encodeURIComponent(id)}`, {
            status: queryOf(status),
            cause: cause ?? undefined,
          })}
        >
          <Text>{firstLine(error).slice(0, 200)}</Text>
        </a>
      ),
    },
    { title: 'From', wide: true, cell: ({ source }) => <Badge>{source}</Badge> },
    {
      title: status === 'claimed' ? 'Held by' : 'Agent',
      wide: true,
      cell: ({ agent_id, locked_by }) => {
        const who = status === 'claimed' ? locked_by : agent_id
        return who && <Code>{who}</Code>
      },
    },
    last,
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
      {cause !== null && <Counted matching={matching.length} list={list} rows={rows} />}
      <More more={list.more} onMore={list.showMore} />
    </>
  )
}

interface Cause {
  cause: string
  source: ListedDeadLetter['source']
  letters: number
  /** The newest comes first in the list. */
  latest: string
  oldest: string
}

function Causes({ list, rows, status }: Omit<LettersProps, 'cause' | 'current'>): JSX.Element {
  const causes = causesOf(rows)
  const columns: Column<Cause>[] = [
    {
      title: 'Cause',
      grow: true,
      cell: ({ cause }) => (
        <a href={to('/console/dlq', { status: queryOf(status), cause })}>
          <Text>{cause}</Text>
        </a>
      ),
    },
    { title: 'From', wide: true, cell: ({ source }) => sources[source] },
    { title: 'Letters', number: true, cell: ({ letters }) => count(letters) },
    { title: 'Oldest', wide: true, cell: ({ oldest }) => <Time at={oldest} /> },
    { title: 'Latest', cell: ({ latest }) => <Time at={latest} /> },
  ]
  return (
    <>
      <Table
        caption={`Causes: ${titles[status]}`}
        rows={causes}
        id={({ source, cause }) => `${source} ${cause}`}
        columns={columns}
      />
      <Counted list={list} rows={rows} />
      <More more={list.more} onMore={list.showMore} />
    </>
  )
}

function causesOf(rows: ListedDeadLetter[]): Cause[] {
  const causes = new Map<string, Cause>()
  for (const { source, error, created_at } of rows) {
    const cause = causeOf(error)
    const known = causes.get(`${source} ${cause}`)
    if (known) {
      known.letters += 1
      known.oldest = created_at
    } else {
      causes.set(`${source} ${cause}`, { cause, source, letters: 1, latest: created_at, oldest: created_at })
    }
  }
  return [...causes.values()].toSorted(
    (one, other) => other.letters - one.letters || (one.cause < other.cause ? -1 : 1),
  )
}

interface CountedProps {
  /** Of one cause; without it all causes are counted. */
  matching?: number
  list: Pages<ListedDeadLetter>
  rows: ListedDeadLetter[]
}

/** The API does not count by cause: what is loaded is counted, and that is said. */
function Counted({ matching, list, rows }: CountedProps): JSX.Element {
  const counted = list.more ? `the ${count(rows.length)} newest` : `all ${count(rows.length)}`
  return (
    <p class="muted small list-note">
      {matching === undefined ? `Counted over ${counted}.` : `${count(matching)} among ${counted}.`}
    </p>
  )
}
