// docs/performance.md says what the kept result of `npm run bench -- --peers` says, and judges it rightly.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { aims, judge, own } from '../bench/peers/aims.ts'
import { chartText, groupsOf } from '../bench/peers/chart.ts'
import { growth } from '../bench/peers/mixed.ts'
import { notes } from '../bench/peers/notes.ts'
import { chart_file, figuresSection, page_file, pageText } from '../bench/peers/page.ts'
import {
  keptResult,
  type Part,
  type Result,
  resultText,
  type Samples,
  withoutPlaces,
} from '../bench/peers/result.ts'

const root = join(import.meta.dir, '..')
const textOf = (file: string) => readFileSync(file, 'utf8')
const npm = JSON.parse(textOf(join(root, 'bench/peers/package.json'))) as Record<
  'dependencies' | 'optionalDependencies',
  Record<string, string>
>

describe('docs/performance.md', () => {
  const result = keptResult()!

  test('has the figures of the kept result; after a change run: npm run bench -- --peers --page', () => {
    expect(textOf(page_file)).toBe(pageText(result))
  })

  test('has a chart of the same figures', () => {
    expect(textOf(chart_file)).toBe(chartText(result))
  })

  test('names every figure with its aim, measured or not', () => {
    const page = textOf(page_file)
    for (const { title } of aims) expect(page).toContain(`| ${title} |`)
  })
})

describe('A figure', () => {
  const result = (parts: Record<string, Samples>): Result => ({
    machine: { cpu: '', cores: 2, memory_gib: 1, kernel: '', file_system: '', flush_ms: 0, versions: {} },
    subjects: {},
    parts: Object.fromEntries(Object.entries(parts).map(([name, samples]) => [name, partOf(samples)])),
  })
  const partOf = (samples: Samples): Part => ({
    ...{ commit: 'abc', date: '2026-01-31', rounds: 3, seconds: 4, samples, failed: {} },
  })
  const verdictOf = (id: string, parts: Record<string, Samples>) =>
    judge(result(parts)).find(({ aim }) => aim.id === id)!
  const speeds = (mine: number[], theirs: number[]) => ({
    'kv-get': {
      [own]: { requests_per_second: mine },
      'webdis + Redis': { requests_per_second: theirs },
    },
  })

  test('is the median of the ratios of each round', () => {
    const { values, met } = verdictOf('kv-get', speeds([110, 300, 240], [100, 200, 200]))
    expect([values, met]).toEqual([[1.1, 1.5, 1.2], true])
  })

  test('is not met below its aim, and met at it', () => {
    expect(verdictOf('kv-get', speeds([109], [100])).met).toBe(false)
    expect(verdictOf('kv-get', speeds([110], [100])).met).toBe(true)
  })

  test('that was not measured is neither met nor not met', () => {
    expect(verdictOf('kv-get', {}).met).toBeNull()
    expect(verdictOf('kv-get', { 'kv-get': { [own]: { requests_per_second: [1] } } }).met).toBeNull()
  })

  test('of a burst is compared with the best queue', () => {
    const of = (value: number) => ({ burst_per_second: [value] })
    const schedules = {
      [own]: of(1_300),
      BullMQ: of(1_000),
      'pg-boss': of(500),
      'graphile-worker': of(1_100),
    }
    expect(verdictOf('burst', { schedules }).values).toEqual([1_300 / 1_100])
  })

  test('of memory needs five million requests', () => {
    const mixed = (requests: number) => ({ mixed: { [own]: { requests: [requests], end_mib: [100] } } })
    expect(verdictOf('memory', mixed(4_999_999)).met).toBeNull()
    expect(verdictOf('memory', mixed(5_000_000)).met).toBe(true)
  })

  test('stands in the table with its aim and its verdict', () => {
    const section = figuresSection(result(speeds([100, 120, 90], [100, 100, 100])))
    expect(section).toContain('| kv get: × webdis + Redis | 1.00 (0.90..1.20) × | ≥ 1.1 × | **not met** |')
    expect(section).toContain('| kv put: × webdis + Redis | not measured | ≥ 1.1 × |  |')
  })

  test('that is explained is one that there is', () => {
    const known = new Set(aims.map(({ id }) => id))
    expect(known.size).toBe(aims.length)
    expect(Object.keys(notes).filter((id) => !known.has(id))).toEqual([])
  })
})

describe('Memory', () => {
  test('grows by what the end of the second half has more than its beginning', () => {
    expect(growth([50, 60, 90, 100, 100, 101, 100, 100, 102, 104, 104, 104])).toBe(4)
    expect(growth([50, 100])).toBe(0)
  })
})

describe('The chart', () => {
  test('leaves out what the service has no figure of', () => {
    const { parts, ...rest } = keptResult()!
    expect(groupsOf({ ...rest, parts: {} })).toEqual([])
    expect(groupsOf({ ...rest, parts }).every(({ bars }) => bars.length > 0)).toBe(true)
  })
})

describe('The kept result', () => {
  test('is read as it was written', () => {
    const result = keptResult()!
    expect(resultText(JSON.parse(resultText(result)))).toBe(resultText(result))
  })
})

describe('Why a peer failed', () => {
  test('is said without paths and addresses', () => {
    const text =
      'ENOENT: /srv/x/bench/peers/a.mjs at file:///srv/x/b.js:1, http://127.0.0.1:80/kv answered 500'
    expect(withoutPlaces(text)).toBe('ENOENT: a.mjs at (address) (address) answered 500')
  })
})

describe('Peers of npm', () => {
  test('have exact versions and a reason in docs/decisions.md, and the service does not depend on them', () => {
    const packages = { ...npm.dependencies, ...npm.optionalDependencies }
    expect(Object.values(packages).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
    const decisions = textOf(join(root, 'docs/decisions.md'))
    const service = textOf(join(root, 'package-lock.json'))
    for (const name of Object.keys(packages)) {
      expect(decisions).toContain(`\`${name}\``)
      expect(service).not.toContain(`"node_modules/${name}"`)
    }
  })
})
