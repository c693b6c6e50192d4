// Plain numbers that the code raises as it runs. They are read when metrics are collected, and nobody reads them before.

/** How many values were at most each bound, and their sum. */
export class Histogram {
  /** Of each bound: values at most as large as it, and larger than the bound before it. */
  readonly counts: number[]
  sum = 0
  count = 0

  constructor(readonly bounds: readonly number[]) {
    this.counts = bounds.map(() => 0)
  }

  observe(value: number): void {
    const { bounds, counts } = this
    this.sum += value
    this.count += 1
    for (let i = 0; i < bounds.length; i++) {
      if (value > bounds[i]!) continue
      counts[i]! += 1
      return
    }
  }
}

export class Counter {
  value = 0

  add(by = 1): void {
    this.value += by
  }
}

/** One of these numbers for each combination of labels. What a tenant may choose is never a label. */
export class Family<Measure> {
  readonly #members = new Map<string, { labels: readonly string[]; measure: Measure }>()

  constructor(private readonly make: () => Measure) {}

  of(...labels: readonly string[]): Measure {
    const key = labels.join('\0')
    const known = this.#members.get(key)
    if (known) return known.measure
    const measure = this.make()
    this.#members.set(key, { labels, measure })
    return measure
  }

  get members(): Iterable<{ labels: readonly string[]; measure: Measure }> {
    return this.#members.values()
  }
}
