// Writes the parts of the clients that follow from the contract: the resources of the SDK, the commands of the CLI, and
// the tables about them and about the tools of the MCP server in the documentation. A test fails when the files in git
// are not this.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type ReadyTool, readyTools } from '../mcp/contract.ts'
import type { Document } from '../mcp/schema.ts'
import { commandRows, commandsText } from './clients/cli.ts'
import { operationsOf } from './clients/model.ts'
import { formatted } from './clients/print.ts'
import { pythonOperations, pythonResources, pythonRetries } from './clients/python.ts'
import { snake } from './clients/python-print.ts'
import { syncText } from './clients/python-sync.ts'
import { namedDocument, PythonTypes } from './clients/python-types.ts'
import { methodRows, resourcesText, retriesText, retryRows } from './clients/sdk.ts'
import { sdkTypesText } from './sdk-types.ts'

const root = new URL('../', import.meta.url)

/** File to text. */
export function clientFiles(): Record<string, string> {
  const operations = operationsOf(JSON.parse(textOf('openapi.json')) as Document)
  const types = sdkTypesText()
  const code = {
    'sdk/src/generated-resources.ts': resourcesText(operations, types),
    'sdk/src/generated-retries.ts': retriesText(operations),
    'cli/generated.ts': commandsText(operations),
  }
  return {
    'sdk/src/types.ts': formatted(types, 'sdk/src/types.ts'),
    ...Object.fromEntries(Object.entries(code).map(([file, text]) => [file, formatted(text, file)])),
    'docs/sdk.md': withRows(textOf('docs/sdk.md'), {
      '| Resource | Methods |': methodRows(operations),
      '| Call | Again | Why |': retryRows(operations),
    }),
    'docs/python.md': withRows(textOf('docs/python.md'), {
      '| Python resource | Methods |': methodRows(operations, snake),
    }),
    'docs/cli.md': withRows(textOf('docs/cli.md'), {
      '| Command | Subcommands | For |': commandRows(operations),
    }),
    'docs/mcp.md': withRows(textOf('docs/mcp.md'), {
      '| Tool | For | Hints |': readyTools(JSON.parse(textOf('openapi.json')) as Document)
        .map(toolRow)
        .join(''),
    }),
    ...pythonFiles(),
  }
}

/** Those of the Python SDK: its sync half is the async one, without its waits. */
export function pythonFiles(): Record<string, string> {
  const document = namedDocument(JSON.parse(textOf('openapi.json')) as Document)
  const operations = operationsOf(document)
  const types = new PythonTypes(document)
  const resources = pythonResources(operations, types)
  const modules = readdirSync(new URL(`${python}/_async`, root))
    .filter((file) => file.endsWith('.py') && !['__init__.py', 'platform.py', 'resources.py'].includes(file))
    .map((file): [string, string] => [file, textOf(`${python}/_async/${file}`)])
  return {
    [`${python}/types.py`]: types.text(),
    [`${python}/_operations.py`]: pythonOperations(operations, document),
    [`${python}/_retries.py`]: pythonRetries(operations),
    [`${python}/_async/resources.py`]: resources,
    ...Object.fromEntries(
      [...modules, ['resources.py', resources] as const].map(([file, text]) => [
        `${python}/_sync/${file}`,
        syncText(text, file),
      ]),
    ),
  }
}

const python = 'sdk-python/src/waystation'

function toolRow({ listed: { name, title, annotations } }: ReadyTool): string {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations
  const hints = [
    readOnlyHint ? 'reads' : 'writes',
    destructiveHint && 'destructive',
    !readOnlyHint && idempotentHint && 'idempotent',
    openWorldHint && 'open world',
  ]
  return `| \`${name}\` | ${title} | ${hints.filter(Boolean).join(', ')} |\n`
}

/** A page with other rows under the heads of some of its tables. Throws for heads that are not on it. */
export function withRows(page: string, tables: Record<string, string>): string {
  return Object.entries(tables).reduce((text, [heads, rows]) => {
    const table = text.indexOf(`\n${heads}\n|---`)
    if (table === -1) throw new Error(`There is no table under ${heads}`)
    const start = text.indexOf('\n', table + heads.length + 2) + 1
    return text.slice(0, start) + rows + text.slice(text.indexOf('\n\n', start - 1) + 1)
  }, page)
}

function textOf(file: string): string {
  return readFileSync(new URL(file, root), 'utf8')
}

if (import.meta.main) {
  for (const [file, text] of Object.entries(clientFiles())) writeFileSync(new URL(file, root), text)
}
