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

  put(key: string, value: Value): void {
    this.#putLast(key, value)
    if (this.#values.size > this.entries_max) this.#values.delete(this.#values.keys().next().value!)
  }

  #putLast(key: string, value: Value): void {
    this.#values.delete(key)
    this.#values.set(key, value)
  }
}
