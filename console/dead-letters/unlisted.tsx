// Failed schedules that left no dead letter: they are failures as well, and are sent again from here.

import type { Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf, Result } from '../api/client.ts'
import { type Loaded, useLoad } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { to } from '../router.ts'
import { standsAlone } from '../schedules/failed.ts'
import { RetryInRow } from '../schedules/mend.tsx'
import { callFailure, callText } from '../text/failure.ts'
import { count } from '../text/words.ts'
import { Code, Time } from '../ui/basics.tsx'
import { FailureCell } from '../ui/list.tsx'

const every_ms = 30_000
const looked_at = 200
const rows_max = 20

export interface Unlisted extends Loaded<PageOf<Schedule>> {
  rows: Schedule[]
}

/** `active` while the list is shown that they stand below. */
export function useUnlisted(active: boolean): Unlisted {
  const nothing: Result<PageOf<Schedule>> = { ok: true, value: { items: [], next_cursor: null }, text: '' }
  const loaded = useLoad<PageOf<Schedule>>(
    active ? 'failed schedules' : 'no schedules',
    (signal) =>
      active
        ? ask('GET', '/v1/schedules', { query: { status: 'failed', limit: looked_at }, signal })
        : Promise.resolve(nothing),
    { every_ms: active ? every_ms : 0 },
  )
  return { ...loaded, rows: (loaded.value?.items ?? []).filter(standsAlone) }
}

interface UnlistedProps {
  unlisted: Unlisted
  /** Called with the schedule of a row that is to be sent again. */
  onAsk: (schedule: Schedule) => void
}

export function UnlistedSchedules({ unlisted: { value, rows }, onAsk }: UnlistedProps) {
  if (rows.length === 0) return null
  return (
    <section class="unlisted" aria-label="Failed schedules without a dead letter">
      <h2 class="unlisted-head">
        Failed schedules without a dead letter <span class="muted">{count(rows.length)}</span>
      </h2>
      <ul class="rows">
        {rows.slice(0, rows_max).map((row) => (
          <li key={row.id}>
            <FailureCell
              href={to(pathOf('/console/schedules', row.id), { status: 'failed' })}
              title={callFailure(row.last_error ?? 'failed', row.last_status_code)}
              what={`Schedule · ${callText(row)}`}
            />
            <span class="rows-side">
              <Code>{row.agent_id}</Code> <Time at={row.updated_at} />
              <RetryInRow schedule={row} {...{ onAsk }} />
            </span>
          </li>
        ))}
      </ul>
      {(rows.length > rows_max || value?.next_cursor != null) && (
        <p class="list-note">
          <a href={to('/console/schedules', { status: 'failed' })}>All failed schedules</a>
        </p>
      )}
    </section>
  )
}
