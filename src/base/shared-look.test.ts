import { expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { SharedLook } from './shared-look.ts'

function bench() {
  const clock = new TestClock()
  const looks: PromiseWithResolvers<number>[] = []
  const shared = new SharedLook(clock, 1_000, () => {
    const look = Promise.withResolvers<number>()
    looks.push(look)
    return look.promise
  })
  return { clock, looks, shared }
}

test('all who ask while a look is under way share it', async () => {
  const { looks, shared } = bench()
  const asked = [shared.get(), shared.get(), shared.get()]
  looks[0]!.resolve(7)
  expect(await Promise.all(asked)).toEqual([7, 7, 7])
  expect(looks).toHaveLength(1)
})

test('what it has found holds for its time from its beginning, and not longer', async () => {
  const { clock, looks, shared } = bench()
  const first = shared.get()
  clock.advance(400)
  looks[0]!.resolve(1)
  await first
  clock.advance(599)
  expect([await shared.get(), looks.length]).toEqual([1, 1])
  clock.advance(1)
  const second = shared.get()
  looks[1]!.resolve(2)
  expect([await second, looks.length]).toEqual([2, 2])
})

test('what took longer than that is told to those who waited, and the next looks again', async () => {
  const { clock, looks, shared } = bench()
  const first = shared.get()
  clock.advance(1_001)
  looks[0]!.resolve(1)
  expect(await first).toBe(1)
  const second = shared.get()
  looks[1]!.resolve(2)
  expect(await second).toBe(2)
})

test('a failure is for those who waited for it: the next looks again', async () => {
  const { looks, shared } = bench()
  const asked = [shared.get(), shared.get()]
  looks[0]!.reject(new Error('away'))
  const failed = await Promise.allSettled(asked)
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const next = shared.get()
  looks[1]!.resolve(2)
  expect([await next, looks.length]).toEqual([2, 2])
})
