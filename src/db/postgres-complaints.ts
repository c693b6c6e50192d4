// The errors of PostgreSQL that say something of the server and not of a statement, while it goes on: it had not enough of
// something, or ended a connection. Callers learn only that the database was busy or away.

import type { Clock } from '../base/clock.ts'
import { OnceAMinute } from '../base/once-a-minute.ts'
import { connectionFault, lacksResources, stateOf } from './errors.ts'

export interface Complaint {
  /** Host and port. */
  server: string
  /** SQLSTATE, PostgreSQL Appendix A. */
  code: string
  reason: string
}

export interface ComplaintListener {
  /** Called when an error comes, and for each code once a minute at most. */
  onComplaint(complaint: Complaint): void
}

export class Complaints {
  readonly #lines: OnceAMinute

  constructor(
    private readonly server: string,
    clock: Pick<Clock, 'monotonic'>,
    private readonly listener: ComplaintListener | undefined,
  ) {
    this.#lines = new OnceAMinute(clock)
  }

  notice(error: unknown): void {
    const code = stateOf(error)
    if (code === '' || !(lacksResources(error) || connectionFault(error))) return
    if (!this.#lines.isDue(code)) return
    this.listener?.onComplaint({ server: this.server, code, reason: (error as Error).message })
  }
}
