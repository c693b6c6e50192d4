// The connections of the PostgreSQL driver, which are opened again after a silence of the server, or to take a role.

import { SQL } from 'bun'
import { inTime } from '../base/in-time.ts'
import { answer_ms_max, type Settings } from './connection-settings.ts'
import { abandoned } from './postgres-queries.ts'
import { pooled_session, type Session } from './postgres-session.ts'
import { addressOf } from './postgres-url.ts'

const connect_timeout_seconds = 2

export interface PoolSettings {
  url: string
  connections_max: number
  /** Settings that are sent when a connection opens. */
  session: Session
}

/** How a pool stands: what runs on it, and whether another has taken its place. */
export interface Opened {
  readonly sql: SQL
  running: number
  is_left: boolean
}

export class Pool {
  #opened: Opened
  #kept: Session = {}
  readonly #aside = new Set<SQL>()

  constructor(
    private readonly settings: PoolSettings,
    private role: string | undefined,
  ) {
    this.#opened = { sql: this.#open(role), running: 0, is_left: false }
  }

  /** The connections take this role; without one they keep that of the login. */
  #open(role: string | undefined, max = this.settings.connections_max): SQL {
    const { url, session } = this.settings
    const connection = { ...session, ...this.#kept, ...(role === undefined ? {} : { role }) }
    return new SQL({
      ...addressOf(url),
      max,
      bigint: true,
      connectionTimeout: connect_timeout_seconds,
      connection,
    })
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
    this.#opened = { sql: this.#open(this.role), running: 0, is_left: false }
    sql.close({ timeout: 0 }).catch(() => {})
  }

  /**
   * Queries that begin from now on have the role; those under way go on as they were. `onTaken`: called at that moment, before
   * anything else can begin. Returns false, and changes nothing, where the new connections are not what `judge` wants. Changes
   * nothing either when they cannot be judged, and throws.
   */
  async take(role: string, judge: (sql: SQL) => Promise<boolean>, onTaken: () => void): Promise<boolean> {
    const sql = this.#open(role)
    let is_wanted = false
    try {
      is_wanted = await judge(sql)
    } finally {
      if (!is_wanted) sql.close({ timeout: 0 }).catch(() => {})
    }
    if (!is_wanted) return false
    this.role = role
    this.#leaveFor(sql, onTaken)
    return true
  }

  /**
   * Connections wait for the disk from now on as these settings say, also when another way is set for the server, the database or the
   * role while the service runs, or after a failover. A pooler does not pass that on.
   */
  keep({ synchronous_commit }: Settings): void {
    if (this.settings.session === pooled_session) return
    this.#kept = { synchronous_commit: String(synchronous_commit) }
    this.replace()
  }

  /** Queries that begin from now on have new connections; those under way go on as they were. */
  replace(): void {
    this.#leaveFor(this.#open(this.role))
  }

  #leaveFor(sql: SQL, onTaken = () => {}): void {
    const left = this.#opened
    this.#opened = { sql, running: 0, is_left: false }
    onTaken()
    left.is_left = true
    closeIfDone(left)
  }

  /**
   * Opens one more connection, asks one question on it and closes it. Returns the rows of its answer; throws when it gets none. Where
   * the connection is closed without a word, Bun.SQL itself opens it five times more, one after the other, within 2.3 s.
   */
  probe(question = 'select 1'): Promise<Record<string, unknown>[]> {
    return this.aside((sql) => answerOf(sql, question))
  }

  /** Opens one connection more for this work, and closes it. */
  async aside<T>(work: (sql: SQL) => Promise<T>): Promise<T> {
    const sql = this.#open(this.role, 1)
    this.#aside.add(sql)
    try {
      return await work(sql)
    } finally {
      this.#aside.delete(sql)
      sql.close({ timeout: 0 }).catch(() => {})
    }
  }

  /** Asks one question on any connection that is there. Throws when it gets no answer, and where none is and none can be opened. */
  ask(): Promise<unknown> {
    return answerOf(this.#opened.sql)
  }

  close(timeout: number): Promise<void> {
    for (const sql of this.#aside) sql.close({ timeout: 0 }).catch(() => {})
    return this.#opened.sql.close({ timeout })
  }
}

function closeIfDone({ sql, running, is_left }: Opened): void {
  if (is_left && running === 0) sql.close({ timeout: 0 }).catch(() => {})
}

function answerOf(sql: SQL, question = 'select 1'): Promise<Record<string, unknown>[]> {
  return inTime(sql.unsafe(question), answer_ms_max, abandoned)
}
