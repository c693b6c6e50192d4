import { beforeAll, expect, test } from 'bun:test'
import { manipulations } from '../../test/seal/manipulations.ts'
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
