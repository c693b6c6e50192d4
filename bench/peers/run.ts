// `npm run bench -- --peers`: the service beside programs that do a part of the same, on one machine, in one run. Writes
// the result, docs/performance.md and its chart.

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { checkOut, root } from '../checkout.ts'
import { wrk_binary } from '../load.ts'
import { killChildren, pinThisProcess, wholeNumber } from '../processes.ts'
import { before, judge, mixed_requests, own, type PartName } from './aims.ts'
import { chartText } from './chart.ts'
import { measurePending, measureSchedules } from './firing.ts'
import { thisMachine } from './machine.ts'
import { measureMixed } from './mixed.ts'
import {
  aimText,
  chart_file,
  figuresSection,
  measuredText,
  page_file,
  pageText,
  sideBySide,
  verdict,
} from './page.ts'
import { measurePath, measureSlowDisk, type Plan, peers } from './parts.ts'
import { queues } from './queue.ts'
import {
  type Collector,
  keptResult,
  type Part,
  type Result,
  result_file,
  resultText,
  type Subject,
} from './result.ts'
import { slow_disk_missing } from './slow-disk.ts'
import { versionIn } from './waystation.ts'

/** In the order of a run. Each says whether a run without `--only` has it. */
const parts: Record<PartName, { usual: boolean; measure(plan: Plan): Promise<Collector> }> = {
  'kv-get': { usual: true, measure: (plan) => measurePath('kv-get', plan) },
  'kv-put': { usual: true, measure: (plan) => measurePath('kv-put', plan) },
  'rate-check': { usual: true, measure: (plan) => measurePath('rate-check', plan) },
  hook: { usual: true, measure: (plan) => measurePath('hook', plan) },
  'audit-append': { usual: true, measure: (plan) => measurePath('audit-append', plan) },
  'flush-1ms': { usual: true, measure: (plan) => measureSlowDisk(1, plan) },
  'flush-5ms': { usual: true, measure: (plan) => measureSlowDisk(5, plan) },
  schedules: { usual: true, measure: measureSchedules },
  pending: { usual: true, measure: measurePending },
  mixed: { usual: false, measure: (plan) => measureMixed(plan) },
}

const usage = `Usage: npm run bench -- --peers [options]

  --only <part>     only this part; may be given several times, or as a list with commas
                    (${Object.keys(parts).join(', ')})
  --mixed           also the part mixed: 5 million requests, 12 minutes at most
  --before <rev>    also puts on a slower disk of this revision
  --rounds <n>      how often everything is measured; figures are medians (default: 3)
  --seconds <n>     length of a measured run (default: 4)
  --requests <n>    of the part mixed (default: 5000000); fewer count as no measurement
  --dry             write no file
  --page            measure nothing; write the page and the chart from the kept result
  --help            this text

Parts that are not measured keep what the result of the last run says.`

export async function measurePeers(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      peers: { type: 'boolean' },
      only: { type: 'string', multiple: true },
      mixed: { type: 'boolean', default: false },
      before: { type: 'string' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '4' },
      requests: { type: 'string', default: String(mixed_requests) },
      dry: { type: 'boolean', default: false },
      page: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  if (values.page) return write(keptResult()!)
  if (!wrk_binary) throw new Error('wrk is needed to measure peers: apt-get install wrk')
  const began = performance.now()
  const chosen = chosenParts(values.only, values.mixed)
  for (const warning of pinThisProcess()) console.log(`*** ${warning} ***`)
  const subjects = await subjectsHere()
  const plan: Plan = {
    rounds: wholeNumber(values.rounds),
    seconds: wholeNumber(values.seconds),
    mixed_requests: wholeNumber(values.requests),
    missing: new Set(Object.keys(subjects).filter((name) => subjects[name]!.missing !== undefined)),
    before: values.before === undefined ? null : checkOut(values.before).folder,
    progress: (text) => console.error(`… ${Math.round((performance.now() - began) / 1_000)} s: ${text}`),
  }
  if (plan.before)
    subjects[before] = { how: 'the version that is compared with', version: versionIn(plan.before) }
  const kept = keptResult()
  const result: Result = {
    machine: thisMachine(),
    subjects: { ...kept?.subjects, ...subjects },
    parts: kept?.parts ?? {},
  }
  for (const name of chosen) await measure(name, plan, result, !values.dry)
  console.log(
    `\n${figuresSection(result)}\n\n${sideBySide(result)}\n\n${Math.round((performance.now() - began) / 1_000)} s`,
  )
}

/** Kept part by part: what was measured is not lost when a later part fails. */
async function measure(name: PartName, plan: Plan, result: Result, keep: boolean): Promise<void> {
  if (name.startsWith('flush') && slow_disk_missing)
    return console.log(`*** ${name}: ${slow_disk_missing} ***`)
  try {
    const { samples, failed } = await parts[name].measure(plan)
    const { rounds, seconds } = plan
    result.parts[name] = { ...runOf(), rounds, seconds, samples, failed }
    for (const one of judge(result).filter(({ aim, values }) => aim.part === name && values))
      plan.progress(`${one.aim.title}: ${measuredText(one)}, aim ${aimText(one.aim)}, ${verdict(one)}`)
    if (keep) write(result)
  } catch (error) {
    console.error(`*** ${name} failed, what was measured before stays: ${(error as Error).message} ***`)
    await killChildren()
    process.exitCode = 1
  }
}

function runOf(): Pick<Part, 'commit' | 'date'> {
  const changed = Bun.spawnSync(['git', '-C', root, 'status', '--porcelain', '--', 'src', ':!*.test.ts'])
  const mark = changed.stdout.toString().trim() === '' ? '' : ', src/ changed since'
  return { commit: versionIn(root) + mark, date: new Date().toISOString().slice(0, 10) }
}

async function subjectsHere(): Promise<Record<string, Subject>> {
  const subjects: Record<string, Subject> = {}
  for (const { name, how, available } of [...peers, ...queues]) {
    if (name === own) continue
    subjects[name] = { how, ...(await available()) }
    const missing = subjects[name].missing
    if (missing !== undefined) console.log(`*** ${name} is left out: ${missing} ***`)
  }
  return subjects
}

function chosenParts(only: string[] | undefined, mixed: boolean): PartName[] {
  const names = Object.keys(parts) as PartName[]
  if (!only) return names.filter((name) => parts[name].usual || (mixed && name === 'mixed'))
  const asked = only.flatMap((list) => list.split(','))
  const unknown = asked.find((name) => !Object.hasOwn(parts, name))
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}: ${names.join(', ')}`)
  return names.filter((name) => asked.includes(name))
}

function write(result: Result): void {
  mkdirSync(dirname(result_file), { recursive: true })
  const text = resultText(result)
  const kept = JSON.parse(text) as Result // rounded, as it is read again
  writeFileSync(result_file, text)
  writeFileSync(page_file, pageText(kept))
  writeFileSync(chart_file, chartText(kept))
}
