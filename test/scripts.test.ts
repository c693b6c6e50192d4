// The scripts of package.json that need more than Bun.

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')
const folder = mkdtempSync(join(tmpdir(), 'waystation-scripts-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

/** As npm runs it, on a machine where no other program is installed. */
async function run(script: string, args: string[], env: Record<string, string> = {}) {
  const [, file] = /^bun (\S+)$/.exec(scripts[script]!)!
  const child = Bun.spawn([process.execPath, join(root, file!), ...args], {
    env: { PATH: folder, TMPDIR: folder, ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code: await child.exited, stdout, stderr }
}

describe('A script without a program that it needs', () => {
  const python = 'which is not installed: install Python 3.10 or newer, or name one in PYTHON'
  test.each([
    [
      'test:proxy',
      [],
      'needs caddy, which is not installed: get Caddy 2.7 or newer, https://caddyserver.com/docs/install',
    ],
    [
      'test:pgbouncer',
      [],
      'needs pgbouncer, which is not installed: get PgBouncer 1.21 or newer, or name it in PGBOUNCER',
    ],
    [
      'test:image',
      ['an-image'],
      'needs Docker, Podman or Buildah, and none works here: install it, or start its service',
    ],
    [
      'test:image',
      ['an-image', '--engine', 'podman'],
      'needs podman, which does not work here: install it, or start its service',
    ],
    ['test:python', [], `needs python3, ${python}`],
    ['test:generators', [], `needs python3, ${python}`],
    [
      'check:metrics',
      [],
      'needs promtool, which is not installed: it comes with Prometheus, https://prometheus.io/download/',
    ],
  ] as [script: string, args: string[], sentence: string][])(
    '%s %j ends with 1 and says so in one sentence',
    async (script, args, sentence) => {
      expect(await run(script, args)).toEqual({
        code: 1,
        stdout: '',
        stderr: `npm run ${script} ${sentence}\n`,
      })
    },
  )

  test('test:image without an image says how it is called', async () => {
    const stderr = 'npm run test:image needs an image: npm run test:image -- <image>\n'
    expect(await run('test:image', [])).toEqual({ code: 1, stdout: '', stderr })
  })

  test('a program that is too old is named, and its version', async () => {
    const PGBOUNCER = join(folder, 'old-pgbouncer')
    writeFileSync(PGBOUNCER, '#!/bin/sh\necho PgBouncer 1.20.9\n', { mode: 0o755 })
    const stderr = `npm run test:pgbouncer needs a newer ${PGBOUNCER} than 1.20.9: get PgBouncer 1.21 or newer, or name it in PGBOUNCER\n`
    expect(await run('test:pgbouncer', [], { PGBOUNCER })).toEqual({ code: 1, stdout: '', stderr })
  })

  test('a program that is no such Python is named', async () => {
    const PYTHON = process.execPath
    const stderr = `npm run test:python needs Python 3.10 or newer with venv, and ${PYTHON} is not: name another in PYTHON\n`
    expect(await run('test:python', [], { PYTHON })).toEqual({ code: 1, stdout: '', stderr })
  })
})
