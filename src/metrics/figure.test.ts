import { describe, expect, test } from 'bun:test'
import { Counter, Family, Histogram } from '../base/measures.ts'
import { counter, counts, type Figure, gauge, histogram, value } from './figure.ts'
import { exposition, summing } from './text.ts'

function seconds(...observed: number[]): Histogram {
  const measure = new Histogram([0.1, 1])
  for (const one of observed) measure.observe(one)
  return measure
}

function figuresOf(): Figure[] {
  const family = new Family(() => new Counter())
  family.of('schedule', 'ok').add(2)
  family.of('schedule', 'time"out').add()
  return [
    counter('things_total', 'Things.', counts(['kind', 'outcome'], family)),
    gauge('level', 'A level.', value(1.5)),
    histogram('took_seconds', 'Seconds.', [{ measure: seconds(0.05, 0.1, 0.5, 7) }]),
    gauge('unknown', 'Without a value.', []),
  ]
}

describe('figures as text', () => {
  test('are in the format of Prometheus by default', async () => {
    const { content_type, text } = await exposition(figuresOf(), null)
    expect(content_type).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(text).toBe(`# HELP things_total Things.
# TYPE things_total counter
things_total{kind="schedule",outcome="ok"} 2
things_total{kind="schedule",outcome="time\\"out"} 1

# HELP level A level.
# TYPE level gauge
level 1.5

# HELP took_seconds Seconds.
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1"} 2
took_seconds_bucket{le="1"} 3
took_seconds_bucket{le="+Inf"} 4
took_seconds_sum 7.65
took_seconds_count 4

# HELP unknown Without a value.
# TYPE unknown gauge
`)
  })

  test('are OpenMetrics where that is asked for: counters without the suffix in their names, and an end', async () => {
    const accept = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3'
    const { content_type, text } = await exposition(figuresOf(), accept)
    expect(content_type).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    expect(text.split('\n').slice(0, 4)).toEqual([
      '# HELP things Things.',
      '# TYPE things counter',
      'things_total{kind="schedule",outcome="ok"} 2',
      'things_total{kind="schedule",outcome="time\\"out"} 1',
    ])
    expect(text).toEndWith('\n# EOF\n')
  })
})

describe('the figures of several processes', () => {
  test('are summed by name and labels, and the largest or the least where that is meant', async () => {
    const process = (count: number, level: number) => [
      counter('things_total', 'Things.', [{ labels: { kind: 'a' }, value: count }]),
      gauge('most', 'The most.', value(level), 'max'),
      gauge('least', 'The least.', value(level), 'min'),
      gauge('all', 'All.', value(level)),
      histogram('took_seconds', 'Seconds.', [{ measure: seconds(0.05, 5) }]),
    ]
    const other = counter('things_total', 'Things.', [{ labels: { kind: 'b' }, value: 7 }])
    const sum = await summing()
    const { text } = await exposition(sum([process(1, 3), process(2, 4), [other]]), null)
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([
      'things_total{kind="a"} 3',
      'things_total{kind="b"} 7',
      'most 4',
      'least 3',
      'all 7',
      'took_seconds_bucket{le="0.1"} 2',
      'took_seconds_bucket{le="1"} 2',
      'took_seconds_bucket{le="+Inf"} 4',
      'took_seconds_sum 10.1',
      'took_seconds_count 4',
    ])
  })

  test('of none are none', async () => {
    expect((await summing())([])).toEqual([])
  })
})
