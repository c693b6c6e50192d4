// Rules that every answer keeps, whatever was asked. They are judged at each call of each check.

import type { Profile } from './check.ts'
import type { Answer } from './client.ts'
import { documentedStatuses, errorStatuses, marksErrors, timestamp } from './contract.ts'
import { operationOf } from './operations.ts'
import { hasSecret } from './shapes.ts'

export interface AnswerRule {
  name: string
  sentence: string
  section: string
  profile: Profile
  /** The fault of the answer, or null. */
  fault(answer: Answer): string | null
}

/** Of one rule, in the report. */
const shown_faults_max = 5

export class AnswerRules {
  readonly faults = new Map<string, string[]>()
  /** Operation to status to how often it was answered. */
  readonly operations = new Map<string, Map<number, number>>()
  readonly codes = new Set<string>()
  answers = 0

  judge(answer: Answer): void {
    this.answers += 1
    this.#count(answer)
    for (const rule of answer_rules) {
      const fault = rule.fault(answer)
      if (fault === null) continue
      const known = this.faults.get(rule.name) ?? []
      if (known.length < shown_faults_max)
        known.push(`${answer.sent.method} ${answer.sent.path.slice(0, 120)}: ${fault}`)
      this.faults.set(rule.name, known)
    }
  }

  #count({ sent, status, json }: Answer): void {
    const operation = operationOf(sent)
    if (operation) {
      const statuses = this.operations.get(operation) ?? new Map<number, number>()
      this.operations.set(operation, statuses.set(status, (statuses.get(status) ?? 0) + 1))
    }
    const code = json?.error?.code
    if (typeof code === 'string') this.codes.add(code)
  }
}

/** The rules of the two API documents for every answer. */
const documented: Omit<AnswerRule, 'profile'>[] = [
  {
    name: 'every-answer.has-request-id',
    sentence: 'Every response carries the header X-Request-Id',
    section: 'core 1.3',
    fault: ({ headers }) => (headers['x-request-id'] ? null : 'X-Request-Id is missing'),
  },
  {
    name: 'every-answer.is-json',
    sentence: 'Response bodies are JSON (application/json)',
    section: 'core 1.6',
    fault: (answer) => {
      if (!hasBody(answer) || answer.text === '') return null
      const type = answer.headers['content-type'] ?? 'missing'
      if (!/^application\/json($|;)/.test(type)) return `content-type is ${type}`
      return answer.json === undefined ? 'the body is not JSON' : null
    },
  },
  {
    name: 'every-answer.error-object',
    sentence: 'All errors under /v1 use the envelope {error: {code, message}}',
    section: 'core 2, core 7',
    fault: (answer) => {
      if (answer.status < 400 || !hasBody(answer) || !answer.sent.path.startsWith('/v1/')) return null
      const { code, message } = answer.json?.error ?? {}
      return typeof code === 'string' && typeof message === 'string'
        ? null
        : `${answer.status} without error.code and error.message`
    },
  },
  {
    name: 'every-answer.code-status',
    sentence: 'A code of the table of errors comes with its status',
    section: 'core 7',
    fault: ({ status, json }) => {
      const expected = documentedStatuses[json?.error?.code]
      return expected && !expected.includes(status) ? `${json.error.code} came with ${status}` : null
    },
  },
  {
    name: 'every-answer.secrets',
    sentence: 'Keys are returned once, at creation or rotation, and never in later reads',
    section: 'core 5.3',
    fault: ({ sent, text }) =>
      !(sent.method === 'POST' && gives_secrets.test(sent.path)) && hasSecret(text)
        ? 'a secret stands in the answer'
        : null,
  },
]

