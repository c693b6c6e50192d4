// The result as text. `--json` prints the report itself.

import type { Chapter } from './check.ts'
import type { Report, Result } from './runner.ts'

/** What failed with its last calls, what was not run with the reason, and the counts. */
export function textOf(report: Report): string {
  const failed = report.results.filter(({ outcome }) => outcome === 'failed')
  const left_out = report.results.filter(({ outcome }) => outcome === 'not_run')
  const parts = [
    ...failed.map(failedText),
    ...(left_out.length > 0 ? [notRunText(left_out)] : []),
    `${report.passed} passed, ${report.failed} failed, ${report.not_run} not run ` +
      `(${report.answers} answers, ${(report.duration_ms / 1_000).toFixed(1)} s)`,
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

/** Every check with its sentence, for `--list`. */
export function listOf(chapters: readonly Chapter[]): string {
  const lines = chapters.flatMap(({ checks }) =>
    checks.map(({ name, sentence, section }) => `${name}\n  ${sentence} (${section})`),
  )
  return `${lines.join('\n')}\n`
}
