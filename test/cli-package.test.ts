// The repository as npm packs it: what `npx` runs when it is given an address instead of a checkout.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { settingsHelp } from '../src/settings.ts'
import { version } from '../src/version.ts'
import { Bench, follow, root } from './support/cli.ts'

const bench = new Bench()
afterAll(() => bench.clean())

/** A project that has installed it: the package without its tests, and its dependencies beside it. */
async function installed(): Promise<string> {
  const folder = bench.folder()
  const pack = ['pack', '--json', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const packed = await bench.run(pack, {}, { command: ['npm'] })
  expect(packed.code).toBe(0)
  const [{ filename, files }] = JSON.parse(packed.stdout)
  const paths = files.map(({ path }: { path: string }) => path)
  expect(paths.filter((path: string) => /^(test|bench|\.|node_modules)|\.test\.ts$/.test(path))).toEqual([])

  const modules = join(folder, 'node_modules')
  const place = join(modules, 'waystation-service')
  mkdirSync(place, { recursive: true })
  const unpack = ['-xzf', join(folder, filename), '-C', place, '--strip-components', '1']
  expect((await bench.run(unpack, {}, { command: ['tar'] })).code).toBe(0)
  const { dependencies } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  return place
}

test('what npm packs runs without a checkout, and serves all its pages', async () => {
  const place = await installed()
  const { bin } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  const options = { command: ['node', join(place, bin.waystation)], cwd: bench.folder() }
  expect(await bench.run(['--version'], {}, options)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })

  const env = { PORT: '0', DATABASE_URL: 'sqlite::memory:', DATA_DIR: bench.folder() }
  const server = bench.start(['serve'], env, options)
  const url = /address +(\S+)/.exec(await follow(server.stdout).until('first call'))![1]!
  for (const path of ['/docs', '/docs/kv.md', '/llms.txt', '/openapi.json', '/console', '/approve/chk_1']) {
    const { status } = await fetch(url + path)
    expect([path, status]).toEqual([path, 200])
  }
  const { port } = new URL(url)
  const second = await bench.run(['serve'], { ...env, PORT: port, DATA_DIR: bench.folder() }, options)
  expect([second.code, second.stdout]).toEqual([1, ''])
  expect(second.stderr).toMatch(new RegExp(`^waystation: PORT: .*\\b${port}\\b.*\\n$`))
  server.kill('SIGTERM')
  expect(await server.exited).toBe(0)
}, 300_000)

test('it starts as waystation-service too, and where npm has run no scripts of packages', async () => {
  const place = await installed()
  // Without its script the package of Bun has no program: it is in the package of the system.
  const modules = dirname(place)
  const own = JSON.parse(readFileSync(join(modules, 'bun/package.json'), 'utf8'))
  const system = Object.keys(own.optionalDependencies).find((name) =>
    existsSync(join(root, 'node_modules', name)),
  )!
  rmSync(join(modules, 'bun'))
  for (const [name, program] of [
    ['bun', 'bun.exe'],
    [system, process.platform === 'win32' ? 'bun.exe' : 'bun'],
  ] as const) {
    mkdirSync(join(modules, name, 'bin'), { recursive: true })
    writeFileSync(join(modules, name, 'package.json'), JSON.stringify({ ...own, name }))
    if (name === system) symlinkSync(process.execPath, join(modules, name, 'bin', program))
    else
      writeFileSync(join(modules, name, 'bin', program), 'echo "its script was not run" >&2; exit 1\n', {
        mode: 0o755,
      })
  }
  const { bin } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
  const command = ['node', join(place, bin['waystation-service'])]
  const { code, stdout } = await bench.run(['--settings'], {}, { command, cwd: bench.folder() })
  expect([code, stdout]).toEqual([0, `${settingsHelp()}\n`])
}, 300_000)
