// `npm run build:binary`: one executable with the service, the command line, the MCP server, the documentation and the
// console inside, at dist/waystation; `--outfile <path>` puts it elsewhere.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { consoleAssetsModule } from './build-console.ts'

const root = resolve(import.meta.dir, '..')
const { values } = parseArgs({
  options: { outfile: { type: 'string', default: join(root, 'dist/waystation') } },
})

/** Beside the sources, so that what it imports is found; of its own, so that two builds do not meet. */
const folder = mkdtempSync(join(root, '.binary-'))
try {
  writeFileSync(join(folder, 'console-assets.ts'), await consoleAssetsModule())
  const entry = join(folder, 'main.ts')
  writeFileSync(entry, "import './console-assets.ts'\nimport '../cli/main.ts'\n")
  const safe = ['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig']
  const build = ['build', '--compile', ...safe, entry, '--outfile', resolve(values.outfile)]
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...build], { stdout: 'inherit' })
  if (exitCode !== 0) throw new Error(stderr.toString())
} finally {
  rmSync(folder, { recursive: true, force: true })
}
