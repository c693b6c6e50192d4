// Every statement on schedules.

import { type Reader, sql, type Tx } from '../db/db.ts'
import { newestLists } from '../db/newest.ts'
import { purging } from '../db/purge.ts'
import {
  type Repeats,
  replaced,
  type ScheduleRow,
  type ScheduleStatus,
  type Settings,
  texts,
} from './schedule.ts'

const INSERT = sql(
  'schedules.insert',
  `insert into schedules
     (tenant_id, id, status, fire_at, agent_id, attempts, retry_of, redrive_of, created_at, updated_at,
      ${replaced.join(', ')})
   values
     (:tenant_id, :id, 'pending', :fire_at, :agent_id, 0, :retry_of, :redrive_of, :now, :now,
      ${replaced.map((name) => `:${name}`).join(', ')})`,
)

const columns = `id, status, ${replaced.join(', ')}, fire_at, agent_id, attempts, last_error,
       last_status_code, fired_at, retry_of, redrive_of, retried_as, dead_letter_id, created_at, updated_at,
       (select next_at from jobs
         where jobs.tenant_id = :tenant_id and kind = 'schedule' and source_id = schedules.id) as next_at`

const FIND = sql<ScheduleRow>(
  'schedules.find',
  `select ${columns} from schedules where tenant_id = :tenant_id and id = :id`,
)

/** Newest first. */
export const list = newestLists<ScheduleRow, ScheduleStatus>({
  ...{ table: 'schedules', columns, texts, has_workflow: "workflow_id <> ''" },
})

const settings = `${replaced.map((name) => `${name} = coalesce(:${name}, ${name})`).join(',\n          ')},
          updated_at = :now,
          grew = ${texts.map((name) => `octet_length(coalesce(:${name}, ${name})) - octet_length(${name})`).join(' + ')}
    where tenant_id = :tenant_id and id = :id
   returning grew`

const UPDATE = sql<{ grew: number }>('schedules.update', `update schedules set ${settings}`)

const UPDATE_TIME = sql<{ grew: number }>(
  'schedules.update_time',
  `update schedules
      set fire_at = :fire_at, attempts = 0, last_error = null, last_status_code = null, ${settings}`,
)

const CANCEL = sql<Pick<ScheduleRow, 'id' | 'workflow_id'>>(
  'schedules.cancel',
  `update schedules set status = 'cancelled', updated_at = :now
    where tenant_id = :tenant_id and id = :id and status = 'pending'
   returning id, workflow_id`,
)

const REPEAT = sql(
  'schedules.repeat',
  `update schedules set retried_as = :retried_as, updated_at = :now
    where tenant_id = :tenant_id and id = :id and status in ('failed', 'fired') and retried_as is null`,
)

const STORED = sql<{ callback_url: string; callback_payload: string; workflow_id: string }>(
  'schedules.stored',
  'select callback_url, callback_payload, workflow_id from schedules where tenant_id = :tenant_id and id = :id',
)

type NewSchedule = Settings & Repeats & { id: string; agent_id: string }

export function insert(tx: Tx, tenant_id: string, schedule: NewSchedule) {
  return tx.run(INSERT, { tenant_id, ...schedule, now: tx.now })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

/**
 * Fields that are left out stay: nothing is read before, so that of two changes at once neither undoes the other. A new
 * fire_at resets the attempts. Returns by how many bytes the row grew.
 */
export function update(tx: Tx, tenant_id: string, id: string, change: Partial<Settings>) {
  const { fire_at } = change
  const given = Object.fromEntries(replaced.map((name) => [name, change[name] ?? null]))
  const params = { tenant_id, id, ...given, now: tx.now }
  return fire_at === undefined ? tx.one(UPDATE, params) : tx.one(UPDATE_TIME, { ...params, fire_at })
}

/** Null unless it was pending. */
export function cancel(tx: Tx, tenant_id: string, id: string) {
  return tx.one(CANCEL, { tenant_id, id, now: tx.now })
}

/** Names its successor. False when it is not there, has not ended, or has one. */
export async function repeat(tx: Tx, tenant_id: string, id: string, retried_as: string): Promise<boolean> {
  return (await tx.run(REPEAT, { tenant_id, id, retried_as, now: tx.now })) === 1
}

/** The payload, its URL and its workflow. */
export function stored(q: Reader, tenant_id: string, id: string) {
  return q.one(STORED, { tenant_id, id })
}

export const purge = purging('schedules.purge', {
  ...{ table: 'schedules', key: 'tenant_id, id', texts: ['callback_payload'] },
})
