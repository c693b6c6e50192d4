// Columns over time: a drawing for eyes, the same as a table for everybody else.

import './locale.ts'
import { effect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { count } from './text.ts'
import { dark } from './theme.ts'

export interface Series {
  title: string
  /** A custom property of style.css. */
  color: '--accent' | '--bad' | '--good' | '--warn'
  values: number[]
}

interface ChartProps {
  /** What it shows, and the name of its table. */
  caption: string
  /** Beginnings of the steps, in milliseconds. */
  times: number[]
  /** Drawn over each other, in this order. */
  series: Series[]
  height?: number
  timeOf: (ms: number) => string
}

export function Chart({ caption, times, series, height = 180, timeOf }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null)
  const content = JSON.stringify([times, series])
  useEffect(() => {
    const element = place.current
    if (!element) return
    let plot: UPlot | null = null
    // The colours are the theme's: another theme is another drawing.
    const stop = effect(() => {
      void dark.value
      plot?.destroy()
      plot = draw(element, times, series, height)
    })
    const observer = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      stop()
      plot?.destroy()
    }
  }, [content, height])
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
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
        <section class="table-scroll" tabIndex={0} aria-label={caption}>
          <table class="table">
            <caption class="offscreen">{caption}</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {series.map(({ title }) => (
                  <th key={title} scope="col" data-number>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((time, i) => (
                <tr key={time}>
                  <th scope="row">{timeOf(time)}</th>
                  {series.map(({ title, values }) => (
                    <td key={title} data-number>
                      {count(values[i] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </details>
    </figure>
  )
}

const tick = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' })

function draw(element: HTMLElement, times: number[], series: Series[], height: number): UPlot {
  const style = getComputedStyle(document.documentElement)
  const color = (name: string) => style.getPropertyValue(name).trim()
  const axis = {
    stroke: color('--muted'),
    font: `11px ${color('--sans')}`,
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
          values: (_, splits) => splits.map((at) => tick.format(at * 1_000)),
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
