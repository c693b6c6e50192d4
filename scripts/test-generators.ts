// Makes clients of openapi.json with openapi-python-client and with openapi-typescript, and lets each make five calls to a
// service. Needs Python 3.10 or newer with venv, npm and their registries: `npm test` does not run it.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../test/support/server-process.ts'
import { needPython } from './needed.ts'
import { newKeys } from './new-keys.ts'

const python_program = process.env.PYTHON || 'python3'
needPython('npm run test:generators', python_program)

const root = join(import.meta.dir, '..')
const here = join(import.meta.dir, 'generators')
const document = join(root, 'openapi.json')
const model_files_most = 90

const versions = {
  python: 'openapi-python-client==0.29.1',
  typescript: [
    'openapi-typescript@7.13.0',
    'openapi-fetch@0.17.0',
    'typescript@5.9.3',
    '@types/node@24.10.1',
  ],
}

/** Shows what it printed when it fails. */
async function run(command: string[], cwd: string): Promise<void> {
  const child = Bun.spawn(command, { cwd, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, exit_code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (exit_code !== 0) throw new Error(`${command.join(' ')} ended with ${exit_code}\n${stdout}${stderr}`)
}

async function pythonClient(folder: string): Promise<string[]> {
  const python = join(folder, 'venv/bin/python')
  await run([python_program, '-m', 'venv', 'venv'], folder)
  await run([python, '-m', 'pip', 'install', '--quiet', versions.python], folder)
  // Without ruff, which only formats: the names are the same.
  writeFileSync(join(folder, 'config.yml'), 'post_hooks: []\npackage_name_override: client\n')
  const generate = ['generate', '--path', document, '--meta', 'none', '--output-path', 'client']
  await run([join(folder, 'venv/bin/openapi-python-client'), ...generate, '--config', 'config.yml'], folder)
  checkPython(join(folder, 'client'))
  cpSync(join(here, 'calls.py'), join(folder, 'calls.py'))
  return [python, join(folder, 'calls.py')]
}

function checkPython(client: string): void {
  const models = readdirSync(join(client, 'models')).filter((file) => file !== '__init__.py')
  if (models.length >= model_files_most) throw new Error(`${models.length} model files`)
  const files = readdirSync(client, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.py'),
  )
  const numbered = files.flatMap((file) => {
    const text = readFileSync(join(client, file), 'utf8')
    const names = [...text.matchAll(/^(?:class|def|async def) (\w*(?:\d|Response200)\w*)/gm)].map(
      ([, name]) => name!,
    )
    return [...(/\d/.test(file) ? [file] : []), ...names]
  })
  if (numbered.length > 0) throw new Error(`names with a number: ${numbered}`)
  console.log(`openapi-python-client: ${models.length} model files, no name with a number`)
}

async function typescriptClient(folder: string): Promise<string[]> {
  writeFileSync(join(folder, 'package.json'), '{"type": "module", "private": true}')
  await run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', ...versions.typescript], folder)
  await run(['node_modules/.bin/openapi-typescript', document, '-o', 'schema.d.ts'], folder)
  cpSync(join(here, 'calls.ts'), join(folder, 'calls.ts'))
  const options = [
    '--strict',
    '--noEmit',
    '--skipLibCheck',
    '--allowImportingTsExtensions',
    '--types',
    'node',
  ]
  const modules = ['--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2022']
  await run(['node_modules/.bin/tsc', ...options, ...modules, 'calls.ts'], folder)
  console.log('openapi-typescript: the types hold')
  return [process.execPath, join(folder, 'calls.ts')]
}

const folder = mkdtempSync(join(tmpdir(), 'waystation-generators-'))
try {
  const clients = { python: await pythonClient(folder), typescript: await typescriptClient(folder) }
  const { url, stop } = await startServer({ DATA_DIR: join(folder, 'data') })
  try {
    for (const [name, command] of Object.entries(clients)) {
      // A tenant of its own for each.
      const { admin_key, api_key } = await newKeys(url, name)
      await run([...command, url, api_key, admin_key], folder)
      console.log(`${name}: five calls, as expected`)
    }
  } finally {
    await stop()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
