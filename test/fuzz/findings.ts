// What Schemathesis found, from its report, and which of it is excused. No I/O.

export interface Finding {
  /** The check that failed, `status_code_conformance`. */
  check: string
  /** `POST /v1/tenants`. */
  operation: string
  /** What was answered: `400 VALIDATION_FAILED /cost must not be above limit`. */
  answer: string
  /** What Schemathesis says. */
  message: string
  /** How to ask again. */
  request: string
}

export interface Excuse {
  check: string
  /** One operation, or `*`. */
  operation: string
  /** A regular expression that the whole answer matches. */
  answer: string
  reason: string
}

interface Scenario {
  checks?: Record<string, Check[]>
  interactions?: Record<string, Interaction>
}

interface Check {
  name: string
  status: string
  failure_info?: { failure?: { operation?: string; message?: string } }
}

interface Interaction {
  request?: { method: string; uri: string; body?: { $base64?: string } | null }
  response?: { status_code: number; content?: { $base64?: string } | null } | null
}

/** The findings of one line of the report in NDJSON; most lines have none. */
export function findingsOf(line: string): Finding[] {
  const scenario = (JSON.parse(line) as { ScenarioFinished?: { recorder?: Scenario } }).ScenarioFinished
    ?.recorder
  return Object.entries(scenario?.checks ?? {}).flatMap(([id, checks]) =>
    checks
      .filter(({ status }) => status === 'failure')
      .map(({ name, failure_info }) => ({
        check: name,
        operation: failure_info?.failure?.operation ?? '?',
        answer: `${answerOf(scenario?.interactions?.[id])}${nullOf(failure_info, scenario?.interactions?.[id])}`,
        message: (failure_info?.failure?.message ?? '').replaceAll('\n', ' '),
        request: requestOf(scenario?.interactions?.[id]),
      })),
  )
}

const shown_characters_max = 300

function answerOf(interaction: Interaction | undefined): string {
  const response = interaction?.response
  if (!response) return 'no answer'
  const text = decoded(response.content?.$base64)
  return [response.status_code, ...errorOf(text)].join(' ')
}

/** The code of an error, and each issue that it names. */
function errorOf(text: string): string[] {
  try {
    const { error } = JSON.parse(text) as {
      error?: { code?: string; details?: { issues?: { path: string; message: string }[] } }
    }
    if (!error?.code) return []
    const issues = (error.details?.issues ?? []).map(({ path, message }) => `${path} ${message}`)
    return issues.length === 0 ? [error.code] : [error.code, issues.join('; ')]
  } catch {
    return []
  }
}

/** ` to null as plan`: the field that is not of its type is null, which counts as absent where it is optional. */
function nullOf(info: Check['failure_info'], interaction: Interaction | undefined): string {
  const field = /in body - (\w+): Incorrect type/.exec(info?.failure?.message ?? '')?.[1]
  if (field === undefined) return ''
  try {
    const body = JSON.parse(decoded(interaction?.request?.body?.$base64)) as Record<string, unknown>
    return body[field] === null ? ` to null as ${field}` : ''
  } catch {
    return ''
  }
}

function requestOf(interaction: Interaction | undefined): string {
  const request = interaction?.request
  if (!request) return '?'
  const body = decoded(request.body?.$base64)
  return `${request.method} ${request.uri} ${body}`.trim().slice(0, shown_characters_max)
}

function decoded(base64: string | undefined): string {
  return Buffer.from(base64 ?? '', 'base64').toString('utf8')
}

/** The excuses that name this finding, one for each issue of its answer. Empty unless each has one. */
export function excusesFor(finding: Finding, excuses: readonly Excuse[]): Excuse[] {
  const [, status, issues] = /^(400 VALIDATION_FAILED )(.+)$/.exec(finding.answer) ?? []
  const answers = issues === undefined ? [finding.answer] : issues.split('; ').map((issue) => status + issue)
  const found = answers.map((told) =>
    excuses.find(({ check, operation, answer }) => {
      const same = check === finding.check && (operation === '*' || operation === finding.operation)
      return same && new RegExp(`^(?:${answer})$`).test(told)
    }),
  )
  return found.every((excuse) => excuse !== undefined) ? found : []
}

/** One of each kind, in the order of their first time. */
export function distinct(findings: readonly Finding[]): Finding[] {
  const seen = new Map<string, Finding>()
  for (const finding of findings) {
    const kind = [finding.check, finding.operation, finding.answer].join('\n')
    if (!seen.has(kind)) seen.set(kind, finding)
  }
  return [...seen.values()]
}
