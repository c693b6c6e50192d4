// The part of PromQL that the alert rules use, as Prometheus evaluates it: a word that is not known here throws. That it agrees with
// promtool is tested on the unit tests of the rules, which both run.

export interface Series {
  name: string
  labels: Readonly<Record<string, string>>
  /** Oldest first, by seconds; null where the series has ended. */
  points: { at: number; value: number | null }[]
}

interface Sample {
  labels: Readonly<Record<string, string>>
  value: number
}

type Value = number | readonly Sample[]
type Evaluate<Result> = (stored: readonly Series[], at: number) => Result
type Scalar = (left: number, right: number) => number

/** Prometheus takes a sample for as long as this for the present one. */
const lookback_seconds = 300
const duration_seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

const arithmetic: Readonly<Record<string, Scalar>> = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  '/': (left, right) => left / right,
}
const comparison: Readonly<Record<string, (left: number, right: number) => boolean>> = {
  '==': (left, right) => left === right,
  '!=': (left, right) => left !== right,
  '>': (left, right) => left > right,
  '<': (left, right) => left < right,
  '>=': (left, right) => left >= right,
  '<=': (left, right) => left <= right,
}
const matching: Readonly<Record<string, (value: string, wanted: string) => boolean>> = {
  '=': (value, wanted) => value === wanted,
  '!=': (value, wanted) => value !== wanted,
  '=~': (value, wanted) => new RegExp(`^(?:${wanted})$`).test(value),
  '!~': (value, wanted) => !new RegExp(`^(?:${wanted})$`).test(value),
}

/** The samples of an expression at a time: of a rule, those for which it is pending or fires. */
export function evaluate(expression: string, stored: readonly Series[], at: number): readonly Sample[] {
  const value = new Parser(expression).whole()(stored, at)
  if (typeof value === 'number') throw new Error(`not a vector: ${expression}`)
  return value
}

class Parser {
  readonly #tokens: string[]
  #next = 0

  constructor(private readonly text: string) {
    const token = /\s*(\d+[smhd]\b|\d+(?:\.\d+)?|[A-Za-z_:][\w:]*|"[^"]*"|[=!]~|[=!<>]=|[-+*/()[\]{},<>=])/y
    this.#tokens = []
    while (token.lastIndex < text.trimEnd().length) {
      const found = token.exec(text)
      if (!found) throw new Error(`not understood: ${text}`)
      this.#tokens.push(found[1]!)
    }
  }

  whole(): Evaluate<Value> {
    const evaluates = this.#or()
    if (this.#peek() !== undefined) throw this.#unknown()
    return evaluates
  }

  #peek(): string | undefined {
    return this.#tokens[this.#next]
  }

