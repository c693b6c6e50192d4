// A bounded memory of what was looked up and never changes.

export class Remembered<Value> {
  /** The least recently used first. */
  readonly #values = new Map<string, Value>()

  constructor(private readonly entries_max: number) {}

  get size(): number {
    return this.#values.size
  }

  get(key: string): Value | undefined {
    const value = this.#values.get(key)
    if (value !== undefined) this.#putLast(key, value)
    return value
  }

  /** Returns the value that is forgotten for it; undefined for none. */
  put(key: string, value: Value): Value | undefined {
    this.#putLast(key, value)
    if (this.#values.size <= this.entries_max) return undefined
    const [oldest, forgotten] = this.#values.entries().next().value!
    this.#values.delete(oldest)
    return forgotten
  }

  forget(key: string): void {
    this.#values.delete(key)
  }

  #putLast(key: string, value: Value): void {
    this.#values.delete(key)
    this.#values.set(key, value)
  }
}
