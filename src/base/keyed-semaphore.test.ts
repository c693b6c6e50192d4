import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { KeyedSemaphore } from './keyed-semaphore.ts'

const running_max = 4
const mixed_ms = 100

/** Works that end when they are told to, by key. */
function bench() {
  const clock = new TestClock()
  const semaphore = new KeyedSemaphore(clock)
  const begun: string[] = []
  const ends: (() => void)[] = []
  const start = (name: string, key: string) =>
    semaphore.run(key, async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
      return name
    })
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return { clock, semaphore, begun, ends, start, settled }
}

describe('the semaphore', () => {
  test('lets everything through while only one key is asked for', async () => {
    const { clock, begun, ends, start, settled } = bench()
    clock.advance(mixed_ms)
    const first = start('0', 'a')
    clock.advance(mixed_ms)
    const rest = Array.from({ length: 99 }, (_, i) => start(String(i + 1), 'a'))
    await settled()
    expect(begun).toHaveLength(100)
    for (const end of ends) end()
    const names: string[] = await Promise.all([first, ...rest])
    expect(names).toEqual(Array.from({ length: 100 }, (_, i) => String(i)))
  })

  test('lets four of a key run while others are asked for, the rest in order, and others at once', async () => {
    const { begun, ends, start, settled } = bench()
    for (let i = 0; i < 7; i++) void start(`a${i}`, 'a')
    void start('b0', 'b')
    await settled()
    expect(begun).toEqual(['a0', 'a1', 'a2', 'a3', 'b0'])
    ends[1]!()
    ends[2]!()
    await settled()
    expect(begun.slice(5)).toEqual(['a4', 'a5'])
    for (const end of [...ends]) end()
    await settled()
    expect(begun.slice(7)).toEqual(['a6'])
  })

  test.each([
    ['still waits 99 ms after another key was asked for', mixed_ms - 1, running_max],
    ['runs at once 100 ms after', mixed_ms, running_max + 1],
  ])('the fifth of a key %s', async (_, after_ms, running) => {
    const { clock, begun, start, settled } = bench()
    for (let i = 0; i < running_max; i++) void start(`a${i}`, 'a')
    clock.advance(after_ms)
    void start('a4', 'a')
    await settled()
    expect(begun).toHaveLength(running)
  })

  test('lets the whole line in once nobody else asks', async () => {
    const { clock, begun, ends, start, settled } = bench()
    for (let i = 0; i < 10; i++) void start(`a${i}`, 'a')
    await settled()
    expect(begun).toHaveLength(running_max)
    clock.advance(mixed_ms)
    ends[0]!()
    await settled()
    expect(begun).toHaveLength(10)
  })

  test('hands failures on, and the place with them', async () => {
    const { semaphore, begun, start, settled } = bench()
    const failing = Array.from({ length: running_max }, () =>
      semaphore.run('a', async () => {
        throw new Error('away')
      }),
    )
    void start('next', 'a')
    const outcomes = await Promise.allSettled(failing)
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(running_max)
    await settled()
    expect(begun).toEqual(['next'])
  })
})
