// The section of docs/performance.md on PostgreSQL, from what `bun bench/postgres.ts <git-rev> --write` measured.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { markdownTable } from './table.ts'

export interface PostgresTurn {
  requests_per_second: number
  p50_ms: number
  p99_ms: number
  node_cpu_micros: number
  database_cpu_micros: number
}

export interface PostgresRow {
  path: string
  /** How long what is sent is under way, each way. */
  distance_ms: number
  round_trip_ms: number
  before: PostgresTurn | null
  now: PostgresTurn
}

export interface PostgresResult {
  commit: string
  /** The revision beside it. */
  before: string
  date: string
  rounds: number
  seconds: number
  rows: PostgresRow[]
}

export const postgres_result_file = join(import.meta.dir, 'results', 'postgres.json')

export function keptPostgresResult(): PostgresResult | null {
  if (!existsSync(postgres_result_file)) return null
  return JSON.parse(readFileSync(postgres_result_file, 'utf8')) as PostgresResult
}

const titles: Record<string, string> = {
  'kv-put': 'put',
  'kv-put-new': 'put of a new key',
  'audit-append': 'audit append',
  'rate-check': 'rate check',
  'rate-check-hot': 'rate check of one counter',
  hook: 'hook',
}

/** CPU of node and database together, times before; on the same machine as the database. */
const cpu_ratio_max = 0.5
const cpu_paths = ['kv-put', 'audit-append', 'rate-check', 'hook']
/** One tenant's requests a second from a database whose answers take 2 ms. */
const away_least: Record<string, number> = { 'kv-put': 2_500, 'audit-append': 2_000, hook: 1_000 }
const away_distance_ms = 1

export function cpuOf({ node_cpu_micros, database_cpu_micros }: PostgresTurn): number {
  return node_cpu_micros + database_cpu_micros
}

export function postgresSection(result: PostgresResult | null): string {
  if (result === null) return 'Not measured.'
  const { commit, before, date, rounds, seconds, rows } = result
  return [
    `Writes of one tenant over 64 connections, with the database on the same two cores; a delaying proxy stands in for distance. Measured on ${date} at commit ${commit.slice(0, 7)} beside ${before.slice(0, 7)}, in turns of ${seconds} s, ${rounds} rounds.`,
    markdownTable(
      ['Figure', 'Measured', 'Aim', ''],
      [
        ...cpu_paths.map((path) => cpuRow(path, rows)),
        ...Object.keys(away_least).map((path) => awayRow(path, rows)),
      ],
    ),
    markdownTable(
      ['', 'Round trip ms', 'Requests/s', 'before', 'p50 ms', 'p99 ms', 'CPU µs: node + database', 'before'],
      rows.map((row) => [
        titles[row.path]!,
        row.round_trip_ms.toFixed(1),
        whole(row.now.requests_per_second),
        row.before ? whole(row.before.requests_per_second) : '',
        row.now.p50_ms.toFixed(1),
        row.now.p99_ms.toFixed(1),
        inParts(row.now),
        row.before ? inParts(row.before) : '',
      ]),
    ),
  ].join('\n\n')
}

function cpuRow(path: string, rows: readonly PostgresRow[]): string[] {
  const found = rows.find((row) => row.path === path && row.distance_ms === 0)
  const title = `${titles[path]}: CPU of node and database, × before`
  if (!found?.before) return [title, 'not measured', `≤ ${cpu_ratio_max}`, '']
  const ratio = cpuOf(found.now) / cpuOf(found.before)
  return [title, ratio.toFixed(2), `≤ ${cpu_ratio_max}`, verdict(ratio <= cpu_ratio_max)]
}

function awayRow(path: string, rows: readonly PostgresRow[]): string[] {
  const found = rows.find((row) => row.path === path && row.distance_ms === away_distance_ms)
  const aim = `≥ ${whole(away_least[path]!)}/s`
  const title = `${titles[path]}, the database 2 ms away`
  if (!found) return [title, 'not measured', aim, '']
  const speed = found.now.requests_per_second
  return [title, `${whole(speed)}/s`, aim, verdict(speed >= away_least[path]!)]
}

function verdict(is_met: boolean): string {
  return is_met ? 'met' : '**not met**'
}

export function inParts({ node_cpu_micros, database_cpu_micros }: PostgresTurn): string {
  return `${node_cpu_micros.toFixed(0)} + ${database_cpu_micros.toFixed(0)}`
}

function whole(count: number): string {
  return Math.round(count).toLocaleString('en-US')
}
