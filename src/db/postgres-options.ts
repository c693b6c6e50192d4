// The options of the PostgreSQL driver.

import type { Clock } from '../base/clock.ts'
import type { DbMeasures } from './measures.ts'
import type { ComplaintListener } from './postgres-complaints.ts'
import type { OutageListener } from './postgres-outage.ts'

export type ServerListener = OutageListener & ComplaintListener

export interface PostgresOptions {
  clock: Clock
  /** True to take the time from the database, so that nodes with different clocks agree. Tests move a clock of their own. */
  database_time?: boolean
  /** True: its clock is a MovedClock. */
  movable?: boolean
  /** Connections in the pool. */
  connections_max?: number
  /** Writes of a line that do not share transactions while they are few. */
  passing_max?: number
  /** Settings that are sent when a connection opens; `whole_session` unless given. */
  session?: Readonly<Record<string, string>>
  /** The connections take it; absent: they keep that of the login. */
  role?: string | undefined
  /** True: statements carry their tenant from the start, because tables may be prepared for row-level security while they run. */
  carries_tenant?: boolean
  measures?: DbMeasures | undefined
  /** Hears of outages, and of errors that say something of the server. */
  server_listener?: ServerListener | undefined
}
