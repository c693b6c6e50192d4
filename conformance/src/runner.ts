// Runs checks: those that need no time beside each other, then those that let it pass, on one timeline.

import { readFileSync } from 'node:fs'
import { type AnswerRule, AnswerRules, answer_rules } from './answer-rules.ts'
import { Failure, NotRun } from './assert.ts'
import { type Chapter, type Check, type Profile, profiles } from './check.ts'
import { type Answer, Client } from './client.ts'
import { type Options, UsageError } from './options.ts'
import { noTime, realTime, SharedTime, type Timeline } from './timeline.ts'
import { masked, Trial } from './trial.ts'
import { World } from './world.ts'

export interface Result {
  name: string
  sentence: string
  section: string
  profile: Profile
  outcome: 'passed' | 'failed' | 'not_run'
  /** Why it failed or was not run. */
  reason: string | null
  /** The last calls of a check that failed. */
  calls: string[]
  duration_ms: number
}

export interface Report {
  suite_version: string
  url: string
  /** Checks of this profile, and of those that it contains. */
  profile: Profile
  started_at: string
  duration_ms: number
  /** The service has a test clock. */
  test_clock: boolean
  passed: number
  failed: number
  not_run: number
  answers: number
  /** In the order of `--list`. */
  results: Result[]
  /** Operation to the statuses that it was seen to answer. */
  operations: Record<string, number[]>
  /** Error codes that were seen. */
  codes: string[]
}

export type Reported = (result: Result) => void

/** Throws when the service does not answer at all, or says that it is away, and a UsageError when it cannot be judged with these options. */
export async function run(
  chapters: readonly Chapter[],
  options: Options,
  reported: Reported = () => {},
): Promise<Report> {
  const started_ms = Date.now()
  const rules = new AnswerRules()
  const client = new Client(options.url, options.timeout_ms)
  const world = new World(options, client, rules)
  const wanted = selected(chapters, options)
  const wanted_rules = answer_rules.filter((rule) => isWanted(rule, options))
  if (wanted.length === 0)
    throw new UsageError(
      `no check of the profile ${options.profile} has a name with ${options.only.join(', ')}`,
    )
  try {
    await world.start()
    requireService(await client.send({ method: 'GET', path: '/v1/tenants/-', headers: {} }))
    await world.requireKeys()
    const test_clock = await world.clock.isServed().catch(() => false)
    const made = await runChecks(world, wanted, test_clock, reported)
    const results = wanted.map(({ check }) => made.find(({ name }) => name === check.name)!)
    for (const rule of wanted_rules) {
      const result = ruleResult(rule, rules)
      results.push(result)
      reported(result)
    }
    return reportOf(options, results, rules, { started_ms, test_clock })
  } finally {
    await world.stop()
  }
}

/** One that is away says so to each request of each check, and the suite would wait each time. */
function requireService({ status, json }: Answer): void {
  if (status < 500) return
  const code = json?.error?.code
  const said = typeof code === 'string' ? `${status} ${code}` : status
  throw new Error(`it answers the first request with ${said}: nothing more is sent`)
}

type Named = { check: Check; chapter: string }

function selected(chapters: readonly Chapter[], options: Options): Named[] {
  const all = chapters.flatMap(({ name, checks }) => checks.map((check) => ({ check, chapter: name })))
  return all.filter(({ check }) => isWanted(check, options))
}

function isWanted(one: { name: string; profile: Profile }, { only, profile }: Options): boolean {
  if (profiles.indexOf(one.profile) > profiles.indexOf(profile)) return false
  return only.length === 0 || only.some((part) => one.name.includes(part))
}

