// The generated clients: a resource that is new in the contract is in the SDK and in the CLI without a line by hand.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Document } from '../mcp/schema.ts'
import openapi from '../openapi.json' with { type: 'json' }
import { commandRows, commandsText } from '../scripts/clients/cli.ts'
import { operationsOf } from '../scripts/clients/model.ts'
import { pythonOperations, pythonResources, pythonRetries } from '../scripts/clients/python.ts'
import { snake } from '../scripts/clients/python-print.ts'
import { syncText } from '../scripts/clients/python-sync.ts'
import { namedDocument, PythonTypes } from '../scripts/clients/python-types.ts'
import { methodRows, resourcesText, retriesText, retryRows } from '../scripts/clients/sdk.ts'
import { withRows } from '../scripts/clients.ts'

const id = {
  in: 'path',
  name: 'parasol_id',
  required: true,
  schema: { type: 'string' },
  description: 'A parasol, par_….',
}
const parasol = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } }
const page = { type: 'object', properties: { items: { type: 'array' }, next_cursor: {} } }
const answer = (schema: object) => ({ content: { 'application/json': { schema } } })
const security = [{ agent: [] }]

/** No noun of the service: it can never come to have one of this name. */
const parasols = {
  '/v1/parasols': {
    post: {
      operationId: 'createParasol',
      summary: 'Take a parasol',
      'x-errors': ['QUOTA_EXCEEDED'],
      'x-sdk': { name: 'parasols.create' },
      'x-cli': {
        usage: 'parasol create <name>',
        group: 'Parasols',
        examples: ['waystation parasol create deploy'],
      },
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
      responses: { 201: answer(parasol) },
      security,
    },
    get: {
      operationId: 'listParasols',
      summary: 'List parasols',
      'x-sdk': { name: 'parasols.list' },
      'x-cli': { usage: 'parasol list', columns: ['id'] },
      responses: { 200: answer(page) },
      security,
    },
  },
  '/v1/parasols/{parasol_id}': {
    delete: {
      operationId: 'deleteParasol',
      summary: 'Release a parasol',
      'x-errors': ['PARASOL_NOT_FOUND'],
      'x-sdk': { name: 'parasols.delete', retry: { safe: true, why: 'a released parasol stays released' } },
      'x-cli': { usage: 'parasol delete <parasol_id>', done: 'released' },
      parameters: [id],
      responses: { 204: {} },
      security,
    },
  },
}

const document = { ...openapi, paths: { ...openapi.paths, ...parasols } } as unknown as Document
const operations = operationsOf(document).filter(({ path }) => path.startsWith('/v1/parasols'))

test('A new resource is a class of the SDK, with a method for each operation', () => {
  const text = resourcesText(operations, '')
  expect(text).toContain('readonly parasols: Parasols')
  expect(text).toContain('/** Take a parasol. Throws QUOTA_EXCEEDED. */')
  expect(text).toContain("create(body: Body<'createParasol'>, options: CreateOptions = {}): Promise<")
  expect(text).toContain("list(query: Query<'listParasols'> = {}): Pages<")
  expect(text).toContain("return this.transport.call('deleteParasol', { params: { parasol_id } }, options)")
  expect(retriesText(operations)).toContain('"why":"a released parasol stays released"')
})

test('A new resource is a class of the Python client, with a method for each operation', () => {
  const named = namedDocument(document)
  const types = new PythonTypes(named)
  const text = pythonResources(operations, types)
  expect(text).toContain('class AsyncParasols(AsyncResource):')
  expect(text).toContain('        self.parasols = AsyncParasols(transport)')
  expect(text).toContain(`    async def create(
        self,
        *,
        name: str,
        ttl_seconds: int | None = None,
        mode: Literal["shared", "exclusive"] | None = None,
        **options: Unpack[CreateOptions],
    ) -> CreateParasolAnswer:
        """Take a parasol. Raises QUOTA_EXCEEDED.

        ttl_seconds: How long it holds.
        mode: Default exclusive.
        """
        given_ = Input(body=fields({"name": name}, {"ttl_seconds": ttl_seconds, "mode": mode}))
        answer_: CreateParasolAnswer = await self._transport.call("createParasol", given_, options)
        return answer_
`)
  expect(text).toContain('    def list(self, **options: Unpack[CallOptions]) -> AsyncPages[Any]:')
  expect(text).toContain('        await self._transport.call("deleteParasol", given_, options)')
  expect(types.text()).toContain('class CreateParasolAnswer(TypedDict):\n    id: str\n')
  expect(pythonOperations(operations, named)).toContain(
    '    "createParasol": Operation("POST", "/v1/parasols", creates=True, has="id"),',
  )
  expect(pythonRetries(operations)).toContain(
    '    "deleteParasol": Retry(why="a released parasol stays released"),',
  )
  expect(methodRows(operations, snake)).toBe('| `parasols` | `create`, `list`, `delete` |\n')
})

