// Writes docs/errors.md from the error codes. A test fails when the file in git is not this.

import { type ErrorCode, errorCodes, errors } from '../src/base/errors.ts'
import '../src/features.ts'
import { wrapped } from './clients/print.ts'

const columns_max = 120

const intro = `# Errors

Every error has a code that says what went wrong and what to do about it; each code is listed below. An error has this
body:

\`\`\`json
{
  "error": {
    "code": "QUOTA_EXCEEDED",
    "message": "This tenant has reached a limit of its plan.",
    "details": { "quota": "agents", "used": 25, "limit": 25 },
    "request_id": "req_01m7yjrze65g4tymzk1ehh1byc"
  }
}
\`\`\`

\`code\` is for programs: each has one status, except \`VERSION_MISMATCH\`. \`message\` is for people and may be reworded.
\`details\` is present only where this page says so. \`request_id\` is the \`X-Request-Id\` of the answer.
\`/openapi.json\` has the same codes in \`x-errors\`, for clients: status, message, the next step, and the class by which
the [command line](cli.md#errors-and-exit-codes) exits.

**Repeating a request.** 408, 429, 503 and 409 \`IDEMPOTENCY_IN_PROGRESS\` are temporary: try again, after \`Retry-After\`
seconds when it is sent. Everything else fails again until the request, or the state that it meets, changes. Only 2xx answers are kept for an [Idempotency-Key](idempotency.md), so the same key may be used again after
an error.`

/** Sections of the page: a status stands in the first one that has it. */
const sections: readonly [title: string, has: (status: number) => boolean][] = [
  ['400: the request itself', (status) => status === 400],
  ['401, 402, 403: the key and what it may do', (status) => status <= 403],
  ['404, 405, 410: what is asked for', (status) => [404, 405, 410].includes(status)],
  ['408, 409, 412: timing and state', (status) => [408, 409, 412].includes(status)],
  ['413, 415, 422: what was sent', (status) => status < 429],
  ['429: too fast', (status) => status < 500],
  ['5xx: the service', () => true],
]

/** The text of docs/errors.md. */
export function errorsText(): string {
  const titleOf = (code: ErrorCode) => sections.find(([, has]) => has(errors[code].status))![0]
  const codes = errorCodes()
  const texts = sections.map(([title]) =>
    [`## ${title}`, ...codes.filter((code) => titleOf(code) === title).map(entryOf)].join('\n\n'),
  )
  return `${[intro, ...texts].join('\n\n')}\n`
}

function entryOf(code: ErrorCode): string {
  const { status, when, next } = errors[code]
  return `### ${code}\n\n${paragraph(`**${status}.** ${when}`)}\n\n${paragraph(`**Next:** ${next}`)}`
}

/** Code and links stay whole. */
function paragraph(text: string): string {
  return wrapped(text.match(/(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+/g)!, columns_max).join('\n')
}

if (import.meta.main) await Bun.write(new URL('../docs/errors.md', import.meta.url), errorsText())
