// `npm run test:python`: the Python client as people get it. Builds its sdist and its wheel, installs the wheel into an empty
// environment, checks a strict project with mypy and pyright, and runs its tests, the lines of its README and the example agent
// against a service on each engine. Needs Python 3.10 or newer with venv, and a package index for httpx and the tools.
// `--engine sqlite` or `--engine postgres` runs on one engine, `-k <name>` some of the tests.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Cluster, startCluster } from '../test/support/postgres.ts'
import { startServer } from '../test/support/server-process.ts'
import { needPython } from './needed.ts'
import { newKeys } from './new-keys.ts'

const python = process.env.PYTHON || 'python3'
needPython('npm run test:python', python)

const root = join(import.meta.dir, '..')
const source = join(root, 'sdk-python')
const scratch = mkdtempSync(join(tmpdir(), 'waystation-python-'))
const engines = ['sqlite', 'postgres'] as const
type Engine = (typeof engines)[number]

const { values } = parseArgs({
  options: { engine: { type: 'string' }, k: { type: 'string', short: 'k' } },
  allowPositionals: false,
})
let cluster: Cluster | undefined
try {
  const wheel = build()
  const user = environment('user', wheel)
  checkInstalled(user)
  const tools = environment('tools', wheel, 'pytest', 'standardwebhooks', 'mypy', 'pyright')
  checkTypes(tools)
  checkPackage(tools)
  checkOldest(wheel)
  for (const engine of engines.filter((one) =>
    [undefined, one].includes(values.engine as Engine | undefined),
  ))
    await onEngine(engine, user, tools)
} finally {
  await cluster?.stop()
  rmSync(scratch, { recursive: true, force: true })
}

/** The wheel, built from the sdist. */
function build(): string {
  const copy = join(scratch, 'source')
  cpSync(source, copy, { recursive: true, filter: (path) => !/__pycache__|\/dist$/.test(path) })
  const builder = environment('build', 'build')
  run([builder, '-m', 'build', '--outdir', join(scratch, 'dist'), copy])
  const built = readdirSync(join(scratch, 'dist')).toSorted()
  const [sdist, wheel] = [
    built.find((file) => file.endsWith('.tar.gz')),
    built.find((file) => file.endsWith('.whl')),
  ]
  if (!sdist || !wheel) throw new Error(`built ${built.join(', ')}`)
  say(`built ${sdist} and ${wheel}`)
  return join(scratch, 'dist', wheel)
}

/** A new environment with these packages: its Python. */
function environment(name: string, ...packages: string[]): string {
  const folder = join(scratch, name)
  run([python, '-m', 'venv', folder])
  const own = join(folder, 'bin', 'python')
  run([own, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages])
  return own
}

function checkInstalled(user: string): void {
  const required = run([user, '-c', 'import importlib.metadata as m; print(m.requires("waystation"))']).trim()
  if (required !== "['httpx<1,>=0.25']") throw new Error(`it needs ${required}`)
  say('the wheel is installed in an empty environment, and needs httpx alone')
}

/** The package itself is strict, also for the oldest Python. */
function checkPackage(tools: string): void {
  const folder = join(scratch, 'package')
  cpSync(join(source, 'src'), folder, { recursive: true })
  writeFileSync(join(folder, 'pyrightconfig.json'), '{"typeCheckingMode": "strict", "pythonVersion": "3.10"}')
  run([tools, '-m', 'mypy', '--strict', '--python-version', '3.10', 'waystation'], folder)
  run([tools, '-m', 'pyright', '--pythonpath', tools, 'waystation'], folder)
  say('the package passes mypy --strict and pyright in its strict mode, for Python 3.10')
}

/** With the oldest httpx that the package takes: the tests that need no service. */
function checkOldest(wheel: string): void {
  const [, oldest] = /httpx>=([\d.]+)/.exec(readFileSync(join(source, 'pyproject.toml'), 'utf8'))!
  const own = environment('oldest', wheel, `httpx~=${oldest}.0`, 'pytest', 'standardwebhooks')
  const alone = [
    'callbacks',
    'cancelled',
    'connections',
    'interrupts',
    'json',
    'mistakes',
    'never_sent',
    'operations',
    'shown',
    'transport',
    'waits',
  ]
  const files = alone.map((name) => join(source, 'tests', `test_${name}.py`))
  const told = run([own, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...files])
  say(`httpx ${oldest}: ${told.trim().split('\n').at(-1)}`)
}

