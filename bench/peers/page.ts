// The parts of docs/performance.md that follow from the result: three sections. The rest of the page is written by hand.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keptPostgresResult, postgresSection } from '../postgres-page.ts'
import { markdownTable, median, spread } from '../table.ts'
import { type Aim, bestQueue, type Judged, judge, own } from './aims.ts'
import { shown } from './chart.ts'
import { notes } from './notes.ts'
import { figuresOf, type Part, type Result } from './result.ts'

export const page_file = join(import.meta.dir, '../../docs/performance.md')
export const chart_file = join(import.meta.dir, '../../docs/images/performance.svg')

/** The page with its sections made again. */
export function pageText(result: Result, page = readFileSync(page_file, 'utf8')): string {
  const sections: Record<string, string> = {
    Figures: figuresSection(result),
    'Side by side': sideBySide(result),
    'On PostgreSQL': postgresSection(keptPostgresResult()),
    'The machine': machineSection(result),
  }
  return Object.entries(sections)
    .reduce((text, [title, body]) => {
      const form = new RegExp(`^(## ${title}\\n)[\\s\\S]*?(?=^## |(?![\\s\\S]))`, 'm')
      if (!form.test(text)) throw new Error(`docs/performance.md has no section "${title}"`)
      return text.replace(form, (_, heading: string) => `${heading}\n${body}\n\n`)
    }, page)
    .trimEnd()
    .concat('\n')
}

export function figuresSection(result: Result): string {
  const judged = judge(result)
  const rows = judged.map((one) => [one.aim.title, measuredText(one), aimText(one.aim), verdict(one)])
  const known = judged.filter(({ met }) => met !== null)
  const met = known.filter((one) => one.met)
  const tried = judged.filter(({ met: is_met, aim }) => is_met === false && notes[aim.id])
  return [
    `${met.length} of ${known.length} are met. The medians of all rounds, with the least and the most in brackets:`,
    markdownTable(['Figure', 'Measured', 'Aim', ''], rows),
    ...(tried.length > 0 ? ['Not met, and what was tried:', tried.map(noteLine).join('\n')] : []),
    '![Bars of requests a second for each operation, and of schedules fired, of Waystation and each peer; the tables below have the same figures](images/performance.svg)',
  ].join('\n\n')
}

function noteLine({ aim }: Judged): string {
  return `- ${aim.title}. ${notes[aim.id]}`
}

export function measuredText({ aim, values }: Judged): string {
  return values ? withUnit(spread(values, aim.digits), aim) : 'not measured'
}

export function aimText(aim: Aim): string {
  return aim.at_least === undefined ? `≤ ${withUnit(aim.at_most!, aim)}` : `≥ ${withUnit(aim.at_least, aim)}`
}

function withUnit(value: string | number, { unit }: Aim): string {
  return `${value} ${unit}`
}

export function verdict({ met }: Judged): string {
  if (met === null) return ''
  return met ? 'met' : '**not met**'
}

const operations: [part: string, title: string][] = [
  ['kv-get', 'kv get'],
  ['kv-put', 'kv put'],
  ['rate-check', 'rate check'],
  ['hook', 'hook'],
  ['audit-append', 'audit append'],
]

export function sideBySide(result: Result): string {
  const { parts } = result
  const paths = operations.flatMap(([part, title]) => pathRows(parts[part], title))
  const slow = [1, 5].flatMap((ms) => slowRows(parts[`flush-${ms}ms`], `+ ${ms} ms`))
  const queues = queueRows(parts.schedules)
  return [
    'On the disk as it is:',
    markdownTable(['', 'By', 'Requests/s', 'p50 ms', 'p99 ms', 'CPU µs'], paths),
    'With a slower flush:',
    markdownTable(
      ['Flush', 'By', 'Gets/s alone', 'Gets/s beside 8 writers', 'Writes/s beside', 'Puts/s', 'Puts p99 ms'],
      slow,
    ),
    `Due work${parts.schedules ? `; the best queue is ${bestQueue(parts.schedules) ?? 'none'}` : ''}:`,
    markdownTable(
      [
        'By',
        '5,000 at once: calls/s',
        'all called, ms after due',
        'calls/s, just started',
        'CPU µs each',
        '200/s: p50 ms',
        'p99 ms',
        'CPU µs each',
      ],
      queues,
    ),
    pendingText(parts.pending),
    memoryText(parts.mixed),
  ].join('\n\n')
}

