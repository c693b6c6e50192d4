// The table of tools against openapi.json: what it leaves out, what it promises, and what it says of errors.

import { describe, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { checkedArguments } from '../mcp/arguments.ts'
import { local_errors, local_next_steps, nextStep, own_next_steps } from '../mcp/errors.ts'
import { resolved, type Schema } from '../mcp/schema.ts'
import { ready_tools } from '../mcp/server.ts'
import { list_bytes_max, tools_max } from '../mcp/tools.ts'
import openapi from '../openapi.json' with { type: 'json' }

interface Operation {
  operationId: string
  parameters?: { name: string }[]
  requestBody?: { content: { 'application/json': { schema: { properties: Record<string, object> } } } }
  responses: Record<string, { description: string }>
  security: Record<string, unknown>[]
  'x-destructive'?: boolean
  'x-sdk'?: { retry?: { safe: unknown } }
}

const operations = new Map(
  Object.values(resolved(openapi).paths as unknown as Record<string, Record<string, Operation>>)
    .flatMap((methods) => Object.values(methods))
    .map((operation) => [operation.operationId, operation]),
)
const names = ready_tools.map(({ tool }) => tool.name)
const asked = ready_tools.flatMap(({ tool }) =>
  [
    ...[tool.operation, tool.without?.operation, tool.prefixed?.operation],
    ...Object.values(tool.choice?.operations ?? {}),
  ].flatMap((id) => (id === undefined ? [] : [operations.get(id)!])),
)

test('there are tools_max tools at most, each of its own name', () => {
  expect(names.length).toBeLessThanOrEqual(tools_max)
  expect(new Set(names).size).toBe(names.length)
  expect(names.filter((name) => !/^[a-z]+(_[a-z]+)+$/.test(name))).toEqual([])
})

test('the answer to tools/list has list_bytes_max bytes at most', () => {
  const answer = { jsonrpc: '2.0', id: 1, result: { tools: ready_tools.map(({ listed }) => listed) } }
  expect(list_bytes_max).toBeLessThanOrEqual(30 * 1_024)
  expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThanOrEqual(list_bytes_max)
})

test('a list in an argument is looked through without a copy of it', async () => {
  const copies = spyOn(Object, 'values')
  const kv_put = ready_tools.find(({ tool }) => tool.name === 'kv_put')!
  const sent = { namespace: 'a', key: 'b', value: { lists: [[1], [2]] } }
  const given = await checkedArguments(kv_put, sent, { timeIn: () => '' })
  const copied = copies.mock.calls.map(([of]) => of).filter(Array.isArray)
  copies.mockRestore()
  expect([given, copied]).toEqual([sent, []])
})

test('a part of an answer is shown by tools whose whole answer another one shows, or that is not needed', () => {
  for (const { tool, listed, answer_fields } of ready_tools) {
    const named = Object.keys(listed.outputSchema.properties)
    expect(tool.shows ?? []).toEqual((tool.shows ?? []).filter((name) => answer_fields.includes(name)))
    if (!tool.shows && !tool.item && !tool.done)
      expect(named).toEqual(expect.arrayContaining([...answer_fields]))
  }
})

describe.each(ready_tools.map((ready) => [ready.tool.name, ready] as const))('%s', (_, ready) => {
  const { tool, listed, places } = ready
  const operation = operations.get(tool.operation)!

  test('takes every part of its operation, or leaves it out by name', () => {
    const others = [tool.without?.operation, ...Object.values(tool.choice?.operations ?? {})]
    const called = [operation, ...others.flatMap((id) => (id === undefined ? [] : [operations.get(id)!]))]
    const parts = new Set(
      called.flatMap(({ parameters = [], requestBody }) => [
        ...parameters.map(({ name }) => name),
        ...Object.keys(requestBody?.content['application/json'].schema.properties ?? {}),
      ]),
    )
    const taken = [...places.values()].map(({ name }) => name)
    expect([...taken, ...(tool.leave_out ?? [])].toSorted()).toEqual([...parts].toSorted())
    const added = [tool.delay?.argument, tool.choice?.argument]
    const own = Object.keys(listed.inputSchema.properties).filter((name) => !added.includes(name))
    expect([...places.keys()].toSorted()).toEqual(own.toSorted())
  })

  test('may be asked with an agent key', () => {
    const kinds = operation.security.flatMap((kind) => Object.keys(kind))
    expect(kinds.some((kind) => kind === 'agent' || kind === 'api_key')).toBe(true)
  })

  test('has schemas that stand alone and compile', () => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, validateSchema: true })
    addFormats.default(ajv)
    for (const schema of [listed.inputSchema, listed.outputSchema]) {
      expect(schema.type).toBe('object')
      expect(JSON.stringify(schema)).not.toMatch(/"\$ref"|"x-/)
      expect(ajv.validateSchema(schema)).toBe(true)
      expect(ajv.compile(schema)).toBeFunction()
    }
    expect(listed.inputSchema.additionalProperties).toBe(false)
  })

  test('has a name, a description and arguments that every provider of models takes', () => {
    expect(tool.name).toMatch(/^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/) // OpenAI, Anthropic, Gemini, Bedrock
    expect(tool.description.length).toBeLessThanOrEqual(1_024) // OpenAI
    expect(outsideOfPortable(listed.inputSchema, tool.name)).toEqual([])
    // A model that is told of null where none fits sends the text "null".
    expect(JSON.stringify(listed.inputSchema)).not.toMatch(/\bnull\b/)
    const { required } = listed.inputSchema
    expect(required === undefined || required.length > 0).toBe(true)
  })

  test('promises no more than its operation keeps', () => {
    const { readOnlyHint, destructiveHint } = listed.annotations
    expect(readOnlyHint).toBe(ready.target.method === 'GET' || ready.tool.name === 'wait_for')
    expect(readOnlyHint && destructiveHint).toBe(false)
    expect(destructiveHint || !operation['x-destructive']).toBe(true)
  })

  test('says when to use it, in sentences that name no tool that is none', () => {
    expect(tool.description).toMatch(/^[A-Z].{60,}\.$/)
    const families = [...new Set(names.map((name) => name.split('_')[0]))].join('|')
    const named = tool.description.match(new RegExp(`\\b(${families})_[a-z]+(_[a-z]+)?\\b`, 'g')) ?? []
    const parts = [...membersOf(listed.inputSchema), ...membersOf(listed.outputSchema)]
    const strange = named.filter((name) => !names.includes(name) && !parts.includes(name))
    expect(strange).toEqual([])
  })
})

