// The question before many dead letters are redriven or discarded. The service counts what matches before anything
// is done.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { ChangeQuestion } from '../actions/question.tsx'
import { newKey } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import type { Result } from '../api/client.ts'
import { useLoad } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { address, useWayOn } from '../router.ts'
import { count } from '../text/words.ts'
import { setFrom, Text } from '../ui/basics.tsx'
import { Select } from '../ui/form.tsx'
import { LoadedView } from '../ui/page.tsx'
import { letters, verb_titles } from './letter.ts'
import { DiscardText } from './mend.tsx'
import type { Filter, Letter, Operation, Status, Verb } from './shapes.ts'
import type { Source } from './sources.ts'

/** The most that one operation takes. */
const matched_max = 5_000

/** The question about those that were chosen, as they were then. */
export interface AskedMany {
  verb: Verb
  /** Of the list in which they were chosen. */
  status: Status
  /** Those that are named by their ids match in any status, so that each has an outcome. */
  filter: Filter
  /** The letters that were chosen one by one; empty when all that match were. */
  rows: Letter[]
  sources: Record<string, Source>
  onStarted: () => void
}

interface BulkProps extends AskedMany {
  onChange: () => void
  onClose: () => void
}

const paces = [
  { value: '', label: 'As fast as the service can' },
  { value: '10', label: '10 a second' },
  { value: '1', label: '1 a second' },
  { value: '0.1', label: '1 every 10 seconds' },
] as const

/** How many match, as the question says it. */
function useCounts(verb: Verb, filter: Filter) {
  const counts = useLoad<Counts>(`${verb} ${JSON.stringify(filter)}`, (signal) =>
    matches(verb, filter, signal),
  )
  const grown = useSignal(false)
  /** Of an operation on those that were counted. */
  const idempotency_key = useRef(newKey())
  /** Null where no more match by now. A filter has no bound on when letters were archived, or became free again. */
  const stop = async (): Promise<Result<null> | null> => {
    const now = filter.ids ? null : await matches(verb, filter)
    if (now === null || (now.ok && !isMore(now.value, counts.value!))) return null
    if (!now.ok) return now
    grown.value = true
    idempotency_key.current = newKey()
    counts.reload()
    return { ok: true, value: null, text: '' }
  }
  return { counts, grown: grown.value, idempotency_key, stop }
}

export function BulkQuestion({ verb, status, filter, rows, sources, ...props }: BulkProps) {
  const { onStarted, onChange, onClose } = props
  const pace = useSignal<(typeof paces)[number]['value']>('')
  const { counts, grown, idempotency_key, stop } = useCounts(verb, filter)
  const total = counts.value?.total ?? null
  const { navigate } = useWayOn()
  const work = async () => {
    const per_second = pace.peek() === '' ? undefined : Number(pace.peek())
    const headers = { 'idempotency-key': idempotency_key.current }
    const stopped = await stop()
    const body = { filter, max: total, per_second }
    return stopped ?? ask<Operation>('POST', `/v1/dlq/${verb}`, { body, headers })
  }
  // Redriving what agents left and may still claim would change nothing.
  const idle = verb === 'redrive' && status === 'failed' && total !== null && total === counts.value!.agent
  const what = total === null ? 'these' : letters(total)
  return (
    <ChangeQuestion
      title={`${verb_titles[verb]} ${what}?`}
      verb={total ? `Yes, ${verb} ${count(total)}` : `Yes, ${verb}`}
      kind={verb === 'redrive' ? 'primary' : 'danger'}
      disabled={!total || idle}
      onDone={({ id }) => {
        onStarted()
        onChange()
        navigate(pathOf('/console/dlq', id), Object.fromEntries(address.value.query))
      }}
      {...{ work, onClose }}
    >
      {grown && (
        <p class="notice" role="alert">
          More match by now: nothing was started. Look at the numbers again.
        </p>
      )}
      <LoadedView loaded={counts} what="how many match" lines={4}>
        {(counted) =>
          counted.total === 0 ? (
            <p>
              None of them can be {verb === 'redrive' ? 'redriven' : 'discarded'} any more. Nothing will be
              done.
            </p>
          ) : idle ? (
            <p>
              Agents left these: they stay as they are, for agents to claim. There is no call to send again.
            </p>
          ) : (
            <Consequences {...{ verb, status, rows, sources, counted }} />
          )
        }
      </LoadedView>
      {verb === 'redrive' && !idle && (
        <Select
          label="Pace"
          hint="Slower is kinder to a receiver that has just recovered."
          value={pace.value}
          options={paces}
          onInput={setFrom(pace)}
        />
      )}
    </ChangeQuestion>
  )
}

