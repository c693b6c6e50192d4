// Steps of a sweep over the rows of several tenants, which may lie on several servers. A tenant of whom a step fails waits, and
// keeps no other from its turn.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Backoff } from './backoff.ts'
import { type Awaitable, type Db, type Tx, upkeep } from './db.ts'

const failed_pause_ms = limit(
  'sweep.failed_pause',
  5_000,
  'milliseconds',
  'How long a sweep skips a tenant for which it has failed, or four times as long as the failure took; half a second for what leaves an event. Others have their turns meanwhile.',
)
/** Of a tenant: a statement that ends by its time-out each time must not take all of the sweep's. */
const tenant_pauses_per_attempt = 4

/** `due` rows of a tenant among the first of a list, the last of them since `until`. */
export interface Due {
  tenant_id: string
  due: number
  until: Millis
}

export interface Touched {
  touched: number
  /** Another step would find more. */
  more: boolean
}

const first_of_all: Millis = 0

/** A list of due rows of all tenants, those first that have been due for longest. */
class DueList {
  /** The next step begins with what fell due then: behind rows of tenants that failed, which would fill it otherwise. */
  #from = first_of_all
  /** Before that, rows of others were left. */
  #left = false

  constructor(readonly backoff: Backoff) {}

  /**
   * One step. `list` reads the first `rows_max` rows that are due since a time, `work` returns how many of a tenant's it has
   * touched. `together`: the same of several tenants; each has a turn of its own only where that fails. The first failure is
   * reported: the others have its cause, more often than not.
   */
  async each<Row extends Due>(
    list: (from: Millis) => Awaitable<Row[]>,
    rows_max: number,
    work: (row: Row) => Promise<number>,
    together?: (rows: Row[]) => Promise<number>,
  ): Promise<Touched> {
    const found = await list(this.#from)
    const rows = found.filter(({ tenant_id }) => !this.backoff.isWaiting(tenant_id))
    const all = rows.length > 1 ? await together?.(rows).catch(() => undefined) : undefined
    let touched = all ?? 0
    let passes = rows.length < found.length
    let failed = false
    const onError = (error: unknown) => {
      if (!failed) this.backoff.onError(error)
      failed = true
    }
    for (const row of all === undefined ? rows : []) {
      const done = await this.backoff.take(row.tenant_id, () => work(row), onError)
      passes ||= done === null
      touched += done ?? 0
      this.#left ||= done !== null && done < row.due
    }
    const is_full = found.reduce((sum, { due }) => sum + due, 0) >= rows_max
    const more = is_full || this.#left
    this.#goOn(is_full, passes, found)
    return { touched, more }
  }

  /** At the end of the list it begins again. */
  #goOn(is_full: boolean, passes: boolean, found: readonly Due[]): void {
    const last = Math.max(...found.map(({ until }) => until))
    if (is_full && passes) this.#from = Math.max(last, this.#from + 1)
    if (is_full) return
    this.#from = first_of_all
    this.#left = false
  }
}

/** The lists of a node by name. */
export class DueLists {
  /** Of whole sweeps. */
  readonly sweeps: Backoff
  readonly #lists = new Map<string, DueList>()

  /** `onError`: it failed for a tenant. Absent: the step fails with it. `onSweepError`: a whole sweep did; absent: the same. */
  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly onError: (error: unknown) => void = rethrow,
    onSweepError = onError,
    private readonly pause_ms = failed_pause_ms,
  ) {
    this.sweeps = new Backoff(clock, onSweepError, pause_ms)
  }

  of(name: string): DueList {
    return this.#lists.getOrInsertComputed(
      name,
      () => new DueList(new Backoff(this.clock, this.onError, this.pause_ms, tenant_pauses_per_attempt)),
    )
  }

  /** Those that failed need not wait any more. */
  resume(): void {
    for (const backoff of [this.sweeps, ...[...this.#lists.values()].map((list) => list.backoff)])
      backoff.resume()
  }
}

function rethrow(error: unknown): never {
  throw error
}

type Sweep = (tx: Tx, tenant_id: string, rows_max: number) => Awaitable<number>

/** One step that removes the rows of a list tenant by tenant, in one transaction unless that fails, at most `rows_max` of all. */
export function sweepTenants(
  db: Db,
  list: DueList,
  rows_max: number,
  due: (from: Millis) => Awaitable<Due[]>,
  sweep: Sweep,
): Promise<Touched> {
  const sweepAll = (tenants: readonly Due[]) =>
    db.write(upkeep, async (tx) => {
      let removed = 0
      for (const { tenant_id } of tenants) {
        if (removed >= rows_max) break
        removed += await sweep(tx, tenant_id, rows_max - removed)
      }
      return removed
    })
  return list.each(due, rows_max, (tenant) => sweepAll([tenant]), sweepAll)
}
