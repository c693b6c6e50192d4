// The metrics of a service, as a collector reads them.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestService } from './service.ts'

export class Scraped {
  /** `name{labels}` -> value, in the text format of Prometheus. */
  readonly samples: ReadonlyMap<string, number>

  constructor(readonly text: string) {
    this.samples = new Map(
      text
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
        .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    )
  }

  /** The sum of the samples of this name that have all of these labels; null when there is none. */
  sum(name: string, labels: Record<string, string> = {}): number | null {
    const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
    const found = [...this.samples].filter(
      ([key]) => key.split('{')[0] === name && wanted.every((label) => key.includes(label)),
    )
    return found.length === 0 ? null : found.reduce((sum, [, value]) => sum + value, 0)
  }

  /** The names of all metrics, with or without samples. */
  get names(): string[] {
    return [...this.text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name!)
  }
}

export async function scrape(service: TestService): Promise<Scraped> {
  return new Scraped(await (await fetch(service.app.metrics!.url!)).text())
}

const folders = (process.env.PATH ?? '').split(':')

/** Where promtool is, which Prometheus brings along; null where there is none. */
export const promtool = folders.map((folder) => join(folder, 'promtool')).find(existsSync) ?? null
