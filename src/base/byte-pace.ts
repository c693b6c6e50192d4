// Spreads a burst of work over turns of the event loop, so that other requests are served in between.

interface Waiting {
  bytes: number
  go: () => void
}

export class BytePace {
  #waiting: Waiting[] = []
  #passed_bytes = 0
  #scheduled = false

  /** `nextTurn` calls its argument in a later turn of the event loop, after what has arrived was served. */
  constructor(
    private readonly turn_bytes_max: number,
    private readonly nextTurn: (run: () => void) => void = setImmediate,
  ) {}

  /** Resolves when work on this many bytes may begin: at once, or in a later turn, in the order of the calls. */
  pass(bytes: number): Promise<void> | undefined {
    this.#schedule()
    if (this.#waiting.length === 0 && this.#hasRoom(bytes)) {
      this.#passed_bytes += bytes
      return undefined
    }
    return new Promise((go) => this.#waiting.push({ bytes, go }))
  }

  /** A single piece of work may be larger than a turn. */
  #hasRoom(bytes: number): boolean {
    return this.#passed_bytes === 0 || this.#passed_bytes + bytes <= this.turn_bytes_max
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.nextTurn(() => {
      this.#scheduled = false
      this.#passed_bytes = 0
      const waiting = this.#waiting
      let released = 0
      while (released < waiting.length && this.#hasRoom(waiting[released]!.bytes)) {
        this.#passed_bytes += waiting[released]!.bytes
        waiting[released]!.go()
        released += 1
      }
      this.#waiting = waiting.slice(released)
      if (released > 0) this.#schedule()
    })
  }
}
