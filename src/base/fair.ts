// Shares a fixed number of permits out between keys: of the keys that wait, the one that holds fewest is next. Every second
// permit goes to an urgent key that holds none, if one waits.

import type { Clock } from './clock.ts'
import { FairRows, Place } from './fair-rows.ts'

export interface FairLimits {
  /** Permits that are out at once. */
  running_max: number
  /** Permits of these that are kept for keys that hold none, so that a new key does not wait for another's work. */
  reserve: number
  /** Permits that may be out at once for one row of one key. */
  row_running_max: number
  /** Places that wait at once. */
  waiting_max: number
  /** Places beyond these for those that are patient. */
  patient_waiting_max: number
  /** How long the first of a key may have waited for a permit while others of it may wait behind it. */
  wait_ms_max: number
  /** How long a key that holds no permit may have waited for one while places of any key may begin to wait. */
  late_ms_max: number
}

/** One long pause of the process is not taken for a long wait: a permit that is late is still late after this. Milliseconds. */
const confirmed_ms = 100

interface Line {
  running: number
  /** Places of this key that wait, those that wait for a row included. */
  waiting: number
  /** Places that wait for a permit alone, in order. */
  ready: Set<Place>
  /** The number of the last permit that it got; at first just before the last that any key got. */
  served: number
  urgent: boolean
}

export class FairQueue {
  /** Keys with a permit or a place. */
  readonly #lines = new Map<string, Line>()
  readonly #rows: FairRows
  /** Places that wait, by group; a group without any is absent. */
  readonly #waiting_of_group = new Map<string, number>()
  #running = 0
  #waiting = 0
  #served = 0
  /** The last permit went to an urgent key before its turn. */
  #was_urgent = false

  constructor(
    private readonly limits: FairLimits,
    private readonly clock: Clock,
  ) {
    this.#rows = new FairRows(limits.row_running_max)
  }

