// Child processes on chosen cores, what they cost, and the certainty that nothing stays behind.

import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'

export type Child = Subprocess<'ignore', 'pipe', 'pipe'>

const end_ms_max = 15_000

const children = new Set<Child>()
const undos = new Set<() => void>()
let leaving: Promise<never> | null = null

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs the command; whatever it started and made is gone when this process ends, also after Ctrl-C. */
export async function command(run: () => Promise<void>): Promise<void> {
  for (const signal of signals) process.on(signal, () => void leave(130))
  try {
    if (process.platform !== 'linux') throw new Error('CPU time is read from /proc: this needs Linux')
    await run()
    await leave(Number(process.exitCode ?? 0))
  } catch (error) {
    if (!leaving) console.error(`bench: ${(error as Error).message}`)
    await leave(1)
  }
}

/** Loads a module without the handlers of signals that it sets, which would end this process before it has cleaned up. */
export async function withoutSignals<T>(load: () => Promise<T>): Promise<T> {
  const known = signals.map((signal) => process.listeners(signal))
  const module = await load()
  for (const [i, signal] of signals.entries()) {
    for (const listener of process.listeners(signal))
      if (!known[i]!.includes(listener)) process.off(signal, listener)
  }
  return module
}

/** The value of an option that counts. */
export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,7}$/.test(text)) throw new Error(`"${text}" is not a whole number above 0`)
  return Number(text)
}

function leave(status: number): Promise<never> {
  leaving ??= (async () => {
    await killChildren()
    for (const undo of [...undos].reverse()) undo()
    process.exit(status)
  })()
  return leaving
}

/** Kills every child process that still runs. */
export async function killChildren(): Promise<void> {
  for (const child of children) child.kill('SIGKILL')
  await Promise.all([...children].map((child) => child.exited))
}

/** Registers a step to undo at the end. Returns a function that undoes it earlier. */
export function undoLater(undo: () => void): () => void {
  const once = () => {
    if (undos.delete(once)) undo()
  }
  undos.add(once)
  return once
}

const memory_file_systems = [0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */]

/** An empty folder on a disk, since fsync of a file in memory costs nothing. */
export function temporaryFolder(): { folder: string; remove: () => void } {
  const onDisk = (folder: string) => !memory_file_systems.includes(statfsSync(folder).type)
  const base = [tmpdir(), '/var/tmp'].find(onDisk)
  if (!base) throw new Error(`no disk under ${tmpdir()} or /var/tmp: set TMPDIR to a folder on one`)
  const folder = mkdtempSync(join(base, 'waystation-bench-'))
  return { folder, remove: undoLater(() => rmSync(folder, { recursive: true, force: true })) }
}

const [server_core, load_core] = twoCores()
export const cores = { server: server_core, load: load_core }
const taskset = Bun.which('taskset')

/** This process too keeps off the server's core. Answers what the reader of the figures must know. */
export function pinThisProcess(): string[] {
  if (!taskset) return ['taskset not found: nothing is pinned, processes disturb each other']
  Bun.spawnSync([taskset, '-a', '-c', '-p', String(load_core), String(process.pid)])
  return server_core === load_core ? ['only one core: the server shares it with its load'] : []
}

function twoCores(): [server: number, load: number] {
  const allowed = /^Cpus_allowed_list:\s*(.+)$/m.exec(textOf('/proc/self/status'))?.[1] ?? '0'
  const list = allowed.split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number) as [number, number?]
    return Array.from({ length: to - from + 1 }, (_, i) => from + i)
  })
  return [list[0]!, list[1] ?? list[0]!]
}

interface Start {
  core: number
  cwd?: string
  env?: Record<string, string>
}

/** Throws when this process is ending. */
export function start(cmd: string[], { core, cwd, env }: Start): Child {
  if (leaving) throw new Error('this command is ending')
  const child: Child = Bun.spawn(taskset ? [taskset, '-c', String(core), ...cmd] : cmd, {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd ? { cwd } : {}),
    ...(env ? { env } : {}),
  })
  children.add(child)
  void child.exited.then(() => children.delete(child))
  return child
}

/** Asks the process to end and waits until it has; kills it when it takes too long. */
export async function end(child: Child): Promise<void> {
  const hard = setTimeout(() => child.kill('SIGKILL'), end_ms_max)
  child.kill('SIGTERM')
  await child.exited
  clearTimeout(hard)
}

/** Runs to its end; the answer is what it printed. Throws when it failed. */
export async function output(cmd: string[], core: number): Promise<string> {
  const child = start(cmd, { core })
  const [printed, errors, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (status !== 0) throw new Error(`${cmd[0]} ended with ${status}: ${(errors || printed).trim()}`)
  return printed
}

export const ticks_per_second = Number(Bun.spawnSync(['getconf', 'CLK_TCK']).stdout.toString()) || 100

/** User and system time of all threads so far, microseconds: proc(5), /proc/[pid]/stat, utime and stime. */
export function cpuMicros(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) / ticks_per_second) * 1e6
}

/** Time that anybody used of this core so far, microseconds: proc(5), /proc/stat, all but idle and iowait. */
export function coreMicros(core: number): number {
  const line = new RegExp(`^cpu${core} (.+)$`, 'm').exec(textOf('/proc/stat'))?.[1] ?? ''
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = line.split(' ').map(Number)
  return ((user + nice + system + irq + softirq + steal) / ticks_per_second) * 1e6
}

/** Resident memory now, and the most it ever was. */
export function memoryMib(pid: number): { now: number; peak: number } {
  const status = textOf(`/proc/${pid}/status`)
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1]) / 1_024
  return { now: mib('VmRSS'), peak: mib('VmHWM') }
}

function textOf(file: string): string {
  return readFileSync(file, 'utf8')
}
