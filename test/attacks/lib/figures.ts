// The measurements, and how they are judged. No I/O.

export type Engine = 'sqlite' | 'postgres'

/** Of latencies or of lateness, in milliseconds. */
export interface Spread {
  count: number
  p50: number
  p95: number
  p99: number
  max: number
}

/** The least value that at least `percent` of a hundred are not above. Not a number when there are none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = Math.ceil((sorted.length * percent) / 100) - 1
  return sorted[Math.max(0, Math.min(sorted.length - 1, at))] ?? Number.NaN
}

export function spreadOf(values: readonly number[]): Spread {
  return {
    count: values.length,
    p50: percentile(values, 50),
    p95: percentile(values, 95),
    p99: percentile(values, 99),
    max: percentile(values, 100),
  }
}

/** A figure, the most it may be, and where less would be as wrong, the least. */
export interface Bound {
  figure: string
  value: number
  most: number
  least?: number
}

/** A figure that is not a number was not measured, and what was not measured does not hold. */
export function holds({ value, most, least = Number.NEGATIVE_INFINITY }: Bound): boolean {
  return value <= most && value >= least
}

/** One measurement of an attack: a line of the output, and a row of the table. */
export interface Line {
  attack: string
  engine: Engine
  /** The measured action, in a few words. */
  what: string
  /** Latencies of the other tenant's requests. Null where the attack is about something else. */
  good_before: Spread | null
  good: Spread | null
  /** How many of the other tenant's requests failed. */
  good_errors: number
  late: Spread | null
  /** Megabytes of 10^6 bytes. */
  rss_before_mb: number | null
  rss_peak_mb: number | null
  bounds: Bound[]
  verdict: 'ok' | 'FAILED' | 'skipped'
  /** Other observations. */
  note: string
}

/** Bounds that hold for everything, with default settings. */
export const good_p99_ms_max = 100
/** One stall of seconds is a single request of a client that waits for its answer, and hides behind its p99. */
export const good_longest_ms_max = 1_000
export const rss_mb_max = 512

export interface Limits {
  good_p99_ms?: number
  rss_mb?: number
  late_p95_ms?: number
}

/** The bounds of a measurement: those for everything, unless `limits` says otherwise. */
export function boundsOf(
  seen: Pick<Line, 'good' | 'late' | 'rss_peak_mb' | 'good_errors'>,
  limits: Limits,
): Bound[] {
  const bounds: Bound[] = []
  if (seen.good) {
    bounds.push({ figure: 'good p99 ms', value: seen.good.p99, most: limits.good_p99_ms ?? good_p99_ms_max })
    bounds.push({ figure: 'good max ms', value: seen.good.max, most: good_longest_ms_max })
    bounds.push({ figure: 'good errors', value: seen.good_errors, most: 0 })
  }
  if (seen.rss_peak_mb !== null) {
    bounds.push({ figure: 'RSS MB', value: seen.rss_peak_mb, most: limits.rss_mb ?? rss_mb_max })
  }
  if (seen.late && limits.late_p95_ms !== undefined) {
    bounds.push({ figure: 'late p95 ms', value: seen.late.p95, most: limits.late_p95_ms })
  }
  return bounds
}

/** The exit status of a run: 0 only when every line is ok, or skipped and skips are allowed. */
export function statusOf(lines: readonly Pick<Line, 'verdict'>[], allow_skips: boolean): 0 | 1 {
  if (lines.length === 0) return 1
  const fails = lines.some(({ verdict }) => verdict === 'FAILED' || (verdict === 'skipped' && !allow_skips))
  return fails ? 1 : 0
}

export const columns = [
  'attack',
  'engine',
  'measurement',
  'good p50/p99 before',
  'good p50/p99/max',
  'late p50/p95',
  'RSS MB',
  'bounds',
  'verdict',
]

export function cellsOf(line: Line): string[] {
  const { good_before: before, good, late } = line
  return [
    line.attack,
    line.engine,
    line.what,
    before ? `${ms(before.p50)}/${ms(before.p99)}` : '',
    good ? `${ms(good.p50)}/${ms(good.p99)}/${ms(good.max)}` : '',
    late ? `${ms(late.p50)}/${ms(late.p95)}` : '',
    line.rss_peak_mb === null ? '' : `${mb(line.rss_before_mb)} > ${mb(line.rss_peak_mb)}`,
    line.bounds.map(boundText).join(', '),
    line.verdict,
  ]
}

/** The line that is printed after a measurement. */
export function lineText(line: Line): string {
  const { good_before: before, good, late } = line
  const parts = [
    line.attack,
    line.engine,
    line.what,
    before && good
      ? `good p50/p99 ${ms(before.p50)}/${ms(before.p99)} -> ${ms(good.p50)}/${ms(good.p99)} ms`
      : '',
    good ? `max ${ms(good.max)} ms` : '',
    late ? `late p50/p95 ${ms(late.p50)}/${ms(late.p95)} ms` : '',
    line.rss_peak_mb === null ? '' : `RSS ${mb(line.rss_before_mb)} -> ${mb(line.rss_peak_mb)} MB`,
    ...line.bounds.map(boundText),
    line.verdict,
    line.note,
  ]
  return parts.filter((part) => part !== '').join(' | ')
}

function boundText(bound: Bound): string {
  const value = Number.isInteger(bound.value) ? String(bound.value) : bound.value.toFixed(1)
  const not = holds(bound) ? '' : 'NOT '
  const { figure, least, most } = bound
  if (least === undefined) return `${figure} ${value} ${not}<= ${most}`
  return `${figure} ${value} ${not}${least === most ? `= ${most}` : `in ${least}..${most}`}`
}

function ms(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1)
}

function mb(value: number | null): string {
  return value === null || Number.isNaN(value) ? '?' : value.toFixed(0)
}
