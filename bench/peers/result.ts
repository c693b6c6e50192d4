// The result of a run: every sample of every part, in a file beside the sources, from which the page and the chart are made.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '../table.ts'

export interface Result {
  machine: Machine
  /** Each program that was measured or is missing, by name. */
  subjects: Record<string, Subject>
  parts: Record<string, Part>
}

export interface Machine {
  cpu: string
  cores: number
  memory_gib: number
  kernel: string
  file_system: string
  /** Median of an fdatasync after a write of 4 KiB. Milliseconds. */
  flush_ms: number
  versions: Record<string, string>
}

export interface Subject {
  how: string
  version?: string
  missing?: string
}

export interface Part {
  /** Of the service. */
  commit: string
  date: string
  rounds: number
  seconds: number
  samples: Samples
  /** Why a subject has no samples here. */
  failed: Record<string, string>
}

/** By subject and by figure, one value for each round. */
export type Samples = Record<string, Record<string, number[]>>

export const result_file = join(import.meta.dir, '..', 'results', 'peers.json')

/** The kept one, or null. */
export function keptResult(): Result | null {
  return existsSync(result_file) ? (JSON.parse(readFileSync(result_file, 'utf8')) as Result) : null
}

export function resultText(result: Result): string {
  return `${JSON.stringify(
    result,
    (_, value) => (typeof value === 'number' ? rounded(value) : value),
    2,
  ).replace(/\[\s+([-\d.,\s]+?)\s+\]/g, (_, values: string) => `[${values.split(/,\s+/).join(', ')}]`)}\n`
}

/** Four digits that count are more than any of them deserves. */
function rounded(value: number): number {
  return Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(4))
}

/** Of one subject, or undefined when it has no such figure. */
export function figuresOf(part: Part | undefined, subject: string, figure: string): number[] | undefined {
  const values = part?.samples[subject]?.[figure]
  return values && values.length > 0 ? values : undefined
}

export function medianOf(part: Part | undefined, subject: string, figure: string): number | undefined {
  const values = figuresOf(part, subject, figure)
  return values && median(values)
}

export class Collector {
  readonly samples: Samples = {}
  readonly failed: Record<string, string> = {}

  add(subject: string, figures: Record<string, number>): void {
    const own = this.samples[subject] ?? {}
    this.samples[subject] = own
    for (const [figure, value] of Object.entries(figures)) own[figure] = [...(own[figure] ?? []), value]
  }

  fail(subject: string, error: unknown): void {
    const { message } = error as Error
    this.failed[subject] = withoutPlaces(message.split('\n')[0]!)
    console.error(`*** ${subject}: ${message} ***`)
  }
}

/** The result is public: of a path only the last name stays, of a URL nothing. */
export function withoutPlaces(text: string): string {
  return text.replace(/\w+:\/\/\S+/g, '(address)').replace(/(?:\/[\w.@+-]+)+\/([\w.@+-]+)/g, '$1')
}
