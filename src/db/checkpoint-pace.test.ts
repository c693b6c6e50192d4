import { expect, test } from 'bun:test'
import { CheckpointPace } from './checkpoint-pace.ts'

test('a commit of more than 25 ms halves the log, down to an eighth; one of 25 ms does not', () => {
  const pages: number[] = []
  const pace = new CheckpointPace((count) => pages.push(count))
  pace.committed(25)
  expect(pages).toEqual([])
  for (let n = 0; n < 5; n++) pace.committed(26)
  expect(pages).toEqual([2_000, 1_000, 500])
})

test('the log doubles again with every second, up to 4,000 pages', () => {
  const pages: number[] = []
  const pace = new CheckpointPace((count) => pages.push(count))
  pace.relax()
  for (let n = 0; n < 3; n++) pace.committed(100)
  for (let n = 0; n < 5; n++) pace.relax()
  expect(pages).toEqual([2_000, 1_000, 500, 1_000, 2_000, 4_000])
})
