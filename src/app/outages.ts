// PostgreSQL in the log: two lines for an outage, and one a minute while it lasts; one a minute for each kind of its complaints.

import { second_ms } from '../base/clock.ts'
import type { ServerListener } from '../db/postgres-options.ts'
import type { Log } from '../http/answers.ts'

export const away_message = 'the database is away: requests that need it get 503'
export const back_message = 'the database is back'
export const complaint_message =
  'the database ran short of something or ended a connection: requests that needed it get 503'

export function serverIn(log: Log): ServerListener {
  return {
    onAway({ server, ms, reason }) {
      log.error({ database: server, seconds: secondsOf(ms), reason }, away_message)
    },
    onBack({ server, ms }) {
      log.info({ database: server, seconds: secondsOf(ms) }, back_message)
    },
    onComplaint({ server, code, reason }) {
      log.warn({ database: server, code, reason }, complaint_message)
    },
  }
}

/** Tenths are enough to tell a restart from a failover. */
function secondsOf(ms: number): number {
  return Math.round((10 * ms) / second_ms) / 10
}
