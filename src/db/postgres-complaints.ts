// The errors of PostgreSQL that say something of the server and not of a statement, while it goes on: it had not enough of
// something, or ended a connection. Callers learn only that the database was busy or away.

import { type Clock, minute_ms } from '../base/clock.ts'
import { connectionFault, lacksResources, stateOf } from './errors.ts'

const tell_every_ms = minute_ms

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
  readonly #told_at = new Map<string, number>()

  constructor(
    private readonly server: string,
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly listener: ComplaintListener | undefined,
  ) {}

  notice(error: unknown): void {
    const code = stateOf(error)
    if (code === '' || !(lacksResources(error) || connectionFault(error))) return
    const now = this.clock.monotonic()
    if (now - (this.#told_at.get(code) ?? Number.NEGATIVE_INFINITY) < tell_every_ms) return
    this.#told_at.set(code, now)
    this.listener?.onComplaint({ server: this.server, code, reason: (error as Error).message })
  }
}
