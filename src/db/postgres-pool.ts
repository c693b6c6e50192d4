// The connections of the PostgreSQL driver, which are opened again after a silence of the server, or to take a role.

import type { SQL } from 'bun'

/** How a pool stands: what runs on it, and whether another has taken its place. */
export interface Opened {
  readonly sql: SQL
  running: number
  is_left: boolean
}

export class Pool {
  #opened: Opened

  constructor(
    /** Opens connections that take this role; without one they keep that of the login. */
    private readonly open: (role: string | undefined) => SQL,
    private role: string | undefined,
  ) {
    this.#opened = { sql: open(role), running: 0, is_left: false }
  }

  get current(): SQL {
    return this.#opened.sql
  }

  /** Keeps the connections open on which something begins now, until it calls `leave`. */
  enter(): Opened {
    this.#opened.running += 1
    return this.#opened
  }

  leave(opened: Opened): void {
    opened.running -= 1
    closeIfDone(opened)
  }

  /** Ends what runs. */
  renew(): void {
    const { sql } = this.#opened
    this.#opened = { sql: this.open(this.role), running: 0, is_left: false }
    sql.close({ timeout: 0 }).catch(() => {})
  }

  /**
   * Queries that begin from now on have the role; those under way go on as they were. `onTaken`: called at that moment, before
   * anything else can begin. Returns false, and changes nothing, where the new connections are not what `judge` wants. Changes
   * nothing either when they cannot be judged, and throws.
   */
  async take(role: string, judge: (sql: SQL) => Promise<boolean>, onTaken: () => void): Promise<boolean> {
    const sql = this.open(role)
    let is_wanted = false
    try {
      is_wanted = await judge(sql)
    } finally {
      if (!is_wanted) sql.close({ timeout: 0 }).catch(() => {})
    }
    if (!is_wanted) return false
    const left = this.#opened
    this.role = role
    this.#opened = { sql, running: 0, is_left: false }
    onTaken()
    left.is_left = true
    closeIfDone(left)
    return true
  }

  close(timeout: number): Promise<void> {
    return this.#opened.sql.close({ timeout })
  }
}

function closeIfDone({ sql, running, is_left }: Opened): void {
  if (is_left && running === 0) sql.close({ timeout: 0 }).catch(() => {})
}
