// One measured run of wrk against a peer, with the CPU time of everything that belongs to it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connections, runWrk, wrk_binary } from '../load.ts'
import { coreMicros, cores, cpuMicros, undoLater } from '../processes.ts'
import type { PeerLoad, RunningPeer } from './peer.ts'

export interface Sample {
  requests: number
  requests_per_second: number
  p50_ms: number
  p99_ms: number
  /** Of the server and its database, per request. */
  cpu_micros: number
  /** Part of their core that went to others meanwhile, the kernel's threads included. */
  others: number
}

/** A load that wrk can make: the requests are in a file. */
export interface Prepared {
  name: string
  load: PeerLoad
  file: string
}

let folder: string | undefined
let files = 0

export function prepare(name: string, load: PeerLoad): Prepared {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'waystation-requests-'))
    undoLater(() => rmSync(made, { recursive: true, force: true }))
    folder = made
  }
  const file = join(folder, String(files++))
  const records = load.requests.map(({ method, path, body = '', headers }) => {
    const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`)
    return [method, path, body, lines.join('\n')].map((field) => `${field}\x1f`).join('')
  })
  writeFileSync(file, records.map((record) => `${record}\x1e`).join(''))
  return { name, load, file }
}

/** Throws when a request fails, or a write that was acknowledged is not there afterwards. */
export async function sample(running: RunningPeer, prepared: Prepared, seconds: number): Promise<Sample> {
  const kept = await prepared.load.kept?.()
  const [began, cpu, core] = [performance.now(), cpuOf(running), coreMicros(cores.server)]
  const load = await run(prepared, seconds)
  const cpu_used = cpuOf(running) - cpu
  const others_used = coreMicros(cores.server) - core - cpu_used
  const others = Math.max(0, others_used) / ((performance.now() - began) * 1_000)
  await requireKept(prepared, kept, load.requests)
  return { ...load, cpu_micros: cpu_used / load.requests, others }
}

/** The load alone. */
export function run({ name, load, file }: Prepared, seconds: number, at_once = connections) {
  const script = join(import.meta.dir, 'requests.lua')
  return runWrk(wrk_binary!, { name, url: load.url, script, args: [file], seconds, connections: at_once })
}

export async function requireKept(
  { name, load }: Prepared,
  before: number | undefined,
  acknowledged: number,
): Promise<void> {
  if (before === undefined || !load.kept) return
  const kept = (await load.kept()) - before
  if (kept < acknowledged)
    throw new Error(`${name}: ${acknowledged} writes were acknowledged, ${kept} were kept`)
}

function cpuOf({ pids }: RunningPeer): number {
  return pids.reduce((sum, pid) => sum + cpuMicros(pid), 0)
}