test('The sync half of the Python client is the async one without its waits', () => {
  const text = `"""Pages."""

from collections.abc import AsyncIterator, Awaitable, Callable

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .platform import MaybeAwaitable


class AsyncPages:
    """\`\`async for item in pages\`\`, or \`\`await pages.page()\`\`."""

    def __init__(self, read: Callable[[str | None], Awaitable[Page[T]]], f: Callable[[], MaybeAwaitable[V | None]]) -> None: ...

    # async only
    def __await__(self) -> None: ...

    # end
    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            yield await page.awaiting
`
  expect(syncText(text, 'pages.py')).toBe(`"""Pages."""

# Made of ../_async/pages.py by scripts/clients.ts: do not edit.

from collections.abc import Iterator, Callable

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Pages:
    """\`\`for item in pages\`\`, or \`\`pages.page()\`\`."""

    def __init__(self, read: Callable[[str | None], Page[T]], f: Callable[[], V | None]) -> None: ...

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield page.awaiting
`)
  expect(() => syncText('"""X."""\n\nx: Awaitable\n', 'x.py')).toThrow(
    'x.py has something async left: x: Awaitable',
  )
})

test('The Python client has the licence of the project', () => {
  const [own, of_root] = ['sdk-python/LICENSE', 'LICENSE'].map((file) =>
    readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'),
  )
  expect(own).toBe(of_root!)
})

test('The ten lines of the Python client are the same on each page', () => {
  const lines = ['sdk-python/README.md', 'docs/python.md', 'README.md'].map((page) => {
    const text = readFileSync(new URL(`../${page}`, import.meta.url), 'utf8')
    return /```python\n([\s\S]*?)```/.exec(text)![1]!
  })
  expect(lines[0]!.trimEnd().split('\n')).toHaveLength(10)
  expect(lines).toEqual([lines[0]!, lines[0]!, lines[0]!])
})

test('A new resource is a group of the CLI, with options from its schemas', () => {
  const text = commandsText(operations)
  expect(text).toContain(
    '{"parasol":{"about":"Parasols","examples":["waystation parasol create deploy","waystation parasol list"]}}',
  )
  expect(text).toContain('"flag":"--ttl <duration>","about":"how long it holds","reads":"duration"')
  expect(text).toContain(
    '"flag":"--mode <mode>","about":"default exclusive","choices":["shared","exclusive"]',
  )
  expect(text).toContain('"examples":["waystation parasol delete par_01m7yjrz37hxnv52px0106nehd"]')
  expect(text).toContain('{"PARASOL_NOT_FOUND":"parasol list"}')
  expect(text).toContain('({ parasols }, sent, options) => parasols.create(sent, options)')
  expect(text).toContain('({ parasols }, { parasol_id }) => parasols.delete(parasol_id)')
})

test('The only option of a choice of fields is required; of two that have options, none is', () => {
  const [create] = operations
  const choice = { ...create!, one_of: ['ttl_seconds', 'mode'] }
  const required = '"--mode <mode>","about":"default exclusive","is_required":true'
  const cli = { ...create!.cli!, options: { ttl_seconds: false as const } }
  expect(commandsText([{ ...choice, cli }])).toContain(required)
  expect(commandsText([choice])).not.toContain('is_required')
})

test('A new resource has its rows in the tables of the documentation', () => {
  expect(methodRows(operations)).toBe('| `parasols` | `create`, `list`, `delete` |\n')
  expect(retryRows(operations)).toBe('| `parasols.delete` | yes | a released parasol stays released |\n')
  expect(commandRows(operations)).toBe('| `parasol` | `create`, `list`, `delete` | Parasols |\n')
})

test('A page without a table that it should have is refused', () => {
  const page = '# Page\n\n| A | B |\n|---|---|\n| 1 | 2 |\n\nText.\n'
  expect(withRows(page, { '| A | B |': '| 3 | 4 |\n' })).toBe(page.replace('| 1 | 2 |', '| 3 | 4 |'))
  expect(() => withRows(page, { '| A | C |': '| 3 | 4 |\n' })).toThrow('There is no table under | A | C |')
})

test.each([
  [
    'a field that is not there',
    { usage: 'parasol create <name>', options: { size: ['--size <n>', 'size'] } },
  ],
  ['an argument that is not there', { usage: 'parasol create <title>' }],
  ['no example and no id to make one with', { usage: 'parasol create <name>' }],
])('A command with %s is refused', (_, cli) => {
  const [create] = operations
  expect(() => commandsText([{ ...create!, cli: cli as never }])).toThrow(/^createParasol /)
})

test('Every operation is in the SDK, except repeats of another one and what the links in emails call', () => {
  const unnamed = operationsOf(document).filter(({ sdk, path }) => !sdk && !path.startsWith('/hook/'))
  expect(unnamed.map(({ id }) => id)).toEqual([
    ...['checkRateLimitByQuery', 'getRateLimitNamedReset', 'confirmMail', 'unsubscribeMail'],
  ])
})