const portable_keywords = [
  ...['type', 'description', 'enum', 'format', 'default', 'properties', 'required', 'additionalProperties'],
  ...['items', 'minItems', 'minimum', 'maximum', 'minLength', 'pattern', 'anyOf'],
]

/**
 * Where a schema of arguments says what some provider refuses or some framework loses: a place without one type, a list of texts
 * that does not say that it is text, something beside `anyOf` (Gemini), null in a choice, an array without `items`, a name that
 * Anthropic does not take.
 */
function outsideOfPortable(schema: Schema, at: string): string[] {
  const { type, anyOf, properties = {}, items } = schema
  const keywords = Object.keys(schema)
  const types = ['object', 'array', 'string', 'number', 'integer', 'boolean']
  const faults = [
    ...keywords.filter((keyword) => !portable_keywords.includes(keyword)),
    ...(anyOf ? keywords.filter((keyword) => keyword !== 'anyOf') : []),
    ...(anyOf || types.includes(type as string) ? [] : [`type ${JSON.stringify(type)}`]),
    ...(schema.enum && type !== 'string' ? ['enum'] : []),
    ...(schema.default === null ? ['default'] : []),
    ...(type === 'array' && !items ? ['items'] : []),
    ...(isOfAnyMembers(schema) && !/\/\d$/.test(at) ? ['additionalProperties'] : []),
    ...Object.keys(properties).filter((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name)),
  ].map((fault) => `${at}: ${fault}`)
  return [
    ...faults,
    ...Object.entries(properties).flatMap(([name, member]) => outsideOfPortable(member, `${at}.${name}`)),
    ...(items && Object.keys(items).length > 0 ? outsideOfPortable(items, `${at}.items`) : []),
    ...(anyOf ?? []).flatMap((choice, i) => outsideOfPortable(choice, `${at}/${i}`)),
  ]
}

/** LangChain makes a text of such an object for Gemini, unless it says that it has members, or is one of a choice. */
function isOfAnyMembers({ type, properties, additionalProperties }: Schema): boolean {
  return type === 'object' && !properties && additionalProperties !== true
}

/** Names of the members of a schema, on every level. */
function membersOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { properties = {} } = schema as { properties?: object }
  return [...Object.keys(properties), ...Object.values(schema).flatMap(membersOf)]
}

/** Read-only, Destructive, Idempotent, Open world. A tool that is not here has what its operation says. */
const annotations_of: Record<string, string> = {
  ...{ kv_get: 'R-I-', kv_put: '-DI-', kv_delete: '-DI-', kv_list: 'R-I-' },
  ...{ audit_append: '----', audit_list: 'R-I-' },
  ...{ dlq_create: '----', dlq_list: 'R-I-', dlq_get: 'R-I-', dlq_claim: '----', dlq_release: '----' },
  ...{ dlq_resolve: '--I-', dlq_fail: '-DI-', dlq_redrive: '---O', dlq_many: '-D-O' },
  ...{ schedule_create: '---O', schedule_get: 'R-I-', schedule_cancel: '-DI-', schedule_retry: '---O' },
  ...{ checkpoint_create: '---O', checkpoint_wait: 'R-I-' },
  ...{ checkpoint_cancel: '-DI-', inbox_create: '---O', inbox_wait: 'R-IO', inbox_replay: '---O' },
  rate_limit_check: '----',
  wait_for: 'R-I-', // by POST, and changes nothing
  effect_begin: '---O', // it may ask a person
}