  /**
   * A place for this key. `row` names what all its holders change, one after the other. Null when too many wait: a key
   * may have as many waiting as there is room left for, and a row half as many, so one alone never takes all of it.
   * The keys of a `group`, which a stranger may make up, have three times as many together. Null also when the first of
   * the key has waited so long for a permit that it would take too long, and when all permits are late, unless it is
   * `patient`: then it also finds room when the others have none.
   */
  enter(key: string, row?: string, group?: string, patient = false, urgent = false): Place | null {
    const line = this.#lines.get(key) ?? this.#newLine(urgent)
    const place = new Place(key, row === undefined ? null : `${key} ${row}`, group ?? null, patient)
    const row_is_free = this.#rows.isFree(place)
    if (row_is_free && line.ready.size === 0 && this.#mayStart(line)) {
      this.#lines.set(key, line)
      this.#rows.acquire(place)
      this.#start(line, place)
      return place
    }
    const { waiting_max, patient_waiting_max } = this.limits
    const room = waiting_max + (patient ? patient_waiting_max : 0) - this.#waiting
    if (
      line.waiting >= room ||
      (!patient && (this.#hasWaited(line, this.limits.wait_ms_max) || this.isLate()))
    )
      return null
    if (group !== undefined && (this.#waiting_of_group.get(group) ?? 0) >= 3 * room) return null
    if (!row_is_free && this.#rows.waitingFor(place).size >= room / 2) return null
    this.#lines.set(key, line)
    this.#countWaiting(line, place, 1)
    place.turn = new Promise((resolve) => {
      place.go = resolve
    })
    if (row_is_free) {
      this.#rows.acquire(place)
      this.#ready(line, place)
    } else this.#rows.waitingFor(place).add(place)
    return place
  }

  /** Permits that are out, those that are not, and places that wait. */
  get counts(): { running: number; free: number; waiting: number } {
    const running = this.#running
    return { running, free: this.limits.running_max - running, waiting: this.#waiting }
  }

  /** True when a place waits that a permit would go to if one that is out were released. */
  get hasReady(): boolean {
    if (this.#waiting === 0) return false
    for (const line of this.#lines.values())
      if (line.ready.size > 0 && this.#mayStart(line, this.#running - 1)) return true
    return false
  }

  /** Releases the permit, or ends the wait. Called once for each place. */
  leave(place: Place): void {
    const line = this.#lines.get(place.key)!
    if (place.running) {
      line.running -= 1
      this.#running -= 1
      this.#releaseRow(place)
    } else {
      this.#countWaiting(line, place, -1)
      if (line.ready.delete(place)) this.#releaseRow(place)
      else this.#rows.waitingFor(place).delete(place)
    }
    if (line.running === 0 && line.waiting === 0) this.#lines.delete(place.key)
    this.#startNext()
  }

  /** The next of this row waits for a permit alone from now on. */
  #releaseRow(place: Place): void {
    const next = this.#rows.release(place)
    if (next) this.#ready(this.#lines.get(next.key)!, next)
  }

  #ready(line: Line, place: Place): void {
    place.ready_since = this.clock.monotonic()
    line.ready.add(place)
  }

  /**
   * True when all permits are late: a key that holds none has waited for one for too long. A key that holds some may have
   * to wait for its own, and so may those of a group, which share what a stranger may have, and what is patient.
   */
  isLate(): boolean {
    if (this.#waiting === 0) return false
    for (const line of this.#lines.values())
      if (line.running === 0 && !hasToWait(line) && this.#hasWaited(line, this.limits.late_ms_max))
        return true
    return false
  }

  /** True when the first of this line has waited for a permit for longer than this, and did so at an earlier look as well. */
  #hasWaited({ ready }: Line, ms_max: number): boolean {
    if (ready.size === 0) return false
    const first = ready.values().next().value!
    const now = this.clock.monotonic()
    if (now - first.ready_since <= ms_max) return false
    first.seen_late_at ??= now
    return now - first.seen_late_at >= confirmed_ms
  }

  #countWaiting(line: Line, { group }: Place, by: 1 | -1): void {
    line.waiting += by
    this.#waiting += by
    if (group === null) return
    const waiting = (this.#waiting_of_group.get(group) ?? 0) + by
    if (waiting === 0) this.#waiting_of_group.delete(group)
    else this.#waiting_of_group.set(group, waiting)
  }

  /** Behind the keys that have waited since an earlier permit, so that a key that returns often overtakes none. */
  #newLine(urgent: boolean): Line {
    return { running: 0, waiting: 0, ready: new Set(), served: this.#served - 0.5, urgent }
  }

  #mayStart(line: Line, running = this.#running): boolean {
    const { running_max, reserve } = this.limits
    return running < (line.running === 0 ? running_max : running_max - reserve)
  }

  #start(line: Line, place: Place): void {
    line.running += 1
    this.#running += 1
    this.#served += 1
    line.served = this.#served
    place.running = true
  }

  #startNext(): void {
    while (this.#waiting > 0) {
      const line = this.#nextLine()
      if (line === null) return
      const place = line.ready.values().next().value!
      line.ready.delete(place)
      this.#countWaiting(line, place, -1)
      this.#start(line, place)
      place.go()
    }
  }

  #nextLine(): Line | null {
    let next: Line | null = null
    let urgent: Line | null = null
    for (const line of this.#lines.values()) {
      if (line.ready.size === 0 || !this.#mayStart(line)) continue
      if (line.urgent && line.running === 0)
        urgent = urgent === null || isBefore(line, urgent) ? line : urgent
      else if (next === null || isBefore(line, next)) next = line
    }
    if (urgent === null && next === null) return null
    this.#was_urgent = urgent !== null && (next === null || !this.#was_urgent)
    return this.#was_urgent ? urgent : next
  }
}

/** True for the key with fewer permits, or with as many and an earlier last one. */
function isBefore(one: Line, other: Line): boolean {
  return one.running < other.running || (one.running === other.running && one.served < other.served)
}

function hasToWait({ ready }: Line): boolean {
  const first = ready.values().next().value
  return first === undefined || first.group !== null || first.is_patient
}
