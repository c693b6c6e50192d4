// Places that keys acquire and leave: one key may have so many at once, and all together so many.

export class Places {
  readonly #of_key = new Map<string, number>()
  #all = 0

  constructor(private readonly all_max = Number.POSITIVE_INFINITY) {}

  /** Of all keys. */
  get all(): number {
    return this.#all
  }

  /** Keys that have one at the moment. For tests. */
  get keys(): number {
    return this.#of_key.size
  }

  /** Acquires one until `leave`; false when this key, or all together, have as many as they may have. */
  enter(key: string, of_key_max: number): boolean {
    const of_key = this.#of_key.get(key) ?? 0
    if (this.#all >= this.all_max || of_key >= of_key_max) return false
    this.#of_key.set(key, of_key + 1)
    this.#all += 1
    return true
  }

  leave(key: string): void {
    this.#all -= 1
    const left = this.#of_key.get(key)! - 1
    if (left === 0) this.#of_key.delete(key)
    else this.#of_key.set(key, left)
  }
}
