import { expect, test } from 'bun:test'
import { inBatches } from './backoff.ts'
import { DbError, type DbErrorKind } from './errors.ts'

/** The batches that were tried when those with the row 2 fail with this error. */
async function triedWith(kind: DbErrorKind): Promise<number[][]> {
  const tried: number[][] = []
  const error = new DbError(kind, 'no')
  const all = inBatches([1, 2, 3], 2, async (batch) => {
    tried.push([...batch])
    if (batch.includes(2)) throw error
  })
  await expect(all).rejects.toBe(error)
  return tried
}

test('the rows of a batch that fails are tried one by one, and those behind it have their turn', async () => {
  expect(await triedWith('busy')).toEqual([[1, 2], [1], [2], [3]])
})

test('while the database is away they are not: each would wait as long', async () => {
  expect(await triedWith('lost')).toEqual([[1, 2], [3]])
})
