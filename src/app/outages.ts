// Outages of PostgreSQL in the log: two lines for each, and one a minute while it lasts.

import { second_ms } from '../base/clock.ts'
import type { OutageListener } from '../db/postgres-outage.ts'
import type { Log } from '../http/answers.ts'

export const away_message = 'the database is away: what needs it is answered 503'
export const back_message = 'the database is back'

export function outagesIn(log: Log): OutageListener {
  return {
    onAway({ server, ms, reason }) {
      log.error({ database: server, seconds: secondsOf(ms), reason }, away_message)
    },
    onBack({ server, ms }) {
      log.info({ database: server, seconds: secondsOf(ms) }, back_message)
    },
  }
}

/** Tenths are enough to tell a restart from a failover. */
function secondsOf(ms: number): number {
  return Math.round((10 * ms) / second_ms) / 10
}