  #unknown(): Error {
    return new Error(`not understood at ${this.#peek() ?? 'its end'}: ${this.text}`)
  }

  #take(expected?: string): string {
    const token = this.#peek()
    if (token === undefined || (expected !== undefined && token !== expected)) throw this.#unknown()
    this.#next += 1
    return token
  }

  #takes(token: string): boolean {
    if (this.#peek() !== token) return false
    this.#next += 1
    return true
  }

  #or(): Evaluate<Value> {
    let left = this.#unless()
    while (this.#takes('or')) {
      const [one, other] = [left, this.#unless()]
      left = (stored, at) => {
        const [first, second] = [vector(one(stored, at)), vector(other(stored, at))]
        const taken = new Set(first.map(({ labels }) => keyOf(labels)))
        return [...first, ...second.filter(({ labels }) => !taken.has(keyOf(labels)))]
      }
    }
    return left
  }

  #unless(): Evaluate<Value> {
    let left = this.#compared()
    while (this.#takes('unless')) {
      this.#take('on')
      const names = this.#names()
      const [one, other] = [left, this.#compared()]
      left = (stored, at) => {
        const hidden = new Set(vector(other(stored, at)).map(({ labels }) => keyOf(onlyThese(labels, names))))
        return vector(one(stored, at)).filter(({ labels }) => !hidden.has(keyOf(onlyThese(labels, names))))
      }
    }
    return left
  }

  #compared(): Evaluate<Value> {
    const left = this.#joined(['+', '-'], () => this.#joined(['*', '/'], () => this.#primary()))
    const holds = comparison[this.#peek() ?? '']
    if (!holds) return left
    this.#next += 1
    const right = this.#joined(['+', '-'], () => this.#joined(['*', '/'], () => this.#primary()))
    return (stored, at) =>
      paired(left(stored, at), right(stored, at), (kept, one, other) => (holds(one, other) ? kept : null))
  }

  #joined(operators: readonly string[], part: () => Evaluate<Value>): Evaluate<Value> {
    let left = part()
    while (operators.includes(this.#peek() ?? '')) {
      const compute = arithmetic[this.#take()]!
      const [one, other] = [left, part()]
      left = (stored, at) => {
        const [a, b] = [one(stored, at), other(stored, at)]
        if (typeof a === 'number' && typeof b === 'number') return compute(a, b)
        return paired(a, b, (_, x, y) => compute(x, y))
      }
    }
    return left
  }

  #primary(): Evaluate<Value> {
    if (this.#takes('(')) {
      const inner = this.#or()
      this.#take(')')
      return inner
    }
    const word = this.#take()
    if (/^\d/.test(word)) return () => Number(word)
    if (!/^[A-Za-z_]/.test(word)) throw this.#unknown()
    if (word === 'sum') return this.#sum()
    if (this.#takes('(')) return this.#call(word)
    const select = this.#selector(word)
    return (stored, at) => select(stored).flatMap((series) => sampleAt(series, at))
  }

  #sum(): Evaluate<Value> {
    this.#take('by')
    const names = this.#names()
    this.#take('(')
    const inner = this.#or()
    this.#take(')')
    return (stored, at) => {
      const groups = Map.groupBy(vector(inner(stored, at)), ({ labels }) => keyOf(onlyThese(labels, names)))
      return [...groups.values()].map((group) => ({
        labels: onlyThese(group[0]!.labels, names),
        value: group.reduce((sum, { value }) => sum + value, 0),
      }))
    }
  }

  #call(name: string): Evaluate<Value> {
    if (name === 'time') {
      this.#take(')')
      return (_, at) => at
    }
    if (name === 'histogram_quantile') {
      const quantile = Number(this.#take())
      this.#take(',')
      const inner = this.#or()
      this.#take(')')
      return (stored, at) => quantiles(quantile, vector(inner(stored, at)))
    }
    const over = overRange[name]
    if (!over) throw this.#unknown()
    const select = this.#selector(this.#take())
    this.#take('[')
    const seconds = secondsOf(this.#take())
    this.#take(']')
    const argument = this.#takes(',') ? Number(this.#take()) : 0
    this.#take(')')
    return (stored, at) =>
      select(stored).flatMap(({ labels, points }) => {
        const within = points.filter(
          (point) => point.at > at - seconds && point.at <= at && point.value !== null,
        )
        const value = over({ points: within as Point[], seconds, at, argument })
        return value === null ? [] : [{ labels, value }]
      })
  }

  #selector(name: string): (stored: readonly Series[]) => readonly Series[] {
    const matchers: ((labels: Series['labels']) => boolean)[] = []
    if (this.#takes('{')) {
      while (!this.#takes('}')) {
        const label = this.#take()
        const matches = matching[this.#take()]
        if (!matches) throw this.#unknown()
        const wanted = this.#take().slice(1, -1)
        matchers.push((labels) => matches(labels[label] ?? '', wanted))
        this.#takes(',')
      }
    }
    return (stored) =>
      stored.filter((series) => series.name === name && matchers.every((matches) => matches(series.labels)))
  }

  #names(): string[] {
    const names: string[] = []
    this.#take('(')
    while (!this.#takes(')')) {
      names.push(this.#take())
      this.#takes(',')
    }
    return names
  }
}

interface Point {
  at: number
  value: number
}

interface Range {
  points: readonly Point[]
  seconds: number
  at: number
  argument: number
}

const overRange: Readonly<Record<string, (range: Range) => number | null>> = {
  increase: grown,
  rate: (range) => {
    const by = grown(range)
    return by === null ? null : by / range.seconds
  },
  min_over_time: ({ points }) => (points.length === 0 ? null : Math.min(...points.map(({ value }) => value))),
  predict_linear: predicted,
}

