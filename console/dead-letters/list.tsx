// Dead letters by status, or grouped by cause, and the operations on many of them.

import { useSignal } from '@preact/signals'
import type { Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { usePages } from '../api/load.ts'
import { address, setQuery } from '../router.ts'
import { RetryQuestion } from '../schedules/mend.tsx'
import { agentCurl } from '../text/curl.ts'
import { causeInWords } from '../text/failure.ts'
import { firstLine } from '../text/words.ts'
import { Button, Commands, setFrom, setTo, Text } from '../ui/basics.tsx'
import { Never } from '../ui/first.tsx'
import { ListView, type OpenProps, Split, useStatuses } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type AskedMany, BulkQuestion } from './bulk.tsx'
import { Causes, left_by } from './causes.tsx'
import { DeadLetterDetail } from './detail.tsx'
import { first } from './first.ts'
import { Letters } from './letters.tsx'
import { type AskedLetter, LetterQuestion } from './mend.tsx'
import { OperationDetail } from './operation.tsx'
import { Operations, RunningOperations, useOperations } from './operations.tsx'
import type { Filter, Letter, Status } from './shapes.ts'
import { UnlistedSchedules, useUnlisted } from './unlisted.tsx'
import './dead-letters.css'

const titles = {
  failed: 'Failed',
  claimed: 'Claimed',
  resolved: 'Resolved',
  archived: 'Archived',
  operations: 'Operations',
}

const empty: Record<Status, [title: string, text: string]> = {
  failed: [
    'No dead letter waits to be resolved',
    'What agents, schedules and approvals give up on appears here.',
  ],
  claimed: ['No dead letter is claimed', 'A claimed one is being worked on by an agent.'],
  resolved: ['No dead letter was resolved', 'They are kept for 90 days.'],
  archived: [
    'No dead letter was archived',
    'Those that were discarded, or given up by an agent, are kept for 90 days.',
  ],
}

export function DeadLetters({ params: { id } }: { params: Record<string, string> }) {
  const { status: tab, query, tabs, panel } = useStatuses(titles, 'letters')
  const by_cause = tab !== 'operations' && address.value.query.get('by') === 'cause'
  const operations = useOperations()
  const asked = useSignal<AskedLetter | null>(null)
  const many = useSignal<AskedMany | null>(null)
  const retried = useSignal<Schedule | null>(null)
  const status: Status = tab === 'operations' ? 'failed' : tab
  const filter = filterIn(address.value.query, status)
  const list = usePages<Letter>('/v1/dlq', { ...filter }, { on: ['dlq'], keep })
  const unlisted = useUnlisted(tab === 'failed' && !by_cause && !isFiltered(filter))
  // Shown together, so that nothing moves when the second answer comes.
  const both = unlisted.value || unlisted.problem ? list : { ...list, value: null }
  const onChange = () => {
    list.reload()
    operations.reload()
  }
  return (
    <Page
      title="Dead letters"
      docs="dlq"
      lead="Failures that agents, schedules and approvals left: send them again, or discard them."
      actions={
        tab !== 'operations' && (
          <Button
            text="By cause"
            pressed={by_cause}
            onClick={() =>
              setQuery({ by: by_cause ? undefined : 'cause', cause: undefined, source: undefined })
            }
          />
        )
      }
    >
      {tabs}
      {tab !== 'operations' && <RunningOperations {...{ operations, query }} current={id} />}
      <Split {...{ panel }} detail={id && <Opened key={id} {...{ id, onChange }} />}>
        {tab === 'operations' ? (
          <Operations current={id} {...{ operations, query }} />
        ) : by_cause ? (
          <Causes {...{ status, query }} />
        ) : (
          <>
            <Filters {...{ filter }} />
            <ListView list={both} what="dead letters" empty={<Nothing {...{ filter, status }} />}>
              {(rows) => (
                <Letters
                  {...{ list, rows, filter, query }}
                  current={id}
                  onAsk={setFrom(asked)}
                  onAskMany={setFrom(many)}
                />
              )}
            </ListView>
            {list.value !== null && <UnlistedSchedules {...{ unlisted }} onAsk={setFrom(retried)} />}
          </>
        )}
      </Split>
      {asked.value && <LetterQuestion {...asked.value} {...{ onChange }} onClose={setTo(asked, null)} />}
      {/* They stay when the list that they are about is empty meanwhile. */}
      {many.value && <BulkQuestion {...many.value} {...{ onChange }} onClose={setTo(many, null)} />}
      {retried.value && (
        <RetryQuestion
          schedule={retried.value}
          path={pathOf('/v1/schedules', retried.value.id)}
          onChange={unlisted.reload}
          onClose={setTo(retried, null)}
        />
      )}
      <Commands
        title="Work on the oldest with an agent"
        lead="Agents resolve dead letters. A claim takes the oldest that is free, or answers 204:"
        commands={[['Command that claims the oldest dead letter', agentCurl('POST', '/v1/dlq/claim')]]}
      />
    </Page>
  )
}

