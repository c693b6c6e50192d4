// The findings of Schemathesis, from its report, and which of them are excused.

import { readFileSync } from 'node:fs'
import { resolved } from '../../mcp/schema.ts'

export interface Finding {
  /** The check that failed, `status_code_conformance`. */
  check: string
  /** `POST /v1/tenants`. */
  operation: string
  /** The answer: `400 VALIDATION_FAILED /cost must not be above limit`. */
  answer: string
  /** The message of Schemathesis. */
  message: string
  /** How to ask again. */
  request: string
}

export interface Excuse {
  check: string
  /** `*`, one operation, several, or all of a group. */
  operation: string | string[]
  /** A regular expression that the whole answer matches. */
  answer: string
  reason: string
  /** Met only when enough time passes within the run, so a run need not meet it. */
  timed?: true
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

interface Operation {
  parameters?: { in: string }[]
  requestBody?: { content: Record<string, { schema?: BodySchema }> }
}

interface BodySchema {
  properties?: Record<string, unknown>
  required?: string[]
}

const { paths } = resolved(
  JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, Operation>>
    components: { schemas: object }
  },
)

/** `POST /v1/tenants`, as openapi.json describes it. */
function operationOf(name: string): Operation | undefined {
  const [method = '', path = ''] = name.split(' ')
  return paths[path]?.[method.toLowerCase()]
}

/** Operations that an excuse names by what they have in common. */
export const groups: Record<string, (operation: string) => boolean> = {
  'sends to an inbox': (name) => name.split(' ')[1]?.startsWith('/hook/') ?? false,
  'has a path or query parameter': (name) =>
    operationOf(name)?.parameters?.some((parameter) => ['path', 'query'].includes(parameter.in)) ?? false,
}

const error_events = ['NonFatalError', 'FatalError', 'Interrupted']

/** The findings of one run of Schemathesis, from its report in NDJSON. */
export class Report {
  readonly findings: Finding[] = []
  /** Those that were answered. */
  requests = 0
  #errors: string[] = []
  #ended = false

  read(line: string): void {
    const event = JSON.parse(line) as Record<string, unknown> & {
      ScenarioFinished?: { recorder?: Scenario }
    }
    const interactions = Object.values(event.ScenarioFinished?.recorder?.interactions ?? {})
    this.requests += interactions.filter(({ response }) => response).length
    this.findings.push(...findingsOf(line))
    for (const name of error_events) {
      if (name in event)
        this.#errors.push(`${name} ${JSON.stringify(event[name]).slice(0, event_characters_max)}`)
    }
    if ('EngineFinished' in event) this.#ended = true
  }

  /** Why the run says nothing about the service, or null. */
  failure(exit_status: number): string | null {
    if (this.#errors.length > 0) return `schemathesis met errors: ${this.#errors.join('; ')}`
    if (!this.#ended) return 'the report has no end'
    if (this.requests === 0) return 'nothing was tested'
    if (exit_status !== 0 && this.findings.length === 0)
      return `schemathesis ended with ${exit_status} without a finding`
    return null
  }
}

/** The findings of one line of the report; most lines have none. */
export function findingsOf(line: string): Finding[] {
  const scenario = (JSON.parse(line) as { ScenarioFinished?: { recorder?: Scenario } }).ScenarioFinished
    ?.recorder
  return Object.entries(scenario?.checks ?? {}).flatMap(([id, checks]) =>
    checks
      .filter(({ status }) => status === 'failure')
      .map(({ name, failure_info }) => ({
        check: name,
        operation: failure_info?.failure?.operation ?? '?',
        answer: `${answerOf(scenario?.interactions?.[id])}${fieldsOf(failure_info, scenario?.interactions?.[id])}`,
        message: (failure_info?.failure?.message ?? '').replaceAll('\n', ' '),
        request: requestOf(scenario?.interactions?.[id]),
      })),
  )
}

const shown_characters_max = 300
const event_characters_max = 1_000

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

/**
 * Describes the fields of the body that break the schema, when each has an excuse. ` to null as plan`: it is null and
 * optional, so it counts as absent. ` with plan, which it ignores`: other operations have such a member.
 */
function fieldsOf(info: Check['failure_info'], interaction: Interaction | undefined): string {
  const message = info?.failure?.message ?? ''
  const schema = operationOf(info?.failure?.operation ?? '')?.requestBody?.content['application/json']?.schema
  const body = bodyOf(interaction)
  if (!schema || !body) return ''
  const fields = new Set([...message.matchAll(broken)].map(([, one, other]) => (one ?? other)!))
  const [known, ignored] = [[] as string[], [] as string[]]
  for (const field of fields) (Object.hasOwn(schema.properties ?? {}, field) ? known : ignored).push(field)
  if (known.some((field) => body[field] !== null || schema.required?.includes(field))) return ''
  const as_null = known.length === 0 ? '' : ` to null as ${known.join(', ')}`
  return ignored.length === 0 ? as_null : `${as_null} with ${ignored.join(', ')}, which it ignores`
}

/** `in body - plan: Incorrect type`, and of several `violates minimum at /allOf/0/properties/limit`. */
const broken = /in body - (\w+)(?: -> [^:]+)?: |violates `\w+` at (?:\/allOf\/\d+)*\/properties\/(\w+)/g

function bodyOf(interaction: Interaction | undefined): Record<string, unknown> | null {
  try {
    return JSON.parse(decoded(interaction?.request?.body?.$base64)) as Record<string, unknown>
  } catch {
    return null
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
  const found = answers.map((one) =>
    excuses.find(({ check, operation, answer }) => {
      const same = check === finding.check && isFor(operation, finding.operation)
      return same && new RegExp(`^(?:${answer})$`).test(one)
    }),
  )
  return found.every((excuse) => excuse !== undefined) ? found : []
}

/** The excuses that a whole run should have met and did not. */
export function unmetOf(excuses: readonly Excuse[], met: ReadonlySet<Excuse>): Excuse[] {
  return excuses.filter((excuse) => !excuse.timed && !met.has(excuse))
}

function isFor(named: Excuse['operation'], operation: string): boolean {
  return [named].flat().some((name) => name === '*' || name === operation || groups[name]?.(operation))
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
