// A collector that scrapes when a test says so and asks the alert rules, with a clock of its own that a test moves.

import { readFileSync } from 'node:fs'
import { evaluate, type Series, secondsOf } from './promql.ts'

export interface Rule {
  alert: string
  expr: string
  for?: string
}

export const rules_file = 'deploy/prometheus/alerts.yml'

export const rules: readonly Rule[] = (
  Bun.YAML.parse(readFileSync(rules_file, 'utf8')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules)

export class Prometheus {
  readonly #series = new Map<string, Series>()

  /** `now`: seconds since the Unix epoch. `target` answers the text of the metrics, and throws when nothing listens there. */
  constructor(
    public now: number,
    private readonly target: () => Promise<string>,
  ) {}

  /** One look at the target, at the time of `now`. A series that is gone has ended. */
  async scrape(): Promise<void> {
    const text = await this.target().catch(() => null)
    const found = text === null ? [] : samplesOf(text)
    const seen = new Set<Series>()
    for (const { name, labels, value } of [...found, up(text === null ? 0 : 1)]) {
      const key = JSON.stringify([name, labels])
      const series = this.#series.get(key) ?? { name, labels: { ...labels, ...target_labels }, points: [] }
      this.#series.set(key, series)
      series.points.push({ at: this.now, value })
      seen.add(series)
    }
    for (const series of this.#series.values()) {
      if (!seen.has(series)) series.points.push({ at: this.now, value: null })
    }
  }

  /** True while the condition of the rule holds: it fires once that has lasted for its `for`. */
  holds({ expr }: Rule): boolean {
    return evaluate(expr, [...this.#series.values()], this.now).length > 0
  }
}

const target_labels = { job: 'waystation', instance: 'test' }

function up(value: number) {
  return { name: 'up', labels: {}, value }
}

/** Of the text format of Prometheus. */
function samplesOf(text: string) {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, name = '', labels = '', value] = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (value === undefined) throw new Error(`not a sample: ${line}`)
    return { name, labels: labelsOf(labels), value: Number(value) }
  })
}

export function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]))
}

interface UnitTest {
  input_series: { series: string; values: string }[]
  promql_expr_test: { expr: string; eval_time: string; exp_samples: { labels: string }[] }[]
}

/** The unit tests for promtool, each with the alerts that it expects and those that `evaluate` finds. */
export function unitTests(file: string): { query: string; expected: string[]; found: string[] }[] {
  // To YAML `0x60` is a number.
  const text = readFileSync(file, 'utf8').replace(/values: (.*)$/gm, "values: '$1'")
  const { tests } = Bun.YAML.parse(text) as { tests: UnitTest[] }
  return tests.flatMap(({ input_series, promql_expr_test }) =>
    promql_expr_test.map(({ expr, eval_time, exp_samples }) => ({
      query: `${expr} at ${eval_time}`,
      expected: exp_samples.map(({ labels }) => labelsOf(labels).alertname!).toSorted(),
      found: alertsAt(input_series.map(seriesOf), secondsOf(eval_time), !expr.includes('firing')),
    })),
  )
}

const evaluation_seconds = 60

/** The names of the alerts that fire then, looked at once a minute; `pending`: also of those whose time is not up. */
function alertsAt(stored: readonly Series[], at: number, pending: boolean): string[] {
  const alerts = rules.filter((rule) => {
    const since = new Map<string, number>()
    for (let time = 0; time <= at; time += evaluation_seconds) {
      const keys = evaluate(rule.expr, stored, time).map(({ labels }) => JSON.stringify(labels))
      for (const key of [...since.keys()]) if (!keys.includes(key)) since.delete(key)
      for (const key of keys) since.set(key, since.get(key) ?? time)
    }
    const for_seconds = pending ? 0 : secondsOf(rule.for ?? '0s')
    return [...since.values()].some((began) => at - began >= for_seconds)
  })
  return alerts.map(({ alert }) => alert).toSorted()
}

/** `values` as promtool reads them: `1x90 0x90`, or `0+600x60`. A sample a minute. */
function seriesOf({ series, values }: { series: string; values: string }): Series {
  const [, name = '', labels = ''] = /^(\w+)\{(.*)\}$/.exec(series) ?? []
  const expanded = values.split(' ').flatMap((part) => {
    const [, first, step = '0', times] = /^(\d+)(?:\+(\d+))?x(\d+)$/.exec(part) ?? []
    if (times === undefined) throw new Error(`not understood: ${part}`)
    return Array.from({ length: Number(times) + 1 }, (_, i) => Number(first) + i * Number(step))
  })
  return {
    name,
    labels: labelsOf(labels),
    points: expanded.map((value, i) => ({ at: i * evaluation_seconds, value })),
  }
}
