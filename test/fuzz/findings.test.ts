import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { routes } from '../../src/features.ts'
import type { Tenant } from '../attacks/lib/service.ts'
import {
  distinct,
  type Excuse,
  excusesFor,
  type Finding,
  findingsOf,
  groups,
  Report,
  unmetOf,
} from './findings.ts'
import { onlyLoopback } from './network.ts'
import { settingsFor } from './settings.ts'

const excuses = JSON.parse(readFileSync(new URL('excused.json', import.meta.url), 'utf8')) as Excuse[]

function base64(value: unknown): { $base64: string } {
  return { $base64: Buffer.from(JSON.stringify(value)).toString('base64') }
}

function lineOf(body: unknown, answer: unknown, message = ''): string {
  const failure = { operation: 'POST /v1/tenants', message }
  const checks = {
    a: [
      { name: 'not_a_server_error', status: 'success' },
      { name: 'negative_data_rejection', status: 'failure', failure_info: { failure } },
    ],
  }
  const request = { method: 'POST', uri: 'http://127.0.0.1:1/v1/tenants', body: base64(body) }
  const interactions = { a: { request, response: { status_code: 400, content: base64(answer) } } }
  return JSON.stringify({ ScenarioFinished: { recorder: { checks, interactions } } })
}

describe('a finding', () => {
  test('is a check that failed, with the code and the issues of the answer', () => {
    const issues = [
      { path: '/name', message: 'is required' },
      { path: '/plan', message: 'is none' },
    ]
    const error = { code: 'VALIDATION_FAILED', details: { issues } }
    expect(findingsOf(lineOf({ plan: 1 }, { error }))).toEqual([
      {
        check: 'negative_data_rejection',
        operation: 'POST /v1/tenants',
        answer: '400 VALIDATION_FAILED /name is required; /plan is none',
        message: '',
        request: 'POST http://127.0.0.1:1/v1/tenants {"plan":1}',
      },
    ])
  })

  test('says when the field that is not of its type is null, and only then', () => {
    const message = 'Invalid component: in body - plan: Incorrect type'
    const answers = [null, 1].map((plan) => findingsOf(lineOf({ plan }, {}, message))[0]!.answer)
    expect(answers).toEqual(['400 to null as plan', '400'])
  })

  test('does not say it of a field that is required', () => {
    const message = 'Invalid component: in body - name: Incorrect type'
    expect(findingsOf(lineOf({ name: null }, {}, message))[0]!.answer).toBe('400')
  })

  test('says when the field is a member of other operations alone', () => {
    const answers = ['grace_seconds: Value greater than maximum', 'none: Incorrect type'].map(
      (fault) => findingsOf(lineOf({}, {}, `Invalid component: in body - ${fault}`))[0]!.answer,
    )
    expect(answers).toEqual(['400 with grace_seconds, which it ignores', '400 with none, which it ignores'])
  })

  test('says it of each field that breaks the schema, or of none', () => {
    const faults =
      'violates `enum` at /allOf/0/properties/plan/allOf/0 - violates `minimum` at /properties/none'
    const answers = [null, 1].map(
      (plan) => findingsOf(lineOf({ plan }, {}, `Invalid component: in body   - ${faults}`))[0]!.answer,
    )
    expect(answers).toEqual(['400 to null as plan with none, which it ignores', '400'])
  })

  test('is in no other line', () => {
    expect(findingsOf('{"PhaseStarted": {"id": "1"}}')).toEqual([])
  })

  test('is reported once for each check, operation and answer', () => {
    const finding = findingsOf(lineOf({}, {}))[0]!
    expect(distinct([finding, { ...finding, request: 'another' }])).toEqual([finding])
  })
})

describe('a report', () => {
  const end = '{"EngineFinished": {"id": "1"}}'
  const failureOf = (exit_status: number, ...lines: string[]) => {
    const report = new Report()
    for (const line of lines) report.read(line)
    return report.failure(exit_status)
  }

  test('of answered requests that came to its end is judged by its findings', () => {
    expect(failureOf(1, lineOf({}, {}), end)).toBeNull()
  })

  test('without an end, without an answered request or with an error fails', () => {
    expect(failureOf(1, lineOf({}, {}))).toBe('the report has no end')
    expect(failureOf(0, end)).toBe('nothing was tested')
    const unanswered = JSON.parse(lineOf({}, {})) as {
      ScenarioFinished: { recorder: { interactions: object } }
    }
    unanswered.ScenarioFinished.recorder.interactions = { a: { request: null, response: null } }
    expect(failureOf(1, JSON.stringify(unanswered), end)).toBe('nothing was tested')
    for (const event of ['NonFatalError', 'FatalError', 'Interrupted']) {
      const failure = failureOf(1, lineOf({}, {}), JSON.stringify({ [event]: { label: 'x' } }), end)
      expect(failure).toBe(`schemathesis met errors: ${event} {"label":"x"}`)
    }
  })

  test('of an exit status other than 0 without a finding fails', () => {
    const line = lineOf({}, {}).replace('"failure"', '"success"')
    expect(failureOf(1, line, end)).toBe('schemathesis ended with 1 without a finding')
    expect(failureOf(0, line, end)).toBeNull()
  })
})

