// The result as text. `--json` prints the report itself.

import { answer_rules } from './answer-rules.ts'
import { type Chapter, type Check, type Profile, profiles } from './check.ts'
import type { Report, Result } from './runner.ts'

/** The failed checks with their last calls, the checks that were not run with the reason, and the counts. */
export function textOf(report: Report): string {
  const failed = report.results.filter(({ outcome }) => outcome === 'failed')
  const left_out = report.results.filter(({ outcome }) => outcome === 'not_run')
  const parts = [
    ...failed.map(failedText),
    ...(left_out.length > 0 ? [notRunText(left_out)] : []),
    `${report.passed} passed, ${report.failed} failed, ${report.not_run} not run ` +
      `(profile ${report.profile}, ${report.answers} answers, ${(report.duration_ms / 1_000).toFixed(1)} s)`,
  ]
  return `${parts.join('\n\n')}\n`
}

function failedText({ name, sentence, section, reason, calls }: Result): string {
  const lines = [
    `FAILED ${name}`,
    `  ${sentence} (${section})`,
    `  ${reason}`,
    ...calls.map((call) => `    ${call}`),
  ]
  return lines.join('\n')
}

/** One line for each reason. */
function notRunText(results: Result[]): string {
  const reasons = new Map<string, string[]>()
  for (const { name, reason } of results)
    reasons.set(reason ?? '', [...(reasons.get(reason ?? '') ?? []), name])
  const lines = [...reasons].map(
    ([reason, names]) => `  ${reason}:\n${names.map((name) => `    ${name}`).join('\n')}`,
  )
  return `NOT RUN\n${lines.join('\n')}`
}

/** Every check of a profile with its sentence, for `--list`. */
export function listOf(chapters: readonly Chapter[], { profile }: { profile: Profile }): string {
  const all: Pick<Check, 'name' | 'sentence' | 'section' | 'profile'>[] = [
    ...chapters.flatMap(({ checks }) => checks),
    ...answer_rules,
  ]
  const wanted = all.filter((one) => profiles.indexOf(one.profile) <= profiles.indexOf(profile))
  const lines = wanted.map((one) => `${one.name}\n  ${one.sentence} (${one.profile}: ${one.section})`)
  return `${lines.join('\n')}\n`
}
