// The generated clients: a resource that is new in the contract is in the SDK and in the CLI without a line by hand.

import { expect, test } from 'bun:test'
import openapi from '../openapi.json' with { type: 'json' }
import { commandRows, commandsText } from '../scripts/clients/cli.ts'
import { type Document, operationsOf } from '../scripts/clients/model.ts'
import { methodRows, resourcesText, retriesText, retryRows } from '../scripts/clients/sdk.ts'

const id = {
  in: 'path',
  name: 'lock_id',
  required: true,
  schema: { type: 'string' },
  description: 'A lock, lck_….',
}
const lock = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } }
const page = { type: 'object', properties: { items: { type: 'array' }, next_cursor: {} } }
const answer = (schema: object) => ({ content: { 'application/json': { schema } } })
const security = [{ agent: [] }]

const locks = {
  '/v1/locks': {
    post: {
      operationId: 'createLock',
      summary: 'Take a lock',
      'x-errors': ['QUOTA_EXCEEDED'],
      'x-sdk': { name: 'locks.create' },
      'x-cli': { usage: 'lock create <name>', group: 'Locks', examples: ['waystation lock create deploy'] },
      parameters: [{ in: 'header', name: 'Idempotency-Key', required: false, schema: { type: 'string' } }],
      requestBody: answer({
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string' },
          ttl_seconds: { type: 'integer', description: 'How long it holds.' },
          mode: { enum: ['shared', 'exclusive'], description: 'Default exclusive.' },
        },
      }),
      responses: { 201: answer(lock) },
      security,
    },
    get: {
      operationId: 'listLocks',
      summary: 'List locks',
      'x-sdk': { name: 'locks.list' },
      'x-cli': { usage: 'lock list', columns: ['id'] },
      responses: { 200: answer(page) },
      security,
    },
  },
  '/v1/locks/{lock_id}': {
    delete: {
      operationId: 'deleteLock',
      summary: 'Release a lock',
      'x-sdk': { name: 'locks.delete', retry: { safe: true, why: 'a released lock stays released' } },
      'x-cli': { usage: 'lock delete <lock_id>', done: 'released' },
      parameters: [id],
      responses: { 204: {} },
      security,
    },
  },
}

const document = { paths: { ...openapi.paths, ...locks } } as unknown as Document
const operations = operationsOf(document).filter(({ path }) => path.startsWith('/v1/locks'))

test('A new resource is a class of the SDK, with a method for each operation', () => {
  const text = resourcesText(operations, '')
  expect(text).toContain('readonly locks: Locks')
  expect(text).toContain('/** Take a lock. Throws QUOTA_EXCEEDED. */')
  expect(text).toContain("create(body: Body<'createLock'>, options: CreateOptions = {}): Promise<")
  expect(text).toContain("list(query: Query<'listLocks'> = {}): Pages<")
  expect(text).toContain("return this.transport.call('deleteLock', { params: { lock_id } }, options)")
  expect(retriesText(operations)).toContain('"why":"a released lock stays released"')
})

test('A new resource is a group of the CLI, with options from its schemas', () => {
  const text = commandsText(operations)
  expect(text).toContain(
    '{"lock":{"about":"Locks","examples":["waystation lock create deploy","waystation lock list"]}}',
  )
  expect(text).toContain('"flag":"--ttl <duration>","about":"how long it holds","reads":"duration"')
  expect(text).toContain(
    '"flag":"--mode <mode>","about":"default exclusive","choices":["shared","exclusive"]',
  )
  expect(text).toContain('"examples":["waystation lock delete lck_01m7yjrz37hxnv52px0106nehd"]')
  expect(text).toContain('({ locks }, sent, options) => locks.create(sent, options)')
  expect(text).toContain('({ locks }, { lock_id }) => locks.delete(lock_id)')
})

test('A new resource has its rows in the tables of the documentation', () => {
  expect(methodRows(operations)).toBe('| `locks` | `create`, `list`, `delete` |\n')
  expect(retryRows(operations)).toBe('| `locks.delete` | yes | a released lock stays released |\n')
  expect(commandRows(operations)).toBe('| `lock` | `create`, `list`, `delete` | Locks |\n')
})

test.each([
  ['a field that is not there', { usage: 'lock create <name>', options: { size: ['--size <n>', 'size'] } }],
  ['an argument that is not there', { usage: 'lock create <title>' }],
  ['no example and no id to make one with', { usage: 'lock create <name>' }],
])('A command with %s is refused', (_, cli) => {
  const [create] = operations
  expect(() => commandsText([{ ...create!, cli: cli as never }])).toThrow(/^createLock /)
})

test('Every operation is in the SDK, except repeats of another one', () => {
  const unnamed = operationsOf(document).filter(({ sdk, path }) => !sdk && !path.startsWith('/hook/'))
  expect(unnamed.map(({ id }) => id)).toEqual(['checkRateLimitByQuery', 'getRateLimitNamedReset'])
})
