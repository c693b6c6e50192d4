// The states of a SQLite file that readers see. A commit that is not on the disk yet is shown to nobody: from the commit
// to the end of its flush, readers work on a snapshot that was taken before it. The snapshot that follows is taken when
// a flush begins, right behind the last commit that it covers, and becomes the current one when the flush has returned.
// A flush in the event loop needs none: nobody reads between the commit and its end.

import type { SnapshotConnection } from './sqlite-connection.ts'

export class Snapshots {
  #current: SnapshotConnection
  /** Taken, and not yet shown. */
  #next: SnapshotConnection | null = null
  #free: SnapshotConnection[] = []
  readonly #all: SnapshotConnection[] = []

  /** `open` opens one more connection to the file. `mayOpen`: false once it would be another file. */
  constructor(
    private readonly open: () => SnapshotConnection,
    private readonly mayOpen: () => boolean,
  ) {
    this.#current = this.#opened()
    this.#free.push(this.#opened())
  }

  #opened(): SnapshotConnection {
    const connection = this.open()
    this.#all.push(connection)
    return connection
  }

  get all(): readonly SnapshotConnection[] {
    return this.#all
  }

  /** For single statements, and for several within one turn of the event loop. */
  get current(): SnapshotConnection {
    return this.#current
  }

  /** Before a commit: what is shown stays as it is until `show`. */
  keep(): void {
    this.#current.keep()
  }

  /**
   * Takes a snapshot of the last commit, to be shown later. A connection on which a read is under way keeps the state of that
   * read. Where no connection may be opened there is none, and what is shown stays until the reads that are under way have ended.
   */
  take(): void {
    const at = this.#free.findIndex((connection) => !connection.held)
    if (at === -1 && !this.mayOpen()) return
    this.#next = at === -1 ? this.#opened() : this.#free.splice(at, 1)[0]!
    this.#next.keep()
  }

  /** Shows the snapshot that was taken, without one the last commit. `kept`: a later commit is not on the disk yet. */
  show(kept: boolean): void {
    if (!this.#next && this.#current.held) this.take()
    if (this.#next) {
      const before = this.#current
      this.#current = this.#next
      this.#next = null
      before.release()
      this.#free.push(before)
    }
    if (!kept) this.#current.release()
  }

  /** The last commit may be lost: what is kept is still shown, and nothing later. */
  stop(reason: Error): void {
    for (const connection of this.#all) connection.stop(reason)
  }

  /** Releases what no read is in the middle of, so that the log can be begun again. No commit may wait for its flush. */
  release(): void {
    this.#current.release()
  }

  /** As `release`; then waits for the reads that are under way, for a time. Those that begin meanwhile see the last commit. */
  async settle(ms_max: number): Promise<void> {
    this.release()
    if (this.#current.held) this.show(false)
    const held = this.#all.filter((connection) => connection.held)
    if (held.length > 0) await Promise.race([Promise.all(held.map((each) => each.idle())), Bun.sleep(ms_max)])
  }

  /** Once the reads that are under way have ended. */
  async close(): Promise<void> {
    for (const connection of this.#all) {
      await connection.idle()
      connection.release()
      connection.close()
    }
  }
}
