// A service is recorded under load; then its power is cut, at as many points of the record as asked for.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { default_plans } from '../../src/features.ts'
import { randomFrom, seededRandom } from '../support/random.ts'
import { startServer } from '../support/server-process.ts'
import { type Claim, Claims, startOn, type Values } from './claims.ts'
import { Load } from './load.ts'
import { RecordedDisk } from './recorded-disk.ts'
import { readRecord, recording, type Step } from './system-calls.ts'

const root = join(import.meta.dir, '..', '..')
/** In memory where that is possible: nothing here needs a real disk. */
const scratch = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
const service = [process.execPath, join(root, 'src/main.ts')]

export interface RecordOptions {
  clients: number
  turns: number
  seed: number
  /** A fault of planted.ts. */
  fault?: string
  /** Killed in the midst of the load, and started again on the same files. */
  killed?: boolean
  /** How strace slows down flushes, or lets them fail. */
  disk?: string[]
}

/** A line of the record from which on these claims hold. */
interface Claimed {
  line: number
  claims: readonly Claim[]
}

export interface Recorded {
  folder: string
  steps: Step[]
  /** In the order of their lines. */
  claimed: Claimed[]
  values: Values
  /** Answers of 2xx whose request claims something. */
  answers: number
  callbacks: number
  refused: string[]
  /** Its first thread, which runs the event loop, has the same number. */
  pid: number
  exit_code: number
}

/** Runs the service from its first start to its end. The folder of its files is gone afterwards. */
export async function record(options: RecordOptions): Promise<Recorded> {
  const base = mkdtempSync(join(scratch, 'waystation-record-'))
  const { enterprise } = default_plans
  writeFileSync(join(base, 'plans.json'), JSON.stringify({ free: enterprise, pro: enterprise }))
  try {
    if (!options.killed) return recordedOf(base, [await run(base, options, 0)])
    const killed = await run(base, options, 0, killed_after_requests)
    return recordedOf(base, [killed, await run(base, options, killed.lines)])
  } finally {
    rmSync(base, { recursive: true, force: true })
    rmSync(`${base}.trace`, { force: true })
  }
}

const killed_after_requests = 1_500

interface Run {
  steps: Step[]
  /** The number of the last line. */
  lines: number
  load: Load
  pid: number
  exit_code: number
}

/** From a start to an end. Its lines follow those of the run before. */
async function run(
  base: string,
  options: RecordOptions,
  lines: number,
  killed_after = Infinity,
): Promise<Run> {
  const trace = `${base}.trace`
  const folder = join(base, 'new', 'data')
  const { clients, turns, seed, fault, disk } = options
  const command = fault ? [process.execPath, join(import.meta.dir, 'planted.ts'), fault] : service
  const server = await startServer(
    {
      DATABASE_URL: `sqlite:${join(folder, 'w.db')}`,
      DATA_DIR: folder,
      DISK_RESERVE: '0',
      PLANS_FILE: join(base, 'plans.json'),
      CALLBACK_ALLOW: '127.0.0.0/8',
    },
    recording(trace, command, disk),
  )
  const recorder = tracerOf(server.pid)
  const load = new Load({ url: server.url, clients, turns, random: randomFrom(seed), first: lines })
  // A load that breaks off leaves no process behind.
  const running = load.run().catch(async (error) => {
    await server.kill()
    throw error
  })
  while (
    load.requests < killed_after &&
    (await Promise.race([running.then(() => false), Bun.sleep(5)])) !== false
  );
  if (load.requests >= killed_after) await server.kill()
  await running
  const exit_code = await server.stop()
  while (isThere(recorder)) await Bun.sleep(20)
  const reader = await readRecord(trace, base, lines)
  return { steps: reader.steps, lines: reader.lines, load, pid: server.pid, exit_code }
}

function tracerOf(pid: number): number {
  return Number(/TracerPid:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1])
}

function isThere(pid: number): boolean {
  return pid > 0 && existsSync(`/proc/${pid}`)
}

function recordedOf(folder: string, runs: readonly Run[]): Recorded {
  const claims = new Map(runs.flatMap(({ load }) => [...load.claims]))
  const steps = runs.flatMap((one) => one.steps)
  return {
    folder,
    steps,
    ...claimedIn(steps, claims),
    values: new Map(runs.flatMap(({ load }) => [...load.values])),
    refused: runs.flatMap(({ load }) => load.refused),
    pid: runs.at(-1)!.pid,
    exit_code: runs.at(-1)!.exit_code,
  }
}

/** A header, or its value alone: Bun may send a header in pieces. Audit entries hold such ids, too, in their own form. */
const answered = /(?:^|^x-request-id: )(cut-\d{8})$/gim

