// A flush of the log, off the event loop, that returns when a test says so.

export class HeldFlush {
  /** While true a flush that begins waits. */
  held = false
  #waiting: PromiseWithResolvers<void>[] = []
  #begun: { count: number; resolve: () => void }[] = []
  /** Flushes that began since `hold`. */
  count = 0

  sync = { offLoop: () => this.#begin() }

  #begin(): Promise<void> {
    this.count += 1
    for (const { count, resolve } of this.#begun) if (this.count >= count) resolve()
    if (!this.held) return Promise.resolve()
    const flush = Promise.withResolvers<void>()
    this.#waiting.push(flush)
    return flush.promise
  }

  hold(): void {
    this.held = true
    this.count = 0
  }

  /** Resolves once this many have begun since `hold`. */
  begun(count: number): Promise<void> {
    if (this.count >= count) return Promise.resolve()
    return new Promise((resolve) => this.#begun.push({ count, resolve }))
  }

  /** The one that waits returns; the next waits again. */
  next(): void {
    for (const flush of this.#waiting.splice(0)) flush.resolve()
  }

  /** All return from now on. */
  release(): void {
    this.held = false
    this.next()
  }

  fail(error: Error): void {
    this.held = false
    for (const flush of this.#waiting.splice(0)) flush.reject(error)
  }
}