async function runChecks(
  world: World,
  all: Named[],
  test_clock: boolean,
  reported: Reported,
): Promise<Result[]> {
  const results: Result[] = []
  const keep = (result: Result) => {
    results.push(result)
    reported(result)
  }
  const untimed = all.filter(({ check }) => check.passes_seconds === null)
  const still = noTime(world.clock)
  await pooled(untimed, world.options.at_once, async (named) => keep(await outcomeOf(world, named, still)))
  const timed = all.filter(({ check }) => check.passes_seconds !== null)
  if (test_clock) {
    for (const result of await onSharedTime(world, timed)) keep(result)
    return results
  }
  const { slow_seconds } = world.options
  const real = realTime(world.clock)
  await Promise.all(
    timed.map(async (named) => {
      const seconds = named.check.passes_seconds ?? 0
      if (slow_seconds === null) keep(notRun(named.check, 'needs a test clock, or --slow'))
      else if (seconds > slow_seconds) keep(notRun(named.check, `needs a test clock, or --slow ${seconds}`))
      else keep(await outcomeOf(world, named, real))
    }),
  )
  return results
}

/** All of them begin before time moves for the first. */
async function onSharedTime(world: World, timed: Named[]): Promise<Result[]> {
  const time = new SharedTime(world.clock)
  for (const _ of timed) time.enter()
  return Promise.all(
    timed.map(async (named) => {
      const result = await outcomeOf(world, named, time.timeline)
      time.leave()
      return result
    }),
  )
}

async function outcomeOf(world: World, { check, chapter }: Named, time: Timeline): Promise<Result> {
  const trial = new Trial(world, chapter, time)
  const started_ms = Date.now()
  const ended = (outcome: Result['outcome'], reason: string | null, calls: string[] = []): Result => {
    const { name, sentence, section, profile } = check
    return { name, sentence, section, profile, outcome, reason, calls, duration_ms: Date.now() - started_ms }
  }
  try {
    await check.run(trial)
    return ended('passed', null)
  } catch (error) {
    if (error instanceof NotRun) return ended('not_run', error.message)
    // An answer that is not at all as expected ends a check in an error of its own.
    const reason =
      error instanceof Failure ? error.message : `the check ended early: ${(error as Error).message}`
    return ended('failed', masked(reason), trial.evidence())
  }
}

function notRun({ name, sentence, section, profile }: Check, reason: string): Result {
  return { name, sentence, section, profile, outcome: 'not_run', reason, calls: [], duration_ms: 0 }
}

function ruleResult({ name, sentence, section, profile }: AnswerRule, rules: AnswerRules): Result {
  const head = { name, sentence, section, profile, duration_ms: 0 }
  if (rules.answers === 0) return { ...head, outcome: 'not_run', reason: 'no check had an answer', calls: [] }
  const faults = (rules.faults.get(name) ?? []).map(masked)
  const outcome = faults.length === 0 ? 'passed' : 'failed'
  return { ...head, outcome, reason: faults[0] ?? null, calls: faults }
}

/** Runs `work` on each, at most `at_once` at the same time. */
async function pooled<T>(all: T[], at_once: number, work: (one: T) => Promise<void>): Promise<void> {
  const left = [...all]
  const workers = Array.from({ length: at_once }, async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next)
  })
  await Promise.all(workers)
}

function reportOf(
  { url, profile }: Options,
  results: Result[],
  rules: AnswerRules,
  { started_ms, test_clock }: { started_ms: number; test_clock: boolean },
): Report {
  const count = (outcome: Result['outcome']) => results.filter((result) => result.outcome === outcome).length
  const operations = [...rules.operations].map(([operation, statuses]): [string, number[]] => [
    operation,
    [...statuses.keys()].sort(),
  ])
  return {
    suite_version: versionOf(),
    url,
    profile,
    started_at: new Date(started_ms).toISOString(),
    duration_ms: Date.now() - started_ms,
    test_clock,
    passed: count('passed'),
    failed: count('failed'),
    not_run: count('not_run'),
    answers: rules.answers,
    results,
    operations: Object.fromEntries(operations.sort()),
    codes: [...rules.codes].sort(),
  }
}

function versionOf(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
}
