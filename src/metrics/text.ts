// Figures as text, in the two forms that collectors read, and the sum of those of several processes.

import type { Figure } from './figure.ts'

/** OpenMetrics where the collector asks for it, and the text format of Prometheus 0.0.4 otherwise. */
export async function exposition(figures: readonly Figure[], accept: string | null) {
  const { Registry } = await import('prom-client')
  const is_open = accept?.includes('application/openmetrics-text') ?? false
  const content_type = is_open ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE
  const registry = new Registry()
  registry.setContentType(content_type as never)
  for (const figure of figures) {
    // OpenMetrics names the family of a counter without the suffix of its samples.
    const name = is_open && figure.type === 'counter' ? figure.name.replace(/_total$/, '') : figure.name
    const metric = { ...figure, name, get: () => ({ ...figure, name }) }
    registry.registerMetric(metric as never)
  }
  return { content_type, text: await registry.metrics() }
}

/** Of prom-client, whose types leave it out. */
type Aggregators = Record<Figure['aggregator'], (same: readonly Figure[]) => Figure>

/** The sum of the figures of several processes: each as its aggregator says, in the order in which they come. */
type Sum = (processes: readonly (readonly Figure[])[]) => Figure[]

export async function summing(): Promise<Sum> {
  const { aggregators } = (await import('prom-client')) as unknown as { aggregators: Aggregators }
  return (processes) => {
    const by_name = Map.groupBy(processes.flat(), ({ name }) => name)
    return [...by_name.values()].map((same) => aggregators[same[0]!.aggregator](same))
  }
}