/** A dead letter, or an operation on many: the form of the id says which. */
function Opened(props: OpenProps) {
  return props.id.startsWith('dop_') ? <OperationDetail {...props} /> : <DeadLetterDetail {...props} />
}

/** Errors may be long; rows show one line. */
function keep(letter: Letter): Letter {
  return { ...letter, error: firstLine(letter.error) }
}

const filter_names = ['source', 'source_id', 'cause', 'workflow_id', 'from', 'to'] as const

/** The filter that the address holds. */
function filterIn(query: URLSearchParams, status: Status): Omit<Filter, 'ids'> {
  const given = filter_names.flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : []))
  return { ...(Object.fromEntries(given) as Omit<Filter, 'ids'>), status }
}

function isFiltered(filter: Filter): boolean {
  return filter_names.some((name) => filter[name] !== undefined)
}

const filter_titles: Record<(typeof filter_names)[number], string> = {
  cause: 'Cause',
  source: 'From',
  source_id: 'Left by',
  workflow_id: 'Workflow',
  from: 'Since',
  to: 'Until',
}

function Filters({ filter }: { filter: Filter }) {
  const given = filter_names.flatMap((name) =>
    filter[name] === undefined ? [] : [[name, filter[name]] as const],
  )
  if (given.length === 0) return null
  // The words of an agent are its own, also where they look like those of the service.
  const causeText = filter.source === 'agent' ? firstLine : causeInWords
  const textOf = (name: string, value: string) =>
    name === 'cause' ? causeText(value) : name === 'source' ? sourceIn(value) : value
  return (
    <div class="list-filter bar" data-wrap>
      <ul class="filter-chips parts" aria-label="Filters">
        {given.map(([name, value]) => (
          <li key={name} class="chip">
            <span class="muted">{filter_titles[name]}</span> <Text>{textOf(name, value)}</Text>
            <Button
              text="×"
              kind="quiet"
              label={`Remove the filter: ${filter_titles[name]}`}
              onClick={() => setQuery({ [name]: undefined })}
            />
          </li>
        ))}
      </ul>
      <Button
        text="Show all"
        kind="quiet"
        onClick={() => setQuery(Object.fromEntries(filter_names.map((name) => [name, undefined])))}
      />
    </div>
  )
}

/** In words; of an address it may be any text. */
function sourceIn(value: string): string {
  return Object.hasOwn(left_by, value) ? left_by[value as keyof typeof left_by] : value
}

function Nothing({ filter, status }: { filter: Filter; status: Status }) {
  if (isFiltered(filter))
    return <Empty title="Nothing matches this filter">Remove a filter to see more.</Empty>
  const [title, text] = empty[status]
  return (
    <Never path="/v1/dlq" first={first}>
      <Empty title={title}>{text}</Empty>
    </Never>
  )
}
