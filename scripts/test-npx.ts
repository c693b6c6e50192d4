// `npm run test:npx`: packs the service, and starts it with npx in an empty folder, as somebody does who has nothing else.
// Needs an npm registry for its dependencies, and Linux, because it looks at processes.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../test/support/ports.ts'
import { lastChild, mainJob, type Running } from './deploy/main-job.ts'

const root = join(import.meta.dir, '..')
const scratch = mkdtempSync(join(tmpdir(), 'waystation-npx-'))
const empty = mkdtempSync(join(tmpdir(), 'waystation-empty-'))
try {
  const packed = Bun.spawnSync(['npm', 'pack', '--silent', '--pack-destination', scratch], { cwd: root })
  if (packed.exitCode !== 0) throw new Error(packed.stderr.toString())
  const tarball = join(scratch, packed.stdout.toString().trim())
  console.log(`${tarball}, ${Math.round(Bun.file(tarball).size / 1_024)} KiB`)
  const port = String(freePort())
  // Each way that npm may go: with the scripts of packages, and with none.
  for (const ignored of ['false', 'true']) {
    const cache = join(scratch, `cache-${ignored}`)
    const env = { PORT: port, npm_config_cache: cache, npm_config_ignore_scripts: ignored }
    const lines = await mainJob(`http://127.0.0.1:${port}`, () => start(tarball, env))
    for (const line of lines) console.log(`ok  ${ignored === 'true' ? 'without scripts: ' : ''}${line}`)
    console.log(`ok  made ${readdirSync(empty).join(', ')} and nothing else in the folder`)
    rmSync(join(empty, 'data'), { recursive: true })
  }
} finally {
  for (const folder of [scratch, empty]) rmSync(folder, { recursive: true, force: true })
}

/** npm and its launchers stand between: the service is the last of the chain, and they pass on its exit code. */
function start(tarball: string, env: Readonly<Record<string, string>>): Running {
  const child = Bun.spawn(['npx', '--yes', '--package', tarball, 'waystation-service'], {
    cwd: empty,
    env: { ...process.env, ...env },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  return {
    pid: () => lastChild(child.pid),
    async end(signal) {
      process.kill(lastChild(child.pid), signal)
      return child.exited
    },
    log: () => '',
  }
}
