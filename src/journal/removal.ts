// Removes old events in the background: in bounded turns, which follow each other at once while there are more.

import { limit } from '../base/limit.ts'
import { Repeat } from '../base/repeat.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Follows } from '../contract/feature.ts'
import type { Db } from '../db/db.ts'
import { removeOld } from './retention.ts'

const every_ms = limit(
  'journal.old_interval',
  500,
  'milliseconds',
  'How often a node continues to remove old events while there are more. It looks for them a tenth as often.',
)
/** Turns between two looks while nothing is left over. */
const turns_a_look = 10

const old_steps_a_turn_max = limit(
  'journal.old_steps_a_turn',
  20,
  'entries',
  'Steps in which one turn or one tick removes old events. The next one continues.',
)

export interface RemovalOptions {
  db: Db
  follows: readonly Follows[]
  /** True while nothing may be removed: the database is a restored copy that the operator has not released. */
  held: () => boolean
  onError: (error: unknown) => void
}

export class Removal {
  readonly #repeat = new Repeat(every_ms, () => this.#runAlone())
  #turns = 0
  /** There are more old events than the last turn could remove. */
  #has_more = false
  #is_stopped = false
  #dependencies: Pick<Dependencies, 'plans'> | null = null

  constructor(private readonly options: RemovalOptions) {}

  /** Before the first turn. */
  connect(dependencies: Pick<Dependencies, 'plans'>): void {
    this.#dependencies = dependencies
  }

  /** For TICK=internal. */
  start(): void {
    this.#repeat.start(this.options.onError)
  }

  /** One step, and others while there are more old events and it goes on. None while it is held. */
  async turn(goesOn: () => boolean): Promise<void> {
    for (let step = 1; !this.options.held(); step++) {
      await this.#removeOld()
      if (!this.#has_more || step >= old_steps_a_turn_max || this.#is_stopped || !goesOn()) return
    }
  }

  async #runAlone(): Promise<void> {
    if (this.#is_stopped) return
    const looks = this.#turns++ % turns_a_look === 0
    if (looks || this.#has_more) await this.turn(() => true)
  }

  async #removeOld(): Promise<void> {
    const { db, follows, onError } = this.options
    this.#has_more = false
    try {
      this.#has_more = (await removeOld({ db, plans: this.#dependencies!.plans, follows, onError })).more
    } catch (error) {
      onError(error)
    }
  }

  /** Nothing more begins; resolves when no step of `start` is under way. */
  async stop(): Promise<void> {
    this.#is_stopped = true
    await this.#repeat.stop()
  }
}