/** Destructive as its route says, idempotent when its SDK method may be repeated, open world when it is given a URL. */
function annotationsOf(ready: (typeof ready_tools)[number]): string {
  const operation = operations.get(ready.tool.operation)!
  const reads = ready.target.method === 'GET'
  const flags = [
    reads,
    operation['x-destructive'] === true,
    reads || operation['x-sdk']?.retry?.safe === true,
    [...ready.places.keys()].some((name) => name.endsWith('_url')),
  ]
  return flags.map((flag, i) => (flag ? 'RDIO'[i] : '-')).join('')
}

test('each tool has the annotations of this table, or those that follow from its operation', () => {
  const letters = ready_tools.map(({ listed: { name, annotations } }) => {
    const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations
    const flags = [readOnlyHint, destructiveHint, idempotentHint, openWorldHint]
    return [name, flags.map((flag, i) => (flag ? 'RDIO'[i] : '-')).join('')]
  })
  const expected = ready_tools.map((ready) => {
    const { name } = ready.tool
    return [name, annotations_of[name] ?? annotationsOf(ready)]
  })
  expect(Object.fromEntries(letters)).toEqual(Object.fromEntries(expected))
  expect(Object.keys(annotations_of).filter((name) => !names.includes(name))).toEqual([])
})

test.each([
  ['schedule_create', '---O'],
  ['schedule_get', 'R-I-'],
  ['schedule_cancel', '-DI-'],
])('the annotations that follow from the operation of %s are %s', (name, letters) => {
  expect(annotationsOf(ready_tools.find(({ tool }) => tool.name === name)!)).toBe(letters)
})

test('every call that creates takes an idempotency_key', () => {
  const creating = ready_tools.filter(({ tool }) => '201' in operations.get(tool.operation)!.responses)
  const named = names.filter((name) => /_(create|append)$/.test(name))
  expect(creating.map(({ tool }) => tool.name)).toEqual(expect.arrayContaining(named))
  expect(creating.length).toBeGreaterThanOrEqual(5)
  expect(creating.filter(({ places }) => !places.has('idempotency_key'))).toEqual([])
})

const answered_without_operation = ['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED']

function codesOf(responses: Operation['responses']): string[] {
  return Object.entries(responses).flatMap(([status, { description }]) =>
    status < '400' ? [] : (description.match(/[A-Z][A-Z_]{4,}/g) ?? []),
  )
}

test('there is a next step of its own for every code that may be answered', () => {
  const codes = asked.flatMap(({ responses }) => codesOf(responses))
  const elsewhere = [...answered_without_operation, ...Object.keys(local_errors)]
  const errors = openapi['x-errors']
  const for_any_other = nextStep(errors, 'NO_SUCH_CODE')
  for (const code of new Set([...codes, ...elsewhere])) {
    const sentence = nextStep(errors, code)
    expect(sentence).toMatch(/^[A-Z].{20,}\.$/)
    expect(sentence).not.toBe(for_any_other)
  }
  const known: string[] = openapi.components.schemas.ErrorCode.allOf[0]!.enum
  expect(Object.keys(errors)).toEqual(known)
})

test('there is a next step for no code that may not be answered', () => {
  const answered = [...operations.values()].flatMap(({ responses }) => codesOf(responses))
  const codes = new Set([...answered, ...answered_without_operation])
  expect(Object.keys(openapi['x-errors']).toSorted()).toEqual([...codes].toSorted())
  expect(Object.keys(local_next_steps)).toEqual(Object.keys(local_errors))
  const by_tools = asked.flatMap(({ responses }) => codesOf(responses))
  expect(Object.keys(own_next_steps).filter((code) => !by_tools.includes(code))).toEqual([])
})

test('next steps speak of tools: no header is named, and every code with words of its own is in x-errors', () => {
  const errors = openapi['x-errors']
  expect(Object.keys(own_next_steps).filter((code) => !(code in errors))).toEqual([])
  const answered = Object.keys(errors).map((code) => nextStep(errors, code))
  expect(answered.filter((sentence) => /Retry-After|Idempotency-Key/.test(sentence))).toEqual([])
  for (const code of ['RATE_LIMITED', 'UNAVAILABLE', 'IDEMPOTENCY_IN_PROGRESS']) {
    expect(nextStep(errors, code)).toContain('Wait for retry_after_seconds')
  }
  for (const code of ['UNAUTHORIZED', 'FORBIDDEN']) {
    expect(nextStep(errors, code)).toContain('Stop and ask the operator')
  }
})

test('docs/mcp.md has a row for each tool, with its title and its hints', () => {
  const page = readFileSync(new URL('../docs/mcp.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `([a-z_]+)` \| (.*?) \| (.*?) \|$/gm)].map(([, ...cells]) => cells)
  const told = ready_tools.map(({ tool, listed: { annotations } }) => {
    const hints = [
      annotations.readOnlyHint ? 'reads' : 'writes',
      annotations.destructiveHint && 'destructive',
      !annotations.readOnlyHint && annotations.idempotentHint && 'idempotent',
      annotations.openWorldHint && 'open world',
    ]
    return [tool.name, tool.title, hints.filter(Boolean).join(', ')]
  })
  expect(rows).toEqual(told)
})
