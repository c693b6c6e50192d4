// A check is a sentence of the contract and the calls that show whether it holds.

import type { Trial } from './trial.ts'

export interface Check {
  /** Stable, for reports and for `--only`: `kv.put-answers-the-version`. */
  name: string
  sentence: string
  /** Where the contract says it: `core 4`, `decisions 5 KV`. */
  section: string
  /** The longest time, in seconds, that the check lets pass; null for checks that need none. */
  passes_seconds: number | null
  run(t: Trial): Promise<void>
}

export interface Chapter {
  name: string
  checks: Check[]
}

type Told = [sentence: string, section: string, run: (t: Trial) => Promise<void>]

/** A chapter from its checks by name. */
export function chapter(name: string, checks: Record<string, Check | Told>): Chapter {
  return {
    name,
    checks: Object.entries(checks).map(([own, made]) => {
      const check = Array.isArray(made) ? plain(...made) : made
      return { ...check, name: `${name}.${own}` }
    }),
  }
}

function plain(sentence: string, section: string, run: (t: Trial) => Promise<void>): Check {
  return { name: '', sentence, section, passes_seconds: null, run }
}

/** A check that lets time pass, this many seconds in all at the most. */
export function timed(passes_seconds: number, ...[sentence, section, run]: Told): Check {
  return { ...plain(sentence, section, run), passes_seconds }
}

/** Checks that are made for each of a list, under the names that they have. */
export function forEach<T>(all: readonly T[], make: (one: T) => Check): Record<string, Check> {
  return Object.fromEntries(all.map(make).map((check) => [check.name, check]))
}
