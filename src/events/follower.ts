// A caller on its way through the journal of its tenant: it reads what is there and then waits for what comes.

import { Turns } from '../base/event-loop.ts'
import { limit } from '../base/limit.ts'
import type { Notifier } from '../base/notifier.ts'
import type { EventRow } from '../contract/event.ts'
import type { Tail } from '../contract/tail.ts'
import type { Tails } from '../contract/tails.ts'
import { isWanted, type Wants } from '../contract/wanted.ts'
import type { Reader } from '../db/db.ts'
import { pageOf } from './pages.ts'

const looks_max = limit(
  'events.looks',
  50,
  'attempts',
  'Pages that a waiting request reads before it answers with how far it got; the next request continues there.',
)

const looks_a_turn_max = limit(
  'events.looks_a_turn',
  4,
  'requests',
  'Requests that wait for events, have fallen behind and read in one turn of the event loop; the others wait for another.',
)
const turns = new Turns(looks_a_turn_max)
const recent_a_turn_max = limit(
  'events.recent_a_turn',
  16,
  'requests',
  'Requests that wait for events, and take from memory what has come, in one turn of the event loop; the others wait for another.',
)
const recent_turns = new Turns(recent_a_turn_max)

interface Followed {
  db: Reader
  tails: Tails
  notifier: Notifier
  tenant_id: string
  wants: Wants
}

export class Follower {
  #is_closed = false
  #is_woken = false
  #wake = () => {}

  /** It has entered the tail, which `close` leaves. */
  constructor(
    private readonly followed: Followed,
    private readonly tail: Tail,
    /** The number of the last event that was looked at. */
    public position: number,
  ) {}

  /** True when the node drains: nothing more is waited for. */
  get is_over(): boolean {
    return this.#is_closed || this.followed.notifier.draining
  }

  /**
   * The next events, oldest first and `rows_max` at most, once there is one. None when `ms` are over, when somebody
   * calls `wake`, when the follower is closed or the node drains, and after many looks that found none.
   */
  async next(rows_max: number, ms: number): Promise<EventRow[]> {
    this.#is_woken = false
    let is_over = ms <= 0
    const over = () => {
      is_over = true
      this.#wake()
    }
    const timer = is_over ? undefined : setTimeout(over, ms)
    try {
      for (let looks = 0; looks < looks_max && !this.#is_closed; ) {
        if (this.position < this.tail.position) {
          looks += 1
          const events = await this.#read(rows_max)
          if (events.length > 0) return events
        } else if (is_over || this.#is_woken || this.is_over) break
        else if (!(await this.#waits())) break
      }
      return []
    } finally {
      clearTimeout(timer)
    }
  }

  /** Events behind the position, from memory when they are still there. */
  async #read(rows_max: number): Promise<EventRow[]> {
    const { db, tenant_id, wants } = this.followed
    // One event may wake a thousand, and what comes meanwhile is taken along.
    if (this.tail.remembers(this.position)) await recent_turns.next(() => this.#is_closed)
    const recent = this.tail.since(this.position)
    if (recent) {
      const events = recent.filter((event) => isWanted(event, wants)).slice(0, rows_max)
      this.position = events.length === rows_max ? events.at(-1)!.seq : recent.at(-1)!.seq
      return events
    }
    await turns.next()
    const { position: known } = this.tail
    const { events, reached } = await pageOf(db, tenant_id, wants, { after: this.position, rows_max })
    this.position = reached ?? Math.max(known, events.at(-1)?.seq ?? 0)
    return events
  }

  /** True when an event came. */
  #waits(): Promise<boolean> {
    const { tail, position } = this
    return new Promise((resolve) => {
      const end = (came: boolean) => {
        tail.remove(waiter)
        this.#wake = () => {}
        resolve(came)
      }
      const waiter = {
        ...this.followed.wants,
        position,
        take: ({ seq }: EventRow) => {
          // Those before it came by and were not wanted.
          this.position = seq - 1
          end(true)
        },
        end: () => end(false),
      }
      this.#wake = () => {
        this.position = Math.max(position, tail.position)
        end(false)
      }
      tail.add(waiter)
    })
  }

  /** Ends a wait: `next` resolves. */
  wake(): void {
    this.#is_woken = true
    this.#wake()
  }

  close(): void {
    if (this.#is_closed) return
    this.#is_closed = true
    this.#wake()
    this.followed.tails.leave(this.tail)
  }
}
