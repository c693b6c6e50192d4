// Writes what the clients have of the contract: the resources of the SDK, the commands of the CLI, and the tables about
// them in the documentation. A test fails when the files in git are not this.

import { readFileSync, writeFileSync } from 'node:fs'
import { commandsText } from './clients/cli.ts'
import { type Document, operationsOf } from './clients/model.ts'
import { formatted } from './clients/print.ts'
import { resourcesText, retriesText, retryRows } from './clients/sdk.ts'
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
    'sdk/src/types.ts': types,
    ...Object.fromEntries(Object.entries(code).map(([file, text]) => [file, formatted(text, file)])),
    'docs/sdk.md': withRows(textOf('docs/sdk.md'), '| Call | Again | Why |', retryRows(operations)),
  }
}

/** A page with other rows under the heads of one of its tables. */
function withRows(page: string, heads: string, rows: string): string {
  const start = page.indexOf('\n', page.indexOf(`\n${heads}\n|---`) + heads.length + 2) + 1
  return page.slice(0, start) + rows + page.slice(page.indexOf('\n\n', start) + 1)
}

function textOf(file: string): string {
  return readFileSync(new URL(file, root), 'utf8')
}

if (import.meta.main) {
  for (const [file, text] of Object.entries(clientFiles())) writeFileSync(new URL(file, root), text)
}