function claimedIn(steps: readonly Step[], claims: ReadonlyMap<string, readonly Claim[]>) {
  const claimed: Claimed[] = []
  const unseen = new Map(claims)
  let callbacks = 0
  for (const step of steps) {
    if (step.kind !== 'sent') continue
    const head = step.bytes.subarray(0, 4_000).toString('latin1')
    for (const [, request_id] of head.matchAll(answered)) {
      const its = unseen.get(request_id!)
      unseen.delete(request_id!)
      if (its) claimed.push({ line: step.began, claims: its })
    }
    const event = head.startsWith('POST ') ? /^webhook-id: (\S+)/im.exec(head)?.[1] : undefined
    const attempt = Number(/^x-waystation-attempt: (\d+)/im.exec(head)?.[1])
    if (!event) continue
    callbacks += 1
    claimed.push({ line: step.began, claims: [{ kind: 'callback', what: `event ${event}`, rank: attempt }] })
  }
  const missing = [...unseen].filter(([, its]) => its.length > 0)
  if (missing.length > 0)
    throw new Error(`${missing.length} answers are not in the record: ${JSON.stringify(missing[0])}`)
  claimed.sort((a, b) => a.line - b.line)
  const answers = claimed.length - callbacks
  return { claimed, answers, callbacks }
}

/** How often the log began again. */
export function logsBegun({ steps }: Recorded): number {
  return (
    steps.filter((step) => step.kind === 'write' && step.path.endsWith('-wal') && step.at === 0).length - 1
  )
}

/** Flushes that the event loop waited for, between the first answers and the last. */
export function flushesInLoop({ steps, claimed, pid }: Recorded): number {
  return flushesWhileClaimed({ steps, claimed }).filter(({ thread }) => thread === pid).length
}

/** Flushes of the log, in the event loop and off it. */
export function flushesOfLog(recorded: Recorded): number {
  return flushesWhileClaimed(recorded).filter(({ path }) => path.endsWith('-wal')).length
}

function flushesWhileClaimed({ steps, claimed }: Pick<Recorded, 'steps' | 'claimed'>) {
  const [from, to] = [claimed[Math.min(50, claimed.length - 1)]!.line, claimed.at(-1)!.line]
  return steps.filter((step) => step.kind === 'sync').filter(({ began, ended }) => began > from && ended < to)
}

export interface CutResult {
  cuts: number
  /** Cuts after which the service started and had kept everything. */
  kept: number
  /** How many claims answers and callbacks had made at the last cut. */
  claims: number
  lost: string[]
}

export interface CutOptions {
  cuts: number
  seed: number
  /** Leaves out steps of the record, to prove that they are needed. */
  without?: (step: Step) => boolean
  /** Ends at the first cut that took something back. */
  until_lost?: boolean
}

/** Cuts the power at random points: a third anywhere, a third right after an answer, a third while a file is flushed. */
export async function cut(recorded: Recorded, options: CutOptions): Promise<CutResult> {
  const random = seededRandom(options.seed)
  const steps = options.without ? recorded.steps.filter((step) => !options.without!(step)) : recorded.steps
  const disk = new RecordedDisk(recorded.folder, random)
  const claims = new Claims()
  const result: CutResult = { cuts: 0, kept: 0, claims: 0, lost: [] }
  let taken = 0
  let claimed = 0
  for (const line of pointsOf(recorded, options.cuts, random)) {
    for (; taken < steps.length && steps[taken]!.ended <= line; taken++) disk.take(steps[taken]!)
    for (; claimed < recorded.claimed.length && recorded.claimed[claimed]!.line <= line; claimed++)
      for (const claim of recorded.claimed[claimed]!.claims) claims.add(claim)
    const under_way = steps.slice(taken, taken + 2_000).filter(({ began }) => began <= line)
    const faults = await faultsAfter(disk.cut(under_way), recorded, claims)
    result.cuts += 1
    result.claims = claims.count
    if (faults.length === 0) result.kept += 1
    result.lost.push(...faults.map((fault) => `line ${line}: ${fault}`))
    if (options.until_lost && faults.length > 0) break
  }
  return result
}

/** A cut may also come during the writes before a flush, this many lines of the record earlier. */
const lines_before_flush = 40

function pointsOf({ steps, claimed }: Recorded, cuts: number, random: () => number): number[] {
  const end = steps.at(-1)!.ended
  // Few flushes are those of the database file or a folder, so that a file is chosen first.
  const flushes = steps.filter((step) => step.kind === 'sync')
  const by_file = [...Map.groupBy(flushes, ({ path }) => path).values()]
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const by_kind = [...Map.groupBy(claimed, ({ claims }) => claims[0]?.kind).values()]
  const points = Array.from({ length: cuts }, (_, n) => {
    if (n % 3 === 0) return Math.floor(random() * end)
    if (n % 3 === 1) return pick(pick(by_kind)).line
    const { began, ended } = pick(pick(by_file))
    const from = Math.max(0, began - lines_before_flush)
    return from + Math.floor(random() * (ended - from + 1))
  })
  return points.toSorted((a, b) => a - b)
}

async function faultsAfter(
  files: Map<string, Buffer>,
  { folder, values }: Recorded,
  claims: Claims,
): Promise<string[]> {
  const after = mkdtempSync(join(scratch, 'waystation-cut-'))
  try {
    for (const [path, bytes] of files) {
      const place = join(after, path.slice(folder.length))
      mkdirSync(dirname(place), { recursive: true })
      writeFileSync(place, bytes)
    }
    return claims.lost(await startOn(join(after, 'new', 'data', 'w.db')), values)
  } catch (error) {
    return [`the file: ${(error as Error).message}`]
  } finally {
    rmSync(after, { recursive: true, force: true })
  }
}