/** The project passes both checkers, and each line of wrong.py that says so is found by both, and no other. */
function checkTypes(tools: string): void {
  const project = join(scratch, 'project')
  cpSync(join(source, 'tests', 'consumer'), project, { recursive: true })
  cpSync(join(root, 'examples', 'agent.py'), join(project, 'agent.py'))
  writeFileSync(join(project, 'pyrightconfig.json'), '{"typeCheckingMode": "strict"}')
  const good = ['right.py', 'agent.py']
  const mypy = ['-m', 'mypy', '--strict', '--no-error-summary', '--no-pretty']
  run([tools, ...mypy, ...good], project)
  const pyright = ['-m', 'pyright', '--pythonpath', tools]
  run([tools, ...pyright, ...good], project)
  say('right.py and examples/agent.py pass mypy --strict and pyright in its strict mode')
  const lines = readFileSync(join(project, 'wrong.py'), 'utf8').split('\n')
  const wrong = lines.flatMap((line, at) => (line.endsWith('# wrong') ? [at + 1] : []))
  for (const command of [mypy, pyright]) {
    const { stdout } = Bun.spawnSync([tools, ...command, 'wrong.py'], { cwd: project, env: variables() })
    const found = stdout.toString().matchAll(/wrong\.py:(\d+)(?::\d+)?(?: -|:) error/g)
    const at = [...new Set([...found].map(([, line]) => Number(line)))].toSorted((one, other) => one - other)
    if (at.join() !== wrong.join()) throw new Error(`${command[1]} finds ${at}, not ${wrong}:\n${stdout}`)
  }
  say(`${wrong.length} wrong uses of wrong.py are found by both, and nothing else`)
}

async function onEngine(engine: Engine, user: string, tools: string): Promise<void> {
  const data = mkdtempSync(join(scratch, `${engine}-`))
  if (engine === 'postgres') cluster ??= await startCluster()
  const database = engine === 'postgres' ? { DATABASE_URL: cluster!.base_url } : {}
  const server = await startServer({ DATA_DIR: data, DISK_RESERVE: '0', ...database })
  const clock = await startServer({
    ...{ DATA_DIR: mkdtempSync(join(scratch, 'clock-')), DISK_RESERVE: '0' },
    ...{ CLOCK: 'test', HOST: '127.0.0.1', DATABASE_URL: 'sqlite::memory:' },
  })
  try {
    const addresses = { WAYSTATION_URL: server.url, WAYSTATION_CLOCK_URL: clock.url }
    const some = values.k ? ['-k', values.k] : []
    const tests = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...some, join(source, 'tests')]
    say(
      `${engine}: ${run([tools, ...tests], data, addresses)
        .trim()
        .split('\n')
        .at(-1)}`,
    )
    if (values.k) return
    await readme(engine, user, server.url, data)
    const told = run([user, join(root, 'examples', 'agent.py'), server.url], data)
    if (!told.trimEnd().endsWith('- done; the tenant is scheduled for deletion')) throw new Error(told)
    say(`${engine}: examples/agent.py told its story of ${told.trimEnd().split('\n').length} lines`)
  } finally {
    await Promise.all([server.stop(), clock.stop()])
  }
}

/** The lines of the README as they are printed. */
async function readme(engine: Engine, user: string, url: string, folder: string): Promise<void> {
  const [, lines] = /```python\n([\s\S]*?)```/.exec(readFileSync(join(source, 'README.md'), 'utf8'))!
  const program = join(folder, 'readme.py')
  writeFileSync(program, lines!)
  const { api_key } = await newKeys(url, `readme-${crypto.randomUUID().slice(0, 8)}`)
  const printed = run([user, program], folder, { WAYSTATION_URL: url, AGENT_KEY: api_key })
  if (printed !== "{'rows': 42}\nlast-run 1\nruns 1\n") throw new Error(`the README printed ${printed}`)
  say(`${engine}: the lines of the README run as they are printed`)
}

function variables(more: Record<string, string> = {}): Record<string, string | undefined> {
  const direct = { NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' }
  return {
    ...process.env,
    PYTHONDONTWRITEBYTECODE: '1',
    PYRIGHT_PYTHON_IGNORE_WARNINGS: '1',
    ...direct,
    ...more,
  }
}

function run(command: string[], cwd = scratch, more: Record<string, string> = {}): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd, env: variables(more) })
  if (exitCode !== 0)
    throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${shortened(`${stdout}${stderr}`)}`)
  return stdout.toString()
}

/** The end of a long text. */
function shortened(text: string): string {
  return text.split('\n').slice(-80).join('\n')
}

function say(line: string): void {
  console.log(`ok  ${line}`)
}
