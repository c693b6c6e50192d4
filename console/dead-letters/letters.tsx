// The rows of dead letters, the choice of many, and what can be done with them.

import { pathOf } from '../api/address.ts'
import type { List } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Button, Countdown, Text } from '../ui/basics.tsx'
import { FailureCell } from '../ui/list.tsx'
import { Checkbox, type Selection, selectionColumn, useSelection } from '../ui/selection.tsx'
import { type Column, codeColumn, More, Table, timeColumn } from '../ui/table.tsx'
import type { AskedMany } from './bulk.tsx'
import { discardRefusal, redriveRefusal, titleOf, verb_titles } from './letter.ts'
import { type AskedLetter, InRow } from './mend.tsx'
import type { Filter, Letter, Status, Verb } from './shapes.ts'
import { type Source, sourceText, useSources } from './sources.ts'

interface LettersProps {
  list: List<Letter>
  rows: Letter[]
  filter: Filter
  /** The status in an address. */
  query: string | undefined
  current: string | undefined
  /** Called with the question about one of the rows. */
  onAsk: (asked: AskedLetter) => void
  /** Called with the question about those that are chosen. */
  onAskMany: (asked: AskedMany) => void
}

/** The verbs that the API takes for many letters of a status. */
const verbs: Record<Status, Verb[]> = {
  failed: ['redrive', 'discard'],
  claimed: [],
  resolved: [],
  archived: ['redrive'],
}

export function Letters({ list, rows, filter, query, current, onAsk, onAskMany }: LettersProps) {
  const status = filter.status ?? 'failed'
  const ids = rows.map(({ id }) => id)
  const selection = useSelection(JSON.stringify(filter), ids)
  const sources = useSources(rows)
  const possible = verbs[status]
  const columns: Column<Letter>[] = [
    ...(possible.length > 0 ? [selectionColumn<Letter>(selection, titleOf)] : []),
    failureColumn(filter, query, sources),
    status === 'claimed'
      ? codeColumn('Held by', ({ locked_by }) => locked_by)
      : codeColumn('Agent', ({ agent_id }) => agent_id),
    lastColumn(status),
    ...(current === undefined && possible.length > 0 ? [actionsColumn(possible, sources, onAsk)] : []),
  ]
  return (
    <>
      {possible.length > 0 && (
        <Toolbar {...{ list, rows, filter, selection, possible, sources, onAskMany }} />
      )}
      <Table caption={`Dead letters: ${status}`} id={(row) => row.id} {...{ columns, rows, current }} />
      <More {...{ list }} />
    </>
  )
}

/** The cause, and below it what failed. */
function failureColumn(
  filter: Filter,
  query: string | undefined,
  sources: Record<string, Source>,
): Column<Letter> {
  const { source, source_id, cause, workflow_id, from, to: until } = filter
  const kept = { status: query, source, source_id, cause, workflow_id, from, to: until }
  return {
    title: 'Failure',
    grow: true,
    cell: (row) => (
      <FailureCell
        href={to(pathOf('/console/dlq', row.id), kept)}
        title={titleOf(row)}
        what={<What letter={row} source={row.source_id === null ? undefined : sources[row.source_id]} />}
      />
    ),
  }
}

const kinds = { agent: 'Agent', schedule: 'Schedule', checkpoint: 'Approval' }

/** The thing that failed: the name and the place of a schedule, the title of an approval, the workflow of an agent. */
export function What({ letter, source }: { letter: Letter; source: Source | undefined }) {
  const text = letter.source === 'agent' ? (letter.workflow_id ?? '') : sourceText(source)
  return (
    <>
      {kinds[letter.source]}
      {text !== '' && (
        <>
          {' · '}
          <Text>{text}</Text>
        </>
      )}
    </>
  )
}

function lastColumn(status: Status): Column<Letter> {
  if (status === 'failed') return timeColumn('Failed', ({ created_at }) => created_at)
  if (status === 'resolved') return timeColumn('Resolved', ({ updated_at }) => updated_at)
  if (status === 'archived') return timeColumn('Archived', ({ updated_at }) => updated_at)
  const cell = ({ locked_until }: Letter) =>
    locked_until && <Countdown until={locked_until} over="now" held />
  return { title: 'Lock ends', cell }
}

function actionsColumn(
  possible: Verb[],
  sources: Record<string, Source>,
  onAsk: LettersProps['onAsk'],
): Column<Letter> {
  const sourceOf = ({ source_id }: Letter) => (source_id === null ? undefined : sources[source_id])
  return {
    title: 'Actions',
    untitled: true,
    wide: true,
    kind: 'actions',
    cell: (letter) => (
      <>
        {redriveRefusal(letter, sourceOf(letter)) === null && (
          <InRow verb="redrive" source={sourceOf(letter)} {...{ letter, onAsk }} />
        )}
        {possible.includes('discard') && discardRefusal(letter) === null && (
          <InRow verb="discard" source={sourceOf(letter)} {...{ letter, onAsk }} />
        )}
      </>
    ),
  }
}

/** Letters that come later were not there to be chosen. Rows are newest first. */
function untilNewest(filter: Filter, [newest]: Letter[]): Filter {
  if (!newest) return filter
  const to = new Date(Date.parse(newest.created_at) + 1).toISOString()
  return { ...filter, to: filter.to !== undefined && Date.parse(filter.to) < Date.parse(to) ? filter.to : to }
}

interface ToolbarProps extends Pick<LettersProps, 'list' | 'rows' | 'filter' | 'onAskMany'> {
  selection: Selection
  possible: Verb[]
  sources: Record<string, Source>
}

/** Always there, so that the rows do not move when the first one is chosen. */
function Toolbar({ list, rows, filter, selection, possible, sources, onAskMany }: ToolbarProps) {
  const { chosen, everything } = selection
  // The choice of that moment, whatever the list shows when the question is answered.
  const askFor = (verb: Verb) => {
    const many = everything
      ? { filter: untilNewest(filter, rows), rows: [] }
      : { filter: { ids: chosen }, rows: rows.filter(({ id }) => chosen.includes(id)) }
    const status = filter.status ?? 'failed'
    onAskMany({ verb, status, ...many, sources, onStarted: selection.clear })
  }
  const all_rows = chosen.length === rows.length && rows.length > 0
  const none = chosen.length === 0 && !everything
  return (
    <div class="toolbar bar" data-wrap data-on={!none}>
      <div class="parts">
        <Checkbox
          label={`Select all ${count(rows.length)} that are shown`}
          checked={all_rows}
          mixed={!all_rows && chosen.length > 0}
          onChange={selection.setAll}
        />
        <span class="toolbar-count" role="status">
          {everything ? (
            list.more ? (
              'All that match'
            ) : (
              `All ${count(rows.length)}`
            )
          ) : none ? (
            <span class="muted">Select what to {possible.join(' or ')}</span>
          ) : (
            `${count(chosen.length)} selected`
          )}
        </span>
        {all_rows && list.more && !everything && (
          <Button text="Select all that match" kind="quiet" onClick={selection.chooseEverything} />
        )}
        {!none && <Button text="Clear" kind="quiet" onClick={selection.clear} />}
      </div>
      <div class="parts">
        {possible.map((verb) => (
          <Button
            key={verb}
            text={none ? verb_titles[verb] : `${verb_titles[verb]}…`}
            disabled={none}
            onClick={() => askFor(verb)}
          />
        ))}
      </div>
    </div>
  )
}
