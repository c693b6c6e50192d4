// Requests that wait for something to change. Who changes it says so once that is durable; on a database that
// other nodes share, who waits also looks again now and then.

export class Waiters {
  readonly #waiting = new Map<string, Set<() => void>>()
  #draining = false

  /** Resolves when `key` is told of, when `ms` have passed, or when the node drains. */
  wait(key: string, ms: number): Promise<void> {
    if (this.#draining) return Promise.resolve()
    return new Promise((resolve) => {
      const all = this.#waiting.get(key) ?? new Set()
      const done = () => {
        clearTimeout(timer)
        all.delete(done)
        if (all.size === 0) this.#waiting.delete(key)
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#waiting.set(key, all.add(done))
    })
  }

  tell(key: string): void {
    for (const done of [...(this.#waiting.get(key) ?? [])]) done()
  }

  get draining(): boolean {
    return this.#draining
  }

  /** Lets everybody go, now and from now on. */
  drain(): void {
    this.#draining = true
    for (const key of [...this.#waiting.keys()]) this.tell(key)
  }
}
