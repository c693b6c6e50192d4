// Columns over time: a drawing, and the same data as a table.

import './locale.ts'
import { effect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { count } from '../text/words.ts'
import { Table } from '../ui/table.tsx'
import { dark } from '../ui/theme.ts'

export interface Series {
  title: string
  /** A custom property of style.css. */
  color: '--accent' | '--bad' | '--good' | '--warn'
  values: number[]
}

interface ChartProps {
  /** The name of the table. */
  caption: string
  /** The starts of the hours, in milliseconds. */
  times: number[]
  /** Drawn over each other, in this order. */
  series: Series[]
}

const height = 180

export function Chart({ caption, times, series }: ChartProps) {
  const place = useDrawing(times, series)
  return (
    <figure class="chart">
      <figcaption>
        {series.map(({ title, color }) => (
          <span key={title} class="legend">
            <span class="legend-mark" style={{ background: `var(${color})` }} aria-hidden="true" />
            {title}
          </span>
        ))}
      </figcaption>
      <div ref={place} class="chart-place" style={{ height: `${height}px` }} aria-hidden="true" />
      <details class="chart-table">
        <summary>Show as a table</summary>
        <Table
          caption={caption}
          columns={[
            { title: 'Time', header: true, cell: (i) => hours.format(times[i]) },
            ...series.map(({ title, values }) => ({
              ...{ title, number: true },
              cell: (i: number) => count(values[i] ?? 0),
            })),
          ]}
          rows={times.map((_, i) => i)}
          id={String}
        />
      </details>
    </figure>
  )
}

const hours = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' })

function useDrawing(times: number[], series: Series[]) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current
    if (!element) return
    let plot: UPlot | null = null
    // The colours belong to the theme: another theme is another drawing.
    const stop = effect(() => {
      void dark.value
      plot?.destroy()
      plot = draw(element, times, series)
    })
    const observer = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      stop()
      plot?.destroy()
    }
  }, [JSON.stringify([times, series])])
  return place
}

function draw(element: HTMLElement, times: number[], series: Series[]): UPlot {
  const style = getComputedStyle(element)
  const color = (name: string) => {
    element.style.color = `var(${name})`
    return style.color
  }
  const axis = {
    stroke: color('--muted'),
    font: `11px ${style.fontFamily}`,
    ticks: { show: false },
    grid: { stroke: color('--line'), width: 1 },
  }
  const step_seconds = ((times[1] ?? 0) - (times[0] ?? 0)) / 1_000
  const bars = UPlot.paths.bars?.({ size: [0.7, 28], radius: 0.12 })
  return new UPlot(
    {
      width: element.clientWidth,
      height,
      legend: { show: false },
      cursor: { show: false },
      // Half a column on either side, for the first and the last one.
      scales: {
        x: { range: (_, from, to) => [from - step_seconds / 2, to + step_seconds / 2] },
        y: { range: (_, __, most) => [0, Math.max(4, most * 1.1)] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          space: 80,
          values: (_, splits) => splits.map((at) => hours.format(at * 1_000)),
        },
        {
          ...axis,
          size: 44,
          space: 40,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6],
        },
      ],
      series: [
        {},
        ...series.map(({ title, color: name }) => ({
          label: title,
          fill: color(name),
          stroke: 'transparent',
          width: 0,
          points: { show: false },
          ...(bars ? { paths: bars } : {}),
        })),
      ],
    },
    [times.map((ms) => ms / 1_000), ...series.map(({ values }) => values)],
    element,
  )
}