const source_kinds = ['schedule', 'checkpoint', 'agent'] as const
type Counts = Record<Letter['source'] | 'total', number>

/** A dry run for each kind of source. Discarding does the same with all of them. */
async function matches(verb: Verb, filter: Filter, signal?: AbortSignal): Promise<Result<Counts>> {
  const kinds = filter.source ? [filter.source] : source_kinds
  const counts: Counts = { schedule: 0, checkpoint: 0, agent: 0, total: 0 }
  for (const source of kinds) {
    const body = { filter: { ...filter, source }, dry_run: true }
    const result = await ask<{ matched: number }>('POST', `/v1/dlq/${verb}`, { body, signal })
    if (!result.ok) return result
    counts[source] = result.value.matched
  }
  counts.total = Math.min(matched_max, counts.schedule + counts.checkpoint + counts.agent)
  return { ok: true, value: counts, text: '' }
}

function isMore(now: Counts, before: Counts): boolean {
  return source_kinds.some((source) => now[source] > before[source])
}

interface ConsequencesProps extends Pick<BulkProps, 'verb' | 'status' | 'rows' | 'sources'> {
  counted: Counts
}

function Consequences({ verb, status, rows, sources, counted }: ConsequencesProps) {
  const { schedule, checkpoint, agent, total } = counted
  return (
    <div class="stack consequences">
      {verb === 'discard' ? (
        <DiscardText many={total > 1} />
      ) : (
        <ul>
          {schedule > 0 && (
            <li>
              <strong>{count(schedule)}</strong> from schedules: each call is made again, with the same
              payload, as a new schedule.
              <Places {...{ rows, sources }} source="schedule" />
            </li>
          )}
          {checkpoint > 0 && (
            <li>
              <strong>{count(checkpoint)}</strong> from approvals: the decision is sent again where its
              callback failed. The others are skipped.
              <Places {...{ rows, sources }} source="checkpoint" />
            </li>
          )}
          {agent > 0 && (
            <li>
              <strong>{count(agent)}</strong> from agents:{' '}
              {status === 'archived'
                ? 'they become failed again, for agents to claim. Nothing is sent.'
                : 'they stay as they are, for agents to claim. Nothing is sent.'}
            </li>
          )}
        </ul>
      )}
      <p class="muted">
        One that an agent has claimed, or that has ended, when its turn comes is skipped. You can watch, and
        cancel what is not done yet.
        {total === matched_max && ` One operation takes ${count(matched_max)} at most.`}
      </p>
    </div>
  )
}

const places_max = 3

/** Where the calls go, the most frequent first, as far as it is known. */
function Places({
  rows,
  sources,
  source,
}: Pick<BulkProps, 'rows' | 'sources'> & { source: Letter['source'] }) {
  const places = new Map<string, number>()
  for (const row of rows) {
    const place = row.source === source && row.source_id !== null ? sources[row.source_id]?.place : null
    if (place) places.set(place, (places.get(place) ?? 0) + 1)
  }
  if (places.size === 0) return null
  const sorted = [...places].toSorted(([, one], [, other]) => other - one)
  return (
    <ul class="muted small">
      {sorted.slice(0, places_max).map(([place, times]) => (
        <li key={place}>
          <Text>{place}</Text>
          {times > 1 && ` × ${count(times)}`}
        </li>
      ))}
      {sorted.length > places_max && <li>and {count(sorted.length - places_max)} more</li>}
    </ul>
  )
}
