// The chart of a result: horizontal bars as SVG, readable on light and on dark pages, without a script.

import { own } from './aims.ts'
import { medianOf, type Part, type Result } from './result.ts'

export interface Group {
  title: string
  bars: Bar[]
}

interface Bar {
  name: string
  value: number
}

const width = 880
const bars_x = 276
const bars_width = 500
const bar_height = 18
const line_height = 24
const title_height = 34
const edge = 20

const style = `
    .paper { fill: #ffffff } .ink { fill: #1d2330 } .soft { fill: #59617a }
    .own { fill: #4450c8 } .peer { fill: #a6adbf } .line { stroke: #d5d9e3 }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #14171f } .ink { fill: #e8ebf4 } .soft { fill: #a9b2c8 }
      .own { fill: #98a1ff } .peer { fill: #566079 } .line { stroke: #39415a }
    }
  `

/** Groups without a figure of the service are left out. */
export function groupsOf({ parts }: Result): Group[] {
  const groups: Group[] = [
    group('kv get, requests a second', parts['kv-get'], 'requests_per_second'),
    group('kv put, requests a second', parts['kv-put'], 'requests_per_second'),
    group('rate check, requests a second', parts['rate-check'], 'requests_per_second'),
    group('hook, requests a second', parts.hook, 'requests_per_second'),
    group('gets alone, flush + 5 ms, requests a second', parts['flush-5ms'], 'gets_alone'),
    group('gets beside 8 writers, flush + 5 ms, requests a second', parts['flush-5ms'], 'gets_beside'),
    group('puts, flush + 5 ms, requests a second', parts['flush-5ms'], 'puts'),
    group('schedules fired, 5,000 due at once, calls a second', parts.schedules, 'burst_per_second'),
    group('CPU of each of 200 schedules a second, µs: less is better', parts.schedules, 'trickle_cpu_micros'),
  ]
  return groups.filter(({ bars }) => bars.some(({ name }) => name === own))
}

function group(title: string, part: Part | undefined, figure: string): Group {
  const bars = Object.keys(part?.samples ?? {}).flatMap((name) => {
    const value = medianOf(part, name, figure)
    return value === undefined ? [] : [{ name, value }]
  })
  return { title, bars }
}

export function chartText(result: Result): string {
  const groups = groupsOf(result)
  let y = edge
  const drawn = groups.map((one) => {
    const text = drawGroup(one, y)
    y += title_height + one.bars.length * line_height + 8
    return text
  })
  const height = y + edge - 8
  const described = groups.map(({ title, bars }) => `${title}: ${bars.map(inWords).join(', ')}.`).join(' ')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title desc" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif" font-size="13">
  <title id="title">Waystation beside its peers</title>
  <desc id="desc">${escaped(described)}</desc>
  <style>${style}</style>
  <rect class="paper" fill="#ffffff" width="${width}" height="${height}" rx="10"/>
${drawn.join('\n')}
</svg>
`
}

function drawGroup({ title, bars }: Group, y: number): string {
  const most = Math.max(...bars.map(({ value }) => value))
  const first = y + title_height
  const bottom = first + bars.length * line_height - (line_height - bar_height)
  const lines = bars.map(({ name, value }, i) => {
    const top = first + i * line_height
    const length = Math.max(2, Math.round((value / most) * bars_width))
    const [kind, colour] = name === own ? ['own', '#4450c8'] : ['peer', '#a6adbf']
    return `  <text class="ink" fill="#1d2330" x="${bars_x - 10}" y="${top + 13}" text-anchor="end">${escaped(name)}</text>
  <rect class="${kind}" fill="${colour}" x="${bars_x}" y="${top}" width="${length}" height="${bar_height}" rx="3"/>
  <text class="soft" fill="#59617a" x="${bars_x + length + 8}" y="${top + 13}">${shown(value)}</text>`
  })
  return `  <text class="ink" fill="#1d2330" x="${edge}" y="${y + 20}" font-size="15" font-weight="600">${escaped(title)}</text>
  <line class="line" stroke="#d5d9e3" x1="${bars_x}" y1="${first - 4}" x2="${bars_x}" y2="${bottom + 4}"/>
${lines.join('\n')}`
}

function inWords({ name, value }: Bar): string {
  return `${name} ${shown(value)}`
}

export function shown(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
