import { expect, test } from 'bun:test'
import { Repeat } from './repeat.ts'

test('work that repeats runs a last time, after the run that is under way', async () => {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const seen: string[] = []
  const repeat = new Repeat(1, async () => {
    seen.push('begins')
    begun.resolve()
    await gate.promise
    seen.push('ends')
  })
  repeat.start(() => {})
  await begun.promise
  const stopping = repeat.stop()
  gate.resolve()
  await stopping
  expect(seen).toEqual(['begins', 'ends', 'begins', 'ends'])
})
