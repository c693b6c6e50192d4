// A check is a sentence of the contract and the calls that show whether it holds.

import type { Trial } from './trial.ts'

/** The source of a check: the two API documents, the decisions where they are silent, or additions to both. */
export const profiles = ['documents', 'contract', 'extensions'] as const
export type Profile = (typeof profiles)[number]

export interface Check {
  /** Stable, for reports and for `--only`: `kv.put-answers-the-version`. */
  name: string
  sentence: string
  /** Where the contract says it: `core 4`, `decisions 5 KV`. */
  section: string
  /** The longest time, in seconds, that the check lets pass; null for checks that need none. */
  passes_seconds: number | null
  profile: Profile
  run(t: Trial): Promise<void>
}

export interface Chapter {
  name: string
  checks: Check[]
}

type Told = [sentence: string, section: string, run: (t: Trial) => Promise<void>]

/** A chapter from its checks by name. */
export function chapter(
  name: string,
  checks: Record<string, Made | Told>,
  of_chapter: Profile = 'contract',
): Chapter {
  return {
    name,
    checks: Object.entries(checks).map(([own, made]) => {
      const check = Array.isArray(made) ? plain(...made) : made
      // Part 8 of the decisions is what was added to the contract.
      const profile = /decisions 8/.test(check.section) ? 'extensions' : of_chapter
      return { ...check, name: `${name}.${own}`, profile }
    }),
  }
}

/** A check before its chapter names it. */
export type Made = Omit<Check, 'profile'>

function plain(sentence: string, section: string, run: (t: Trial) => Promise<void>): Made {
  return { name: '', sentence, section, passes_seconds: null, run }
}

/** A check that lets time pass, this many seconds in all at the most. */
export function timed(passes_seconds: number, ...[sentence, section, run]: Told): Made {
  return { ...plain(sentence, section, run), passes_seconds }
}

/** Checks that are made for each of a list, under the names that they have. */
export function forEach<T>(all: readonly T[], make: (one: T) => Made): Record<string, Made> {
  return Object.fromEntries(all.map(make).map((check) => [check.name, check]))
}
