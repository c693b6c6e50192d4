// The permits for connections to PostgreSQL, which tenants share.

import type { Clock } from '../base/clock.ts'
import { FairQueue } from '../base/fair.ts'
import { limit } from '../base/limit.ts'
import { pool_late_ms_max, pool_wait_ms_max } from './connection-settings.ts'
import { patient_waiting_max } from './sqlite-room.ts'

export const waiting_max = limit(
  'postgres.waiting',
  2_000,
  'requests',
  'Bounds the statements and transactions that wait for a connection; a tenant may have as many as there is room left for, so one alone has half. Past it one is refused as UNAVAILABLE.',
)
/** One connection in this many is kept for tenants that have none. */
const reserve_part = 6
const row_running_max = limit(
  'postgres.row_transactions',
  2,
  'connections',
  'Bounds the connections that wait for the lock of one busy row, such as the head of an audit log.',
)

export function connectionQueue(connections_max: number, clock: Clock): FairQueue {
  const limits = {
    running_max: connections_max,
    reserve: Math.floor(connections_max / reserve_part),
    row_running_max,
    waiting_max,
    patient_waiting_max,
    wait_ms_max: pool_wait_ms_max,
    late_ms_max: pool_late_ms_max,
  }
  return new FairQueue(limits, clock)
}
