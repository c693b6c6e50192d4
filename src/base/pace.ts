// Spreads work over turns of the event loop: between two turns everybody else is served, and it shows which clients
// are still there.

export class Pace {
  #waiting: (() => void)[] = []
  #is_set = false

  /** `pieces_max` pieces of work begin in one turn; the others wait. */
  constructor(private readonly pieces_max: number) {}

  /** Resolves in a later turn of the event loop, in the order of the calls. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#set()
    })
  }

  #set(): void {
    if (this.#is_set) return
    this.#is_set = true
    setImmediate(() => {
      this.#is_set = false
      for (const begin of this.#waiting.splice(0, this.pieces_max)) begin()
      if (this.#waiting.length > 0) this.#set()
    })
  }
}
