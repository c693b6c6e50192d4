import { describe, expect, test } from 'bun:test'
import { DiskPace } from './sqlite-pace.ts'

/** A disk with flushes of these lengths, each a millisecond after the one before. Returns where each of them ran. */
class Flushes {
  readonly pace = new DiskPace()
  now = 0

  run(...lengths_ms: number[]): string {
    return lengths_ms.map((ms) => this.#one(ms)).join('')
  }

  #one(ms: number): 'i' | 'o' {
    const in_loop = this.pace.is_quick
    this.now += ms + 1
    if (in_loop) this.pace.tookInLoop(ms, this.now)
    else this.pace.tookOffLoop(ms, this.now)
    return in_loop ? 'i' : 'o'
  }

  times(count: number, ms: number): string {
    return this.run(...Array<number>(count).fill(ms))
  }
}

const quick = 0.1
const slow = 1

function settled(): Flushes {
  const flushes = new Flushes()
  flushes.times(40, quick)
  return flushes
}

describe('a quick disk', () => {
  test('is flushed in the loop, from the first flush on', () => {
    expect(new Flushes().times(100, quick)).toBe('i'.repeat(100))
  })

  test('stays so with a slow flush now and then', () => {
    const flushes = settled()
    for (let n = 0; n < 20; n++) expect(flushes.run(9, ...Array(20).fill(quick))).toBe('i'.repeat(21))
  })

  test('with 0.2 ms a flush that stumbles four times a second has a quarter of its flushes off the loop at most', () => {
    const flushes = new Flushes()
    let ran = ''
    for (let n = 0; n < 200; n++) ran += flushes.run(5, 5, ...Array(200).fill(0.2))
    expect(ran.match(/o+/g)).toHaveLength(200)
    expect(ran.replaceAll('i', '').length).toBeLessThan(ran.length / 4)
  })

  test('is left when flushes grow slow, after two of them', () => {
    expect(settled().run(slow, slow, slow)).toBe('iio')
  })

  test('is left after a single flush of 10 ms, which may be the first of a disk that hangs', () => {
    expect(settled().run(9.9, quick)).toBe('ii')
    expect(settled().run(10, quick)).toBe('io')
  })
})

describe('a slow disk', () => {
  test('is flushed in the loop once, and then off it', () => {
    expect(new Flushes().times(5, 0.4)).toBe('ioooo')
    expect(new Flushes().times(50, 5)).toBe(`i${'o'.repeat(49)}`)
  })

  test('that takes over 4 ms for a flush is never tried again', () => {
    expect(new Flushes().times(100_000, 4.1)).toBe(`i${'o'.repeat(99_999)}`)
  })

  test('is tried again after 50 ms, then each time after twice as long, to a minute', () => {
    const flushes = new Flushes()
    const tried_at = [...flushes.times(120_000, slow)].flatMap((where, n) => (where === 'i' ? [2 * n] : []))
    const pauses = tried_at.slice(1).map((at, i) => at - tried_at[i]!)
    const expected = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000]
    expect(pauses.length).toBeGreaterThan(expected.length)
    for (const [i, pause] of pauses.entries())
      expect(Math.abs(pause - (expected[i] ?? 60_000))).toBeLessThan(5)
  })
})

describe('a disk that grows quick again', () => {
  test('is flushed in the loop again, and left at the first slow flush until it has proved itself', () => {
    const flushes = new Flushes()
    flushes.times(20, slow)
    flushes.now += 50
    expect(flushes.run(quick, quick, slow, quick)).toBe('oiio')
  })

  test('starts over with the short pause once it has proved itself', () => {
    const flushes = new Flushes()
    flushes.times(20_000, slow)
    flushes.now += 60_000
    expect(flushes.times(40, quick)).toBe(`o${'i'.repeat(39)}`)
    expect(flushes.run(slow, slow, slow)).toBe('iio')
    flushes.now += 50 - 2
    expect(flushes.run(quick, quick)).toBe('oi')
  })

  test('stays off the loop for 250 ms after a flush of 10 ms, however short the pause was', () => {
    const flushes = settled()
    expect(flushes.run(10)).toBe('i')
    flushes.now += 240
    expect(flushes.run(quick, quick)).toBe('oo')
    flushes.now += 10
    expect(flushes.run(quick, quick)).toBe('oi')
  })

  test('stays off twice as long each time that it hangs within a hundred times what the flush took', () => {
    const flushes = settled()
    const hung_at: number[] = []
    for (let n = 0; n < 12; n++) {
      expect(flushes.run(100)).toBe('i')
      hung_at.push(flushes.now)
      while (flushes.run(quick) === 'o');
      flushes.times(40, quick)
    }
    const pauses = hung_at.slice(1).map((at, i) => at - hung_at[i]! - 101)
    const expected = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    for (const [i, pause] of pauses.entries()) expect(Math.abs(pause - expected[i]! - 45)).toBeLessThan(5)
  })

  test('stays off for 250 ms again when it has hung for no more than a hundredth of the time', () => {
    const flushes = settled()
    for (let n = 0; n < 3; n++) {
      expect(flushes.run(100)).toBe('i')
      flushes.now += 250
      expect(flushes.times(40, quick)).toBe(`o${'i'.repeat(39)}`)
      flushes.now += 10_000
    }
  })
})
