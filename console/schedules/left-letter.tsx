// The dead letter that a schedule left. The API has no filter for it, so the list of dead letters is searched.

import { useSignal } from '@preact/signals'
import type { ListedDeadLetter, Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf, Result } from '../api/client.ts'
import { useLoad } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Badge, Button } from '../ui/basics.tsx'
import { LoadedView } from '../ui/page.tsx'

interface Search {
  letter: ListedDeadLetter | null
  /** The search has read every letter that could be the one. */
  complete: boolean
  /** The number of letters read. */
  read: number
}

const letters_a_page = 200
const pages_a_search = 5

export function LeftLetter({ schedule }: { schedule: Schedule }) {
  const pages = useSignal(pages_a_search)
  const search = useLoad<Search>(
    `letter of ${schedule.id} ${schedule.dlq_on_failure} ${pages.value}`,
    (signal) => find(schedule, pages.value, signal),
  )
  if (!schedule.dlq_on_failure) {
    return <p class="muted">It left no dead letter: it was created without dlq_on_failure.</p>
  }
  const further = () => {
    pages.value += pages_a_search * 4
  }
  return (
    <div class="letter-place">
      <LoadedView loaded={search} what="its dead letter" lines={1}>
        {({ letter, complete, read }) =>
          letter ? (
            <p>
              <a href={to(pathOf('/console/dlq', letter.id), { status: letter.status })}>
                Go to the dead letter it left
              </a>{' '}
              <Badge>{letter.status}</Badge>
            </p>
          ) : complete ? (
            <p class="muted">The dead letter that it left has been removed since.</p>
          ) : (
            <p>
              Its dead letter is not among the {count(read)} newest.{' '}
              <Button text="Look further" kind="quiet" onClick={further} />
            </p>
          )
        }
      </LoadedView>
    </div>
  )
}

/** Reads letters from the newest to the time of the failure. */
async function find(schedule: Schedule, pages: number, signal: AbortSignal): Promise<Result<Search>> {
  const search: Search = { letter: null, complete: !schedule.dlq_on_failure, read: 0 }
  let cursor: string | undefined
  for (let page = 0; page < pages && !search.complete; page += 1) {
    const query = { limit: letters_a_page, cursor }
    const result = await ask<PageOf<ListedDeadLetter>>('GET', '/v1/dlq', { query, signal })
    if (!result.ok) return result
    const { items, next_cursor } = result.value
    const oldest = items.at(-1)?.created_at
    search.read += items.length
    search.letter = items.find(({ source_id }) => source_id === schedule.id) ?? null
    const is_past = oldest !== undefined && oldest < schedule.updated_at
    search.complete = search.letter !== null || next_cursor === null || is_past
    cursor = next_cursor ?? undefined
  }
  return { ok: true, value: search, text: '' }
}
