// Rows that several transactions change, one after the other: few of one row run at once, the others wait in order.

/** A permit, or the wait for one. */
export class Place {
  running = false
  /** Resolves when the permit is there; null when it was there at once. */
  turn: Promise<void> | null = null
  go: () => void = () => {}
  /** When it began to wait for a permit alone. */
  ready_since = 0
  /** When it was first seen to wait for too long. */
  seen_late_at: number | null = null

  constructor(
    readonly key: string,
    readonly row_name: string | null,
    readonly group: string | null,
    readonly is_patient: boolean,
  ) {}
}

interface Row {
  running: number
  waiting: Set<Place>
}

export class FairRows {
  readonly #rows = new Map<string, Row>()

  constructor(private readonly running_max: number) {}

  isFree({ row_name }: Place): boolean {
    if (row_name === null) return true
    const row = this.#rows.get(row_name)
    return row === undefined || (row.running < this.running_max && row.waiting.size === 0)
  }

  /** Those that wait for the row of this one, which is not free. */
  waitingFor({ row_name }: Place): Set<Place> {
    return this.#rows.get(row_name!)!.waiting
  }

  acquire({ row_name }: Place): void {
    if (row_name === null) return
    const row = this.#rows.get(row_name) ?? { running: 0, waiting: new Set() }
    row.running += 1
    this.#rows.set(row_name, row)
  }

  /** Returns the place that has the row instead, or null when none waits for it. */
  release({ row_name }: Place): Place | null {
    if (row_name === null) return null
    const row = this.#rows.get(row_name)!
    const next = row.waiting.values().next().value
    if (next) {
      row.waiting.delete(next)
      return next
    }
    row.running -= 1
    if (row.running === 0) this.#rows.delete(row_name)
    return null
  }
}
