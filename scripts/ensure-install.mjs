// Runs `npm ci` when node_modules is not what package-lock.json says. `run` is enough to serve, `all` to develop. A
// package that npm installed has no lock, and everything it needs.
// Plain Node, because it runs before anything is installed.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const lock = join(root, 'package-lock.json')
const everything = process.argv[2] === 'all'

if (existsSync(lock) && !isInstalled()) {
  // Errors alone: packages that want a newer Node run on Bun here, and npm would warn of each.
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error']
  const args = ['ci', ...quiet, ...(everything ? ['--include=dev'] : ['--omit=dev'])]
  console.error(`Installing: npm ${args.join(' ')}`)
  const npm = process.env.npm_execpath
  const { status } = npm
    ? spawnSync(process.execPath, [npm, ...args], { cwd: root, stdio: ['ignore', 2, 2] })
    : spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' })
  if (status !== 0) process.exit(status ?? 1)
}

/** Every needed package is there in the locked version. Optional ones are another platform's, or npm's to judge. */
function isInstalled() {
  const { packages } = JSON.parse(readFileSync(lock, 'utf8'))
  return Object.entries(packages).every(([path, { version, dev, optional, devOptional, link }]) => {
    if (path === '' || link || optional || devOptional || (dev && !everything)) return true
    const file = join(root, path, 'package.json')
    return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version
  })
}
