// Writes dist/console-assets.ts: the built console as a module, for an executable that has no sources beside it.
// Imported before the service starts, it hands the files over.

import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildConsole } from '../src/site/console-build.ts'

const file = fileURLToPath(new URL('../dist/console-assets.ts', import.meta.url))

export async function consoleAssetsModule(): Promise<string> {
  const files = JSON.stringify(await buildConsole(), null, 2)
  return `// Made by scripts/build-console.ts: do not edit.

import { embedConsole } from '../src/site/console.ts'

embedConsole(${files})
`
}

if (import.meta.main) {
  const text = await consoleAssetsModule()
  mkdirSync(fileURLToPath(new URL('../dist/', import.meta.url)), { recursive: true })
  writeFileSync(file, text)
}
