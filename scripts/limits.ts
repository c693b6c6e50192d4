// Writes docs/limits.md from the declarations of limits. A test fails when the file in git is not this.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { day_ms, hour_ms, minute_ms, second_ms } from '../src/base/clock.ts'
import { type Limit, limits } from '../src/base/limit.ts'
import { default_plans, features } from '../src/features.ts'
import { settings } from '../src/settings.ts'

const src = join(import.meta.dir, '..', 'src')

const intro = `# Limits

Everything that a client, a tenant or a receiver can make the service hold or do has a limit. This page lists each limit
with its default, made from where it is declared in the source.

A limit without a setting is the same everywhere. What each answer looks like is in [errors](errors.md), how to change a
setting in [configuration](configuration.md).`

/** The titles of first parts of names, in the order of the page. A feature that is not here has the title of its page. */
const areas: Record<string, string> = {
  http: 'HTTP',
  json: 'JSON',
  fields: 'Fields',
  pages: 'Pages',
  memory: 'Memory',
  answers: 'Answers',
  heavy_reads: 'Heavy reads',
  waiting: 'Requests that wait',
  clients: 'Client addresses',
  db: 'Database',
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  row_security: 'Row-level security',
  nodes: 'Several nodes',
  semaphore: 'Busy rows',
  storage: 'Storage',
  disk: 'Disk',
  credentials: 'Keys',
  lookups: 'Look-ups of keys and tokens',
  idempotency: 'Idempotency-Key',
  quotas: 'Counting of calls',
  tenants: 'Tenants',
  agents: 'Agents',
  kv: 'Key-value store',
  journal: 'Journal',
  events: 'Events',
  audit: 'Audit log',
  dlq: 'Dead letters',
  schedules: 'Schedules',
  checkpoints: 'Checkpoints',
  inbox: 'Webhook inbox',
  rate_limit: 'Rate limiter',
  mcp: 'MCP',
  usage: 'Usage',
  jobs: 'Jobs',
  callbacks: 'Callbacks',
  mail: 'Mail',
  dns: 'Look-up of names',
  tick: 'Tick',
  sweep: 'Sweep',
  purge: 'Purge of tenants',
  settings: 'Settings',
  secrets: 'Secrets',
  start: 'Starting',
  stop: 'Stopping',
  backup: 'Backups',
  workers: 'Processes of one service',
  metrics: 'Metrics',
  traces: 'Traces',
}

/** Loads every module that declares a limit. Those that only run are left out: they declare none. */
export async function allLimits(): Promise<Limit[]> {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.endsWith('.d.ts'))
    .filter((file) => /\blimit\(/.test(readFileSync(join(src, file), 'utf8')))
  for (const file of files.toSorted()) await import(join(src, file))
  return [...limits.values()]
}

/** The text of docs/limits.md. */
export async function limitsText(): Promise<string> {
  const all = await allLimits()
  const order = Object.keys(areas)
  // Other features follow those that are here.
  const placeOf = (area: string) =>
    Object.hasOwn(areas, area) ? order.indexOf(area) : order.indexOf('mcp') - 0.5
  const found = [...new Set(all.map(areaOf))].toSorted((a, b) => placeOf(a) - placeOf(b))
  const sections = found.map((area) =>
    section(
      area,
      all.filter((one) => areaOf(one) === area),
    ),
  )
  return `${[intro, plansText(), ...sections].join('\n\n')}\n`
}

/** Throws for an area without a title. */
export function areaOf({ name }: Pick<Limit, 'name'>): string {
  const area = name.split('.')[0]!
  if (titleOf(area) === undefined) throw new Error(`the area of ${name} has no title in scripts/limits.ts`)
  return area
}

function titleOf(area: string): string | undefined {
  if (Object.hasOwn(areas, area)) return areas[area]
  const page = features.find(({ name }) => name.replaceAll('-', '_') === area)?.docs
  return page && /^# (.*)$/m.exec(readFileSync(join(src, '..', 'docs', page.file), 'utf8'))![1]
}

function section(area: string, own: Limit[]): string {
  const rows = own
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((one) => row([`\`${one.name}\``, valueText(one.value, one.unit), settingOf(one), one.protects]))
  const head = [row(['Limit', 'Default', 'Setting', 'What it is for']), row(['---', '---', '---', '---'])]
  return [`## ${titleOf(area)}`, '', ...head, ...rows].join('\n')
}

/** The one that is declared, or the one that the sentence names. */
function settingOf({ setting, protects }: Limit): string {
  const named = setting ?? Object.keys(settings).find((name) => new RegExp(`\\b${name}\\b`).test(protects))
  return named ? `[${named}](configuration.md#${named.toLowerCase()})` : ''
}

/** Where a row of the table of plans has no number, the plan has no limit. */
function plansText(): string {
  const plans = Object.keys(default_plans)
  const names = Object.keys(default_plans.free!)
  const rows = names.map((name) => {
    const unit = /_(bytes|seconds)$/.exec(name)?.[1]
    const cells = plans.map((plan) => {
      const value = default_plans[plan]![name] ?? null
      if (value === null) return 'none'
      return unit ? valueText(value, unit as Limit['unit']) : value.toLocaleString('en')
    })
    return row([`\`${name}\``, ...cells])
  })
  const head = [row(['Limit', ...plans]), row(['---', ...plans.map(() => '---:')])]
  const about =
    'What a tenant may have depends on its plan. [PLANS_FILE](configuration.md#plans_file) replaces this table.'
  return ['## Plans', '', about, '', ...head, ...rows].join('\n')
}

function row(cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`.replaceAll('|  |', '| |')
}

const byte_units = [
  [1_073_741_824, 'GiB'],
  [1_048_576, 'MiB'],
  [1_024, 'KiB'],
] as const
const time_units = [
  [day_ms, 'day'],
  [hour_ms, 'hour'],
  [minute_ms, 'minute'],
  [second_ms, 'second'],
] as const

/** In the largest unit that divides it. */
function valueText(value: number, unit: Limit['unit']): string {
  if (unit === 'bytes') {
    const [size, name] = byte_units.find(([size]) => value >= size && value % size === 0) ?? [1, 'bytes']
    return `${(value / size).toLocaleString('en')} ${name}`
  }
  if (unit === 'milliseconds' || unit === 'seconds') {
    const ms = unit === 'seconds' ? value * second_ms : value
    const [size, name] = time_units.find(([size]) => ms >= size && ms % size === 0) ?? [1, 'millisecond']
    return counted(ms / size, `${name}s`)
  }
  return counted(value, unit)
}

function counted(count: number, unit: string): string {
  const one = unit === 'entries' ? 'entry' : unit.replace(/s$/, '')
  return `${count.toLocaleString('en')} ${count === 1 ? one : unit}`
}

if (import.meta.main) await Bun.write(new URL('../docs/limits.md', import.meta.url), await limitsText())
