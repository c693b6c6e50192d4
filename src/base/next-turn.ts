// Work for the next turn of the event loop.

/** Runs once in the next turn, however often it is asked for until then. */
export class NextTurn {
  #is_set = false

  constructor(private readonly run: () => void) {}

  set(): void {
    if (this.#is_set) return
    this.#is_set = true
    setImmediate(() => {
      this.#is_set = false
      this.run()
    })
  }
}

/** Resolves in the next turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