/** The rules that the decisions add. */
const decided: Omit<AnswerRule, 'profile'>[] = [
  {
    name: 'every-answer.request-id',
    sentence:
      'Every response carries an X-Request-Id of 8 to 64 letters, digits, dots, dashes and underscores',
    section: 'core 1.3, decisions 1',
    fault: ({ headers }) => {
      const id = headers['x-request-id']
      return /^[A-Za-z0-9_.-]{8,64}$/.test(id ?? '') ? null : `X-Request-Id is ${id ?? 'missing'}`
    },
  },
  {
    name: 'every-answer.json',
    sentence:
      'Every answer but 204, 304 and those to HEAD has a body, which is a JSON object (application/json)',
    section: 'core 1.6, decisions 1',
    fault: (answer) => {
      if (!hasBody(answer)) return answer.text === '' ? null : `a ${answer.status} has a body`
      const type = answer.headers['content-type'] ?? 'missing'
      if (!/^application\/json($|;)/.test(type)) return `content-type is ${type}`
      return typeof answer.json === 'object' && answer.json !== null ? null : 'the body is not a JSON object'
    },
  },
  {
    name: 'every-answer.error-envelope',
    sentence:
      'All errors use the envelope {error: {code, message, request_id}}; under /api and /hook it says success: false',
    section: 'core 7, decisions 1',
    fault: envelopeFault,
  },
  {
    name: 'every-answer.error-status',
    sentence: 'One code has one status, save VERSION_MISMATCH',
    section: 'decisions 1',
    fault: ({ status, json }) => {
      const expected = errorStatuses[json?.error?.code]
      return expected && !expected.includes(status) ? `${json.error.code} came with ${status}` : null
    },
  },
  {
    name: 'every-answer.no-internal-error',
    sentence: 'No request of a client is answered with 500',
    section: 'decisions 1',
    fault: ({ status, text }) => (status === 500 ? `500 ${text.slice(0, 200)}` : null),
  },
  {
    name: 'every-answer.success-envelope',
    sentence:
      'Authenticated endpoints under /api answer with the envelope {success, data}, those under /v1 with the plain object',
    section: 'edge 1.1, decisions 1',
    fault: successFault,
  },
  {
    name: 'every-answer.timestamps',
    sentence: 'Timestamps are ISO 8601, UTC, with milliseconds; their names end in _at, or At under /api',
    section: 'decisions 1',
    fault: ({ json }) => timeFault(json, ''),
  },
]

export const answer_rules: readonly AnswerRule[] = [
  ...documented.map((rule): AnswerRule => ({ ...rule, profile: 'documents' })),
  ...decided.map((rule): AnswerRule => ({ ...rule, profile: 'contract' })),
]

/** Creation and rotation. */
const gives_secrets = /^\/v1\/(tenants|agents|approval-keys)$|\/rotate-(key|signing-secret)$/

function hasBody({ sent, status }: Answer): boolean {
  return sent.method !== 'HEAD' && status !== 204 && status !== 304
}

function envelopeFault(answer: Answer): string | null {
  const { sent, status, json, headers } = answer
  if (status < 400 || !hasBody(answer) || isBlocked(answer)) return null
  const error = json?.error
  if (typeof error?.code !== 'string' || typeof error.message !== 'string' || error.message === '')
    return `${status} without error.code and error.message`
  if (error.request_id !== headers['x-request-id']) return 'error.request_id is not that of the header'
  if (error.details !== undefined && (typeof error.details !== 'object' || error.details === null))
    return 'error.details is not an object'
  const marked = marksErrors(sent.path)
  if (marked && json.success !== false) return 'no success: false beside the error'
  return !marked && 'success' in json ? 'success beside the error, in the envelope of /v1' : null
}

/** A blocked check of a rate limit is an answer, not an error. */
function isBlocked({ sent, status, json }: Answer): boolean {
  return status === 429 && sent.path.startsWith('/api/rate-limit/check') && json?.data !== undefined
}

function successFault(answer: Answer): string | null {
  const { sent, status, json } = answer
  if (status >= 400 || !hasBody(answer) || !/^\/(v1|api)\//.test(sent.path)) return null
  const wrapped = json?.success === true && typeof json.data === 'object' && json.data !== null
  if (sent.path.startsWith('/api/')) return wrapped ? null : 'no {success: true, data: {…}}'
  return wrapped ? 'wrapped in {success, data}' : null
}

/** The client's own JSON: nothing in it is the service's. */
const of_the_client = ['value', 'payload', 'callback_payload', 'metadata', 'headers', 'body', 'query']

function timeFault(value: unknown, name: string): string | null {
  if (typeof value === 'string') {
    const is_time = /(_at|[a-z]At)$/.test(name)
    return is_time && !timestamp.test(value) ? `${name} is ${value.slice(0, 60)}` : null
  }
  if (typeof value !== 'object' || value === null) return null
  for (const [member, inner] of Object.entries(value)) {
    if (of_the_client.includes(member)) continue
    const fault = timeFault(inner, Array.isArray(value) ? name : member)
    if (fault) return fault
  }
  return null
}
