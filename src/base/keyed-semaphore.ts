// Keeps one busy key from taking a node's time from the others: while other keys are in use, a few operations of one
// key run at once and the others wait in order.

import type { Clock } from './clock.ts'
import { limit } from './limit.ts'

/** Operations of one key at once while others are in use. On PostgreSQL each holds a connection of the pool. */
const running_max = limit(
  'semaphore.running',
  4,
  'requests',
  'Writes of one busy row that run at once while others are written. On PostgreSQL each holds a connection of the pool.',
)
/** Another key counts as in use for this long after its last operation. */
const mixed_ms = 100

interface Line {
  running: number
  waiting: (() => void)[]
}

export class KeyedSemaphore {
  readonly #lines = new Map<string, Line>()
  #last_key = ''
  #mixed_until = Number.NEGATIVE_INFINITY

  constructor(private readonly clock: Clock) {}

  /** Runs the work at once, or when it is its turn. In the order of the calls for its key. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (key !== this.#last_key) {
      this.#last_key = key
      this.#mixed_until = this.clock.monotonic() + mixed_ms
    }
    const line: Line = this.#lines.get(key) ?? { running: 0, waiting: [] }
    if (line.running === 0) this.#lines.set(key, line)
    const full = line.running >= running_max && this.#isMixed()
    if (full || line.waiting.length > 0) await new Promise<void>((resolve) => line.waiting.push(resolve))
    else line.running += 1
    try {
      return await work()
    } finally {
      line.running -= 1
      this.#letIn(key, line)
    }
  }

  #isMixed(): boolean {
    return this.clock.monotonic() < this.#mixed_until
  }

  /** Operations that were let in count from now on, though they continue only in a moment. */
  #letIn(key: string, line: Line): void {
    if (line.waiting.length === 0) {
      if (line.running === 0) this.#lines.delete(key)
      return
    }
    const room = this.#isMixed() ? Math.max(0, running_max - line.running) : line.waiting.length
    const let_in = line.waiting.splice(0, room)
    line.running += let_in.length
    for (const go of let_in) go()
    if (line.running === 0) this.#lines.delete(key)
  }
}
