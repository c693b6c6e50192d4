// A figure: one metric with its values at one moment, in the form in which prom-client takes and sums them.

import type { Counter, Family, Histogram } from '../base/measures.ts'

export interface FigureValue {
  labels: Readonly<Record<string, string>>
  value: number
  /** The name of this sample where it is not that of the figure: `…_bucket`, `…_sum`, `…_count`. */
  metricName?: string
}

export interface Figure {
  /** A counter's ends in `_total`. */
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  /** How the figures of several processes become one. */
  aggregator: 'sum' | 'max' | 'min'
  values: FigureValue[]
}

type Labels = Readonly<Record<string, string>>

const no_labels: Labels = {}

export function counter(name: string, help: string, values: FigureValue[]): Figure {
  return { name, help, type: 'counter', aggregator: 'sum', values }
}

export function gauge(
  name: string,
  help: string,
  values: FigureValue[],
  aggregator: Figure['aggregator'] = 'sum',
): Figure {
  return { name, help, type: 'gauge', aggregator, values }
}

export function histogram(
  name: string,
  help: string,
  measured: readonly { labels?: Labels; measure: Histogram }[],
): Figure {
  const values = measured.flatMap(({ labels = no_labels, measure }) => samplesOf(name, labels, measure))
  return { name, help, type: 'histogram', aggregator: 'sum', values }
}

/** A value without labels. */
export function value(number: number): FigureValue[] {
  return [{ labels: no_labels, value: number }]
}

/** The members of a family with their labels by these names. */
export function labelled<Measure>(
  names: readonly string[],
  family: Family<Measure>,
): { labels: Labels; measure: Measure }[] {
  return [...family.members].map(({ labels, measure }) => ({
    labels: Object.fromEntries(names.map((name, i) => [name, labels[i]!])),
    measure,
  }))
}

/** The values of a family of counters. */
export function counts(names: readonly string[], family: Family<Counter>): FigureValue[] {
  return labelled(names, family).map(({ labels, measure }) => ({ labels, value: measure.value }))
}

function samplesOf(name: string, labels: Labels, { bounds, counts, sum, count }: Histogram): FigureValue[] {
  let at_most = 0
  const buckets = bounds.map((bound, i) => {
    at_most += counts[i]!
    return { labels: { ...labels, le: String(bound) }, value: at_most, metricName: `${name}_bucket` }
  })
  return [
    ...buckets,
    { labels: { ...labels, le: '+Inf' }, value: count, metricName: `${name}_bucket` },
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ]
}
