// `npm run power-cuts`: cuts the power of a recorded service, at 500 points of its record unless told otherwise; then proves
// that planted faults are found, and that a disk that fails or hangs lets no answer leave.

import { parseArgs } from 'node:util'
import { faultsOfFailing, faultsOfHanging } from './bad-disks.ts'
import {
  type CutResult,
  cut,
  flushesInLoop,
  flushesOfLog,
  logsBegun,
  type Recorded,
  type RecordOptions,
  record,
} from './replay.ts'
import type { Step } from './system-calls.ts'

const usage = `Usage: npm run power-cuts -- [options]

  --cuts <n>    how many (default: 500)
  --seed <n>    repeats what clients did and where the power is cut, as far as the order of threads allows
  --help        this text

The service runs under strace, which records what it writes, flushes and sends. Linux, strace and a C compiler
(apt-get install strace gcc); without strace the power is cut between two turns of the event loop, as in npm test.`

/** In microseconds. A cloud volume, or a consumer SSD. */
const slow_disk = ['fdatasync,fsync:delay_enter=5000']
/** So slow that much is not flushed yet when it is shown. */
const planted_disk = ['fdatasync,fsync:delay_enter=10000']
/** Enough that the log begins again several times. */
const load = { clients: 12, turns: 300 }
const planted_load = { clients: 12, turns: 40 }
const planted_cuts = 200
/** The faults of planted.ts, and what a cut then takes back. */
const faults: Record<string, string> = {
  'answers before the flush': 'acknowledged',
  'sends callbacks before their lease is flushed': 'callback',
  'shows readers a commit before its flush': 'shown',
}

/** A run that is answered less often has tested too little. */
const answers_least = 2_000
const callbacks_least = 50
const logs_least = 3
/** Of the log's flushes on a fast disk. */
const in_loop_share_least = 1 / 2

const { values } = parseArgs({
  options: {
    cuts: { type: 'string', default: '500' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    help: { type: 'boolean', default: false },
  },
})
const cuts = Number(values.cuts)
const seed = Number(values.seed)
const failures: string[] = []
process.exit(await main())

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage)
    return 0
  }
  if (!Bun.which('strace')) return withoutRecord()
  console.log(`seed ${seed} (npm run power-cuts -- --seed ${seed} repeats it)`)
  await cutHonest('a fast disk', Math.floor(cuts * 0.4), [])
  await cutHonest('a disk that takes 5 ms for a flush', Math.floor(cuts * 0.4), slow_disk)
  await cutHonest('the same after a kill and a restart', Math.ceil(cuts * 0.2), slow_disk, true)
  for (const [fault, kind] of Object.entries(faults)) await findPlanted(fault, kind)
  await findMissing()
  report(
    'a disk that fails: nothing is answered from then on, and the process ends',
    await faultsOfFailing(seed),
  )
  const hanging = 'a disk that hangs: writes are refused, reads continue, /readyz says so, and all resume'
  if (Bun.which('cc')) report(hanging, await faultsOfHanging())
  else console.log(`skipped ${hanging}: there is no C compiler (cc)`)
  for (const failure of failures) console.log(`FAILED  ${failure}`)
  return failures.length === 0 ? 0 : 1
}

async function cutHonest(name: string, count: number, disk: string[], killed = false): Promise<void> {
  const recorded = await recordedBy(name, { ...load, seed, disk, killed })
  const result = await cut(recorded, { cuts: count, seed })
  report(`${name}: ${inWords(result)}`, result.lost)
  if (recorded.answers < answers_least) failures.push(`${name}: only ${recorded.answers} answers`)
  if (recorded.callbacks < callbacks_least) failures.push(`${name}: only ${recorded.callbacks} callbacks`)
  const in_loop = flushesInLoop(recorded)
  if (disk === slow_disk && !killed)
    report(`${name}: ${in_loop} flushes in the event loop`, in_loop > 0 ? ['some did'] : [])
  if (disk !== slow_disk) {
    const of_log = flushesOfLog(recorded)
    report(
      `${name}: ${in_loop} of ${of_log} flushes of the log in the event loop`,
      in_loop < of_log * in_loop_share_least ? ['too few: the flush in the loop was hardly tested'] : [],
    )
  }
  if (logsBegun(recorded) < logs_least) failures.push(`${name}: the log began again too seldom`)
  if (recorded.exit_code !== 0) failures.push(`${name}: the service ended with ${recorded.exit_code}`)
}

async function recordedBy(name: string, options: RecordOptions): Promise<Recorded> {
  const recorded = await record(options)
  const { steps, answers, callbacks, refused } = recorded
  const flushes = steps.filter(({ kind }) => kind === 'sync').length
  console.log(
    `        ${name}: ${answers} answers, ${callbacks} callbacks, ${steps.length} steps, ${flushes} flushes; the log began again ${logsBegun(recorded)} times`,
  )
  // With a planted fault, requests may be refused later for what it shows or hides.
  if (refused.length > 0 && !options.fault) failures.push(`${name}: ${refused[0]}`)
  return recorded
}

function inWords({ cuts: made, kept, claims }: CutResult): string {
  return `${kept} of ${made} power cuts took back nothing of up to ${claims} claims, and damaged no file`
}

function report(line: string, lost: readonly string[]): void {
  console.log(`${lost.length === 0 ? 'ok    ' : 'FAILED'}  ${line}`)
  for (const fault of lost.slice(0, 5)) console.log(`          ${fault}`)
  if (lost.length > 0) failures.push(line)
}

async function findPlanted(fault: string, kind: string): Promise<void> {
  const name = `a service that ${fault}`
  const recorded = await recordedBy(name, { ...planted_load, seed, disk: planted_disk, fault })
  const { lost, cuts: made } = await cut(recorded, { cuts: planted_cuts, seed, until_lost: true })
  const found = lost.some((line) => line.includes(`: ${kind}: `))
  report(`${name}: ${found ? 'found at cut' : 'not found in'} ${made}`, found ? [] : ['not found', ...lost])
}

/** A record without these flushes must lose something: they are needed, and the replay would see that they are missing. */
async function findMissing(): Promise<void> {
  const recorded = await recordedBy('a service whose log begins again', { ...load, seed, disk: slow_disk })
  const missing: Record<string, (step: Step) => boolean> = {
    'the flushes of the log': (step) => step.kind === 'sync' && step.path.endsWith('-wal'),
    'the flushes of the database file behind a copy of the log': (step) =>
      step.kind === 'sync' && step.path.endsWith('.db') && step.began > recorded.claimed[0]!.line,
    'the flushes of folders': (step) => step.kind === 'sync' && /(\/new|\/data|-record-\w+)$/.test(step.path),
  }
  for (const [name, without] of Object.entries(missing)) {
    const { lost, cuts: made } = await cut(recorded, { cuts: planted_cuts, seed, until_lost: true, without })
    const found = lost.length > 0
    report(`without ${name}: ${found ? 'found at cut' : 'not found in'} ${made}`, found ? [] : ['not found'])
  }
}

async function withoutRecord(): Promise<number> {
  console.log(
    'strace is not on this machine (apt-get install strace): cutting the power between two turns of a process',
  )
  const child = Bun.spawn([process.execPath, 'test', 'test/power-cut.test.ts'], {
    cwd: `${import.meta.dir}/../..`,
    env: { ...process.env, POWER_CUTS: String(Math.ceil(cuts / 2)), POWER_CUT_SEED: String(seed) },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  return child.exited
}
