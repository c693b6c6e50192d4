#!/usr/bin/env node
// Runs the command with the Bun that npm installed, after installing what is missing. Plain Node, because it runs
// before anything is installed.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { constants } from 'node:os'
import { basename, delimiter, dirname, join, relative, resolve, sep } from 'node:path'
import { isatty } from 'node:tty'
import { fileURLToPath } from 'node:url'

// Yarn's script adds findPnpApi, and runs before every program that a project starts: also before one that is installed elsewhere.
if (module.findPnpApi?.(fileURLToPath(import.meta.url))) {
  console.error(
    'waystation: Yarn keeps packages in archives here, which Bun cannot run. Put `nodeLinker: node-modules` into .yarnrc.yml and run `yarn install`.',
  )
  process.exit(1)
}
const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const installed = spawnSync(process.execPath, [join(root, 'scripts', 'ensure-install.mjs'), 'run'], {
  stdio: ['ignore', 2, 2],
})
if (installed.status !== 0) process.exit(installed.status ?? 1)

/** Without its program the package of Bun has a few lines that say so. */
const stub_bytes_max = 1_000_000

// No setting of the folder that somebody happens to stand in: a bunfig.toml there could run code, a .env bring keys.
const bun = bunProgram(createRequire(import.meta.url).resolve('bun/package.json')) // beside us when we are a package
const settings = [`--config=${join(root, 'bunfig.toml')}`, '--no-env-file']
const child = spawn(bun, [...settings, join(root, 'cli', 'main.ts'), ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, WAYSTATION_COMMAND: command() },
})

/** The script of Bun's package puts the program into it. npm may run no scripts; it is then in the package of this system. */
function bunProgram(bun_package) {
  const own = join(dirname(bun_package), 'bin', 'bun.exe') // its name on every system
  if (existsSync(own) && statSync(own).size > stub_bytes_max) return own
  const { optionalDependencies } = JSON.parse(readFileSync(bun_package, 'utf8'))
  const { resolve: find } = createRequire(bun_package)
  for (const name of Object.keys(optionalDependencies)) {
    try {
      const file = name.includes('windows') ? 'bun.exe' : 'bun'
      const program = join(dirname(find(`${name}/package.json`)), 'bin', file)
      if (existsSync(program)) return program
    } catch {
      // Another system's.
    }
  }
  return own
}

/** The words that started this, for hints that can be typed. */
function command() {
  const { npm_command, PATH = '' } = process.env
  if (npm_command === 'exec') return 'npx waystation'
  const started = process.argv[1]
  const here = currentFolder()
  if (here === null) return started
  const on_path = PATH.split(delimiter).some(
    (folder) => folder !== '' && resolve(here, folder) === dirname(started),
  )
  if (on_path && basename(started) === 'waystation') return 'waystation'
  const path = relative(here, started)
  return path.startsWith('..') ? started : `.${sep}${path}`
}

/** Null when it was removed, in which every command still runs. */
function currentFolder() {
  try {
    return process.cwd()
  } catch {
    return null
  }
}

// A terminal sends its signals to the child as well, and a second one would end a service that drains.
const at_terminal = [0, 1, 2].some((fd) => isatty(fd))
process.on('SIGINT', () => at_terminal || child.kill('SIGINT'))
process.on('SIGTERM', () => child.kill('SIGTERM'))
process.on('SIGHUP', () => child.kill('SIGHUP'))

child.on('error', (error) => {
  console.error(`waystation: cannot start ${bun}: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