describe('a run', () => {
  test('goes on only where nothing but loopback can be reached', () => {
    expect(onlyLoopback(['lo'])).toBe(true)
    expect(onlyLoopback(['lo', 'eth0'])).toBe(false)
    expect(onlyLoopback([])).toBe(false)
  })
})

describe('the configuration of Schemathesis', () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { parameters?: { in: string; name: string }[] }>>
  }

  test('has the key, and a value only for parameters that there are', async () => {
    const tenant = { admin_key: 'wsk_admin', agent_key: 'wsk_agent' } as Tenant
    for (const [kind, key] of [['admin', 'wsk_admin'], ['agent', 'wsk_agent'], ['none']] as const) {
      const settings = Bun.TOML.parse(await settingsFor(kind, tenant)) as unknown as Settings
      expect(settings.auth?.openapi.bearer.bearer).toBe(key)
      for (const { 'include-name': name, parameters } of settings.operations) {
        const [method = '', path = ''] = name.split(' ')
        const there = paths[path]?.[method.toLowerCase()]?.parameters?.map((one) => `${one.in}.${one.name}`)
        expect([name, there]).toEqual([name, expect.arrayContaining(Object.keys(parameters))])
      }
    }
  })
})

interface Settings {
  auth?: { openapi: { bearer: { bearer: string } } }
  operations: { 'include-name': string; parameters: Record<string, string> }[]
}

describe('an excuse', () => {
  const finding: Finding = {
    ...{ check: 'a', operation: 'GET /x', message: '', request: '' },
    answer: '400 VALIDATION_FAILED /b is wrong; /c is wrong',
  }
  const excuse = (field: string) => ({
    ...{ check: 'a', operation: '*', answer: `400 VALIDATION_FAILED /${field} is wrong`, reason: 'so' },
  })

  test('is needed for every issue of an answer', () => {
    expect(excusesFor(finding, [excuse('b')])).toEqual([])
    expect(excusesFor(finding, [excuse('b'), excuse('c')])).toEqual([excuse('b'), excuse('c')])
  })

  test('matches the whole answer, of this check and this operation', () => {
    const one = { ...finding, answer: '431' }
    const named: Excuse = { check: 'a', operation: 'GET /x', answer: '43', reason: 'so' }
    expect(excusesFor(one, [named])).toEqual([])
    expect(excusesFor(one, [{ ...named, answer: '431' }])).toHaveLength(1)
    expect(excusesFor(one, [{ ...named, answer: '431', operation: 'GET /y' }])).toEqual([])
    expect(excusesFor(one, [{ ...named, answer: '431', check: 'b' }])).toEqual([])
  })

  test('is for one operation, for several, or for a group of them', () => {
    const operation = 'has a path or query parameter'
    const found = ['GET /v1/agents', 'DELETE /v1/agents/{agent_id}', 'GET /livez', 'POST /v1/dlq'].map(
      (name) => {
        const one = { ...finding, answer: '431', operation: name }
        const excuses = [
          { check: 'a', operation, answer: '431', reason: 'so' },
          { check: 'a', operation: ['POST /v1/dlq', 'GET /x'], answer: '431', reason: 'so' },
        ]
        return excusesFor(one, excuses).map((excuse) => excuse.operation)
      },
    )
    expect(found).toEqual([[operation], [operation], [], [['POST /v1/dlq', 'GET /x']]])
  })

  test('is unmet when a whole run did not use it, unless it depends on time', () => {
    const [met, unmet] = [excuse('b'), excuse('c')]
    expect(unmetOf([met, unmet, { ...excuse('d'), timed: true }], new Set([met]))).toEqual([unmet])
  })

  test('has a reason, an operation that there is, and never excuses an answer of 500', () => {
    const operations = routes.map(
      ({ route }) => `${route.method} ${route.path.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}')}`,
    )
    for (const { check, operation, answer, reason } of excuses) {
      const there = [operation]
        .flat()
        .every((name) => ['*', ...Object.keys(groups), ...operations].includes(name))
      const never = check === 'not_a_server_error' || new RegExp(`^(?:${answer})$`).test('500 INTERNAL_ERROR')
      expect([answer, there, reason.length > 20, never]).toEqual([answer, true, true, false])
    }
  })
})