/** A counter's growth, carried on to the ends of the range: `extrapolatedRate` of Prometheus. */
function grown({ points, seconds, at }: Range): number | null {
  const [first, last] = [points[0], points.at(-1)]
  if (!first || !last || points.length < 2) return null
  const resets = points.slice(1).map(({ value }, i) => (value < points[i]!.value ? points[i]!.value : 0))
  const by = last.value - first.value + resets.reduce((sum, reset) => sum + reset, 0)
  const sampled = last.at - first.at
  const between = sampled / (points.length - 1)
  const limited = (gap: number) => (gap < between * 1.1 ? gap : between / 2)
  const to_start = first.at - (at - seconds)
  const to_zero = by > 0 ? sampled * (first.value / by) : Number.POSITIVE_INFINITY
  const extended = sampled + limited(Math.min(to_start, to_zero)) + limited(at - last.at)
  return by * (extended / sampled)
}

/** The straight line of least squares through the points, at `argument` seconds from now. */
function predicted({ points, at, argument }: Range): number | null {
  if (points.length < 2) return null
  const mean = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  const x = mean(points.map((point) => point.at - at))
  const y = mean(points.map(({ value }) => value))
  const covariance = mean(points.map((point) => (point.at - at - x) * (point.value - y)))
  const variance = mean(points.map((point) => (point.at - at - x) ** 2))
  const slope = covariance / variance
  return y - slope * x + slope * argument
}

/** `histogram_quantile` of Prometheus: a straight line within the bucket. */
function quantiles(quantile: number, samples: readonly Sample[]): readonly Sample[] {
  const groups = Map.groupBy(samples, ({ labels }) => keyOf(without(labels, 'le')))
  return [...groups.values()].map((group) => ({
    labels: without(group[0]!.labels, 'le'),
    value: quantileOf(
      quantile,
      group
        .map(({ labels, value }) => ({ bound: boundOf(labels.le), count: value }))
        .toSorted((one, other) => one.bound - other.bound),
    ),
  }))
}

function quantileOf(quantile: number, buckets: readonly { bound: number; count: number }[]): number {
  const total = buckets.at(-1)
  if (!total || total.bound !== Number.POSITIVE_INFINITY || total.count === 0) return Number.NaN
  const rank = quantile * total.count
  const i = buckets.findIndex(({ count }) => count >= rank)
  if (i === buckets.length - 1) return buckets.at(-2)?.bound ?? Number.NaN
  const before = buckets[i - 1] ?? { bound: 0, count: 0 }
  const { bound, count } = buckets[i]!
  return before.bound + (bound - before.bound) * ((rank - before.count) / (count - before.count))
}

/** Each sample of one side with its like of the other; a number meets each. What is kept of a comparison is the left vector's. */
function paired(
  left: Value,
  right: Value,
  join: (kept: number, left: number, right: number) => number | null,
): readonly Sample[] {
  const joined = (labels: Series['labels'], kept: number, one: number, other: number) => {
    const value = join(kept, one, other)
    return value === null ? [] : [{ labels, value }]
  }
  if (typeof left === 'number') {
    return vector(right).flatMap(({ labels, value }) => joined(labels, value, left, value))
  }
  if (typeof right === 'number') {
    return left.flatMap(({ labels, value }) => joined(labels, value, value, right))
  }
  const others = new Map(right.map(({ labels, value }) => [keyOf(labels), value]))
  return left.flatMap(({ labels, value }) => {
    const other = others.get(keyOf(labels))
    return other === undefined ? [] : joined(labels, value, value, other)
  })
}

function sampleAt({ labels, points }: Series, at: number): Sample[] {
  const point = points.findLast((each) => each.at <= at)
  if (!point || point.value === null || point.at <= at - lookback_seconds) return []
  return [{ labels, value: point.value }]
}

function vector(value: Value): readonly Sample[] {
  if (typeof value === 'number') throw new Error('a number where a vector must be')
  return value
}

function onlyThese(labels: Series['labels'], names: readonly string[]): Series['labels'] {
  return Object.fromEntries(
    names.flatMap((name) => (labels[name] === undefined ? [] : [[name, labels[name]]])),
  )
}

function without(labels: Series['labels'], name: string): Series['labels'] {
  return Object.fromEntries(Object.entries(labels).filter(([label]) => label !== name))
}

function keyOf(labels: Series['labels']): string {
  return JSON.stringify(Object.entries(labels).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

function boundOf(le: string | undefined): number {
  return le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)
}

/** `90m` in seconds. */
export function secondsOf(duration: string): number {
  const [, number, unit] = /^(\d+)([smhd])$/.exec(duration) ?? []
  if (number === undefined) throw new Error(`not a duration: ${duration}`)
  return Number(number) * duration_seconds[unit!]!
}