function pathRows(part: Part | undefined, title: string): string[][] {
  return subjectsOf(part).map((name, i) => [
    i === 0 ? title : '',
    name,
    cell(part, name, 'requests_per_second'),
    cell(part, name, 'p50_ms'),
    cell(part, name, 'p99_ms'),
    cell(part, name, 'cpu_micros'),
  ])
}

function slowRows(part: Part | undefined, title: string): string[][] {
  const figures = ['gets_alone', 'gets_beside', 'writes_beside', 'puts', 'puts_p99_ms']
  return subjectsOf(part).map((name, i) => [
    i === 0 ? title : '',
    name,
    ...figures.map((figure) => cell(part, name, figure)),
  ])
}

function queueRows(part: Part | undefined): string[][] {
  const figures = [
    'burst_per_second',
    'burst_all_ms',
    'burst_just_started_per_second',
    'burst_cpu_micros',
    'trickle_p50_ms',
    'trickle_p99_ms',
    'trickle_cpu_micros',
  ]
  return subjectsOf(part).map((name) => [name, ...figures.map((figure) => cell(part, name, figure))])
}

function pendingText(part: Part | undefined): string {
  if (!part) return '1,000 due on top of 100,000 were not measured.'
  const of = (figure: string) => cell(part, own, figure)
  return `1,000 due at once: ${of('alone_seconds')} s and ${of('alone_cpu_micros')} µs of CPU each alone, ${of('on_top_seconds')} s and ${of('on_top_cpu_micros')} µs on top of 100,000 pending.`
}

function memoryText(part: Part | undefined): string {
  const of = (figure: string) => figuresOf(part, own, figure)?.at(-1)
  const [requests, end, peak] = [of('requests'), of('end_mib'), of('peak_mib')]
  if (!part || requests === undefined) return 'Memory was not measured.'
  const [counts, mib] = [figuresOf(part, own, 'series_requests')!, figuresOf(part, own, 'series_mib')!]
  const at = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const i = counts.findIndex((count) => count >= requests * share)
    return `${mib[i]!.toFixed(0)} MiB after ${shown(counts[i]!)}`
  })
  return `Memory over ${shown(requests)} mixed requests (40 % get, 20 % put, 15 % audit append, 15 % rate check, 10 % hook): ${at.join(', ')}; ${end!.toFixed(0)} at the end, ${peak!.toFixed(0)} at most.`
}

function subjectsOf(part: Part | undefined): string[] {
  return Object.keys(part?.samples ?? {})
}

function cell(part: Part | undefined, name: string, figure: string): string {
  const values = figuresOf(part, name, figure)
  if (!values) return ''
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted[sorted.length >> 1]!
  const both = sorted.length % 2 === 1 ? middle : (middle + sorted[(sorted.length >> 1) - 1]!) / 2
  return sorted.length === 1 ? shown(both) : `${shown(both)} (${shown(sorted[0]!)}..${shown(sorted.at(-1)!)})`
}

function machineSection({ machine, subjects, parts }: Result): string {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`)
  const runs = [...new Set(Object.values(parts).map(runText))]
  const rows = Object.entries(subjects).map(([name, { version, missing, how }]) => [
    name,
    version ?? `missing: ${missing}`,
    how,
  ])
  const failed = Object.entries(parts).flatMap(([part, { failed: reasons }]) =>
    Object.entries(reasons).map(([name, reason]) => `- ${name} failed in ${part}: ${reason}`),
  )
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memory_gib} GiB; Linux ${machine.kernel}, ${machine.file_system}, where a flush of 4 KiB takes ${shown(machine.flush_ms)} ms. ${versions.join(', ')}.`,
    `Measured ${runs.join('; ')}.${othersText(parts)}`,
    markdownTable(['Beside it', 'Version', 'How'], rows),
    ...(failed.length > 0 ? [failed.join('\n')] : []),
  ].join('\n\n')
}

/** How far the machine was not theirs alone: figures of a busy one say little. */
function othersText(parts: Result['parts']): string {
  const shares = Object.values(parts).flatMap(({ samples }) =>
    Object.values(samples).flatMap(({ others = [] }) => others),
  )
  if (shares.length === 0) return ''
  const percent = (share: number) => `${Math.round(share * 100)} %`
  return ` Others, the kernel's threads among them, took ${percent(median(shares))} of the core during a sample over HTTP, ${percent(Math.max(...shares))} at most.`
}

function runText({ commit, date, rounds, seconds }: Part): string {
  return `on ${date} at commit ${commit}, ${rounds} round${rounds === 1 ? '' : 's'} of ${seconds} s`
}
