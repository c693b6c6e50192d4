// Rules that every answer keeps, whatever was asked. They are judged at each call of each check.

import type { Answer } from './client.ts'
import { errorStatuses, marksErrors, timestamp } from './contract.ts'
import { operationOf } from './operations.ts'
import { hasSecret } from './shapes.ts'

export interface AnswerRule {
  name: string
  sentence: string
  section: string
  /** What is wrong with the answer, or null. */
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

export const answer_rules: AnswerRule[] = [
  {
    name: 'every-answer.request-id',
    sentence: 'Every response carries the header X-Request-Id, errors and 404s included',
    section: 'core 1.3',
    fault: ({ headers }) => {
      const id = headers['x-request-id']
      return /^[A-Za-z0-9_.-]{8,64}$/.test(id ?? '') ? null : `X-Request-Id is ${id ?? 'missing'}`
    },
  },
  {
    name: 'every-answer.json',
    sentence: 'Response bodies are JSON (application/json)',
    section: 'core 1.6',
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
  {
    name: 'every-answer.secrets',
    sentence: 'Keys and signing secrets are returned once, at creation or rotation, and never in later reads',
    section: 'core 5.3',
    fault: ({ sent, text }) => {
      const may = sent.method === 'POST' && /^\/v1\/(tenants|agents|approval-keys)(\/|$)/.test(sent.path)
      return !may && hasSecret(text) ? 'a secret stands in the answer' : null
    },
  },
]

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
  const outer = Object.keys(json).sort().join()
  const expected = marksErrors(sent.path) ? 'error,success' : 'error'
  if (outer !== expected) return `members ${outer} beside the error, expected ${expected}`
  return json.success === true ? 'success is true' : null
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
