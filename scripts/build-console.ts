// The built console as a module, for an executable that has no sources beside it. Imported before the service starts,
// it hands the files over.

import { buildConsole } from '../src/site/console-build.ts'

/** For a folder of the repository's root. */
export async function consoleAssetsModule(): Promise<string> {
  const files = JSON.stringify(await buildConsole(), null, 2)
  return `import { embedConsole } from '../src/site/console.ts'

embedConsole(${files})
`
}
