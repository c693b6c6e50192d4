// The load: wrk on a core of its own, or a generator in Bun where there is no wrk. Any failed answer fails the run.

import { join } from 'node:path'
import type { HotPath } from './hot-path.ts'
import { coreMicros, cores, cpuMicros, memoryMib, output } from './processes.ts'
import type { Client } from './service.ts'

export const connections = 64
export const warm_up_seconds = 2

export const wrk_binary = Bun.which('wrk')

export interface Load {
  requests: number
  requests_per_second: number
  p50_ms: number
  p99_ms: number
}

export interface Figures extends Load {
  /** Of the server, per request. */
  cpu_micros: number
  /** Part of the server's core that went to others meanwhile. */
  others: number
  rss_mib: number
}

/** A hot path of the service, or the one answer of nginx. */
export interface Target {
  url: string
  pid: number
  path: { hot_path: HotPath; client: Client } | null
}

/**
 * A probe, a warm-up, the measured run; then the service must have kept every write that it acknowledged.
 */
export async function measured(target: Target, seconds: number): Promise<Figures> {
  const kept = await keptBy(target)
  const warm_up = await drive(target, warm_up_seconds)
  const figures = await slice(target, seconds)
  await requireKept(target, kept + warm_up.requests + figures.requests)
  return figures
}

const disturbed_max = 0.05
const tries_max = 5

/** Runs again while others take more than a twentieth of the server's core; the least disturbed run counts. */
export async function undisturbed(run: () => Promise<Figures>): Promise<Figures> {
  let best = await run()
  for (let tries = 1; best.others > disturbed_max && tries < tries_max; tries++) {
    const again = await run()
    if (again.others < best.others) best = again
  }
  return best
}

/** One measured run without anything around it. */
export async function slice(target: Target, seconds: number): Promise<Figures> {
  const [began, cpu, core] = [performance.now(), cpuMicros(target.pid), coreMicros(cores.server)]
  const load = await drive(target, seconds)
  const cpu_used = cpuMicros(target.pid) - cpu
  const others_used = coreMicros(cores.server) - core - cpu_used
  return {
    ...load,
    cpu_micros: cpu_used / load.requests,
    others: Math.max(0, others_used) / ((performance.now() - began) * 1_000),
    rss_mib: memoryMib(target.pid).now,
  }
}

/** Zero for what writes nothing. */
export async function keptBy({ path }: Target): Promise<number> {
  return (await path?.hot_path.kept?.(path.client)) ?? 0
}

export async function requireKept(target: Target, at_least: number): Promise<void> {
  if (!target.path?.hot_path.kept) return
  const kept = await keptBy(target)
  if (kept < at_least) {
    throw new Error(`${target.path.hot_path.name}: ${at_least} writes were acknowledged, ${kept} were kept`)
  }
}

let runs = 0

export async function drive({ url, path }: Target, seconds: number): Promise<Load> {
  const run = path?.hot_path.run?.(path.client) ?? `run${++runs}`
  if (path) await path.client.send(path.hot_path.request(0, `${run}-probe`))
  const credentials = path ? [path.client.agent_id, path.client.api_key, run] : []
  return wrk_binary
    ? driveWithWrk(wrk_binary, url, path?.hot_path.name ?? null, credentials, seconds)
    : driveWithBun(url, path?.hot_path.name ?? null, credentials, seconds)
}

async function driveWithWrk(
  wrk: string,
  url: string,
  name: string | null,
  args: string[],
  seconds: number,
): Promise<Load> {
  const script = name && join(import.meta.dir, `${name}.lua`)
  return runWrk(wrk, { name: name ?? 'nginx', url, script, args, seconds, connections })
}

export interface WrkRun {
  /** For the message when an answer is not 2xx. */
  name: string
  url: string
  script: string | null
  args: string[]
  seconds: number
  connections: number
}

/** Throws when an answer is not 2xx, or a connection fails. */
export async function runWrk(wrk: string, run: WrkRun): Promise<Load> {
  const with_script = run.script ? ['-s', run.script] : []
  const options = ['-t1', `-c${run.connections}`, `-d${run.seconds}s`, '--latency', ...with_script]
  const printed = await output([wrk, ...options, run.url, '--', ...run.args], cores.load)
  const failed = /Non-2xx or 3xx responses: \d+|Socket errors: .*/.exec(printed)
  if (failed) throw new Error(`${run.name}: ${failed[0]}`)
  return {
    requests: Number(found(printed, /(\d+) requests in/)),
    requests_per_second: Number(found(printed, /Requests\/sec:\s+([\d.]+)/)),
    p50_ms: millis(found(printed, /^\s+50%\s+(\S+)/m)),
    p99_ms: millis(found(printed, /^\s+99%\s+(\S+)/m)),
  }
}

function found(printed: string, form: RegExp): string {
  const match = form.exec(printed)
  if (!match) throw new Error(`wrk printed something unknown:\n${printed}`)
  return match[1]!
}

const unit_ms: Record<string, number> = { us: 0.001, ms: 1, s: 1_000, m: 60_000 }

function millis(text: string): number {
  const [, number, unit] = /^([\d.]+)(us|ms|s|m)$/.exec(text) ?? []
  if (unit === undefined) throw new Error(`wrk printed an unknown time: ${text}`)
  return Number(number) * unit_ms[unit]!
}

async function driveWithBun(
  url: string,
  hot_path: string | null,
  args: string[],
  seconds: number,
): Promise<Load> {
  const generator = [process.execPath, join(import.meta.dir, 'generator.ts')]
  const given = [url, String(connections), String(seconds), hot_path ?? '', ...args]
  return JSON.parse(await output([...generator, ...given], cores.load)) as Load
}
