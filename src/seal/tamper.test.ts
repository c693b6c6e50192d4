import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkOf, forged, honest, type Materials, materialsIn } from '../../test/seal/forgeries.ts'
import { manipulations } from '../../test/seal/manipulations.ts'
import { hasPython, type Python, startPython } from '../../test/seal/python.ts'
import { changedRound, honestRound, verifier } from '../../test/seal/rounds.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import type { Db } from '../db/db.ts'

/** Of each kind; `npm run test:seal` makes 1,000, and has both verifiers look. */
const rounds_each = 3
const seed = 20261122

forEachDatabase('The stored journal', (databases) => {
  const kinds = Object.keys(manipulations)
  let db: Db
  beforeAll(async () => {
    db = (await databases.open()).db
  })

  test.each(kinds.map((kind, i) => [kind, i] as const))(
    'a kept checkpoint finds it when %s',
    async (_, i) => {
      for (let round = 0; round < rounds_each; round++) {
        expect(await changedRound(db, i + round * kinds.length, seed, { verifier })).toEqual([])
      }
    },
  )

  test('honest bundles are accepted', async () => {
    for (let n = 0; n < 6; n++) expect(await honestRound(db, n, seed, { verifier }, 5)).toEqual([])
  })
})

/** That in Python is asked too where there is one; `npm run test:seal` insists on it. */
forEachDatabase('A bundle', (databases) => {
  let of: Materials
  let python: Python | null = null
  beforeAll(async () => {
    of = await materialsIn((await databases.open()).db)
    if (hasPython()) python = startPython()
  })
  afterAll(() => python?.stop())

  test.each(Object.keys(honest))('is accepted: %s', async (name) => {
    const check = await checkOf(of, honest[name]!)
    expect([await verifier(check), (await python?.verify(check)) ?? null]).toEqual([null, null])
  })

  test('is judged by the exit code of verify_bundle.py, also with a byte order mark, and when nobody reads', async () => {
    if (!python) return
    const folder = mkdtempSync(join(tmpdir(), 'waystation-bundle-'))
    const file = join(folder, 'bundle.json')
    const valid = JSON.stringify(of.whole)
    const invalid = JSON.stringify({ ...of.whole, events: [] })
    const codes = [valid, `\ufeff${valid}`, invalid].map((text) => {
      writeFileSync(file, text)
      const command = ['python3', '-u', 'examples/verify_bundle.py', file]
      const unread = ['bash', '-c', 'exec 3> >(:); wait $!; "$@" >&3', 'bash', ...command]
      return [command, unread].map((words) => Bun.spawnSync(words, { stderr: 'ignore' }).exitCode)
    })
    expect(codes).toEqual([
      [0, 0],
      [0, 0],
      [1, 1],
    ])
    rmSync(folder, { recursive: true })
  })

  test.each(Object.keys(forged))('is refused: %s', async (name) => {
    const check = await checkOf(of, forged[name]!)
    expect(await verifier(check)).toBeString()
    if (python) expect(await python.verify(check)).toMatch(/Refused|TypeError/)
  })
})
