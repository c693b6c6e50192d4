import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { randomFrom } from '../../test/support/random.ts'
import { FairQueue } from './fair.ts'
import type { Place } from './fair-rows.ts'

const limits = {
  ...{ running_max: 10, reserve: 2, row_running_max: 2 },
  ...{ waiting_max: 100, patient_waiting_max: 10, wait_ms_max: 1_000, late_ms_max: 5_000 },
}

/** Places by name, and who runs. */
function bench(changes: Partial<typeof limits> = {}) {
  const clock = new TestClock()
  const queue = new FairQueue({ ...limits, ...changes }, clock)
  const places = new Map<string, Place>()
  const enter = (name: string, key: string, row?: string) => {
    const place = queue.enter(key, row)
    if (place) places.set(name, place)
    return place !== null
  }
  const many = (count: number, key: string, row?: string) =>
    Array.from({ length: count }, (_, i) => enter(`${key}${row ?? ''}${i}`, key, row))
  const running = () => [...places].flatMap(([name, { running }]) => (running ? [name] : []))
  const leave = (name: string) => {
    queue.leave(places.get(name)!)
    places.delete(name)
  }
  return { clock, queue, enter, many, running, leave, places }
}

describe('a fair queue', () => {
  test('gives one key alone all permits but the reserve', () => {
    const { many, running } = bench()
    many(20, 'a')
    expect(running()).toEqual(['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'])
  })

  test('gives every second permit to an urgent key that holds none, before all that have waited for longer', () => {
    const { queue, enter, many, running, leave, places } = bench()
    many(8, 'a')
    for (const key of ['b', 'c']) enter(key, key)
    for (const key of ['d', 'e', 'f']) enter(key, key)
    for (const [name, key] of [
      ['u', 'urgent 1'],
      ['u again', 'urgent 1'],
      ['v', 'urgent 2'],
    ] as const)
      places.set(name, queue.enter(key, undefined, undefined, true, true)!)
    const begun: string[] = []
    for (let i = 0; i < 8; i++) {
      const before = new Set(running())
      leave(`a${i}`)
      begun.push(...running().filter((name) => !before.has(name)))
    }
    expect(begun).toEqual(['u', 'd', 'v', 'e', 'f', 'u again'])
  })

  test('refuses a place behind one of its key that has waited too long, until that has its permit; not to others', () => {
    const { clock, queue, enter, many, leave } = bench()
    many(12, 'a')
    clock.advance(1_000)
    expect(enter('a12', 'a')).toBe(true)
    clock.advance(1)
    expect(enter('a13', 'a')).toBe(true) // seen for the first time
    clock.advance(100)
    expect(enter('a14', 'a')).toBe(false)
    expect([enter('b0', 'b'), enter('c0', 'c'), enter('d0', 'd')]).toEqual([true, true, true])
    expect(queue.enter('a', undefined, undefined, true)).not.toBeNull()
    for (let i = 0; i < 8; i++) leave(`a${i}`)
    expect(enter('a14', 'a')).toBe(true)
  })

  test('takes one long pause of the process for no long wait', () => {
    const { clock, queue, enter, many, leave } = bench()
    many(12, 'a')
    many(2, 'b')
    many(2, 'c')
    clock.advance(60_000)
    expect([enter('a12', 'a'), queue.isLate()]).toEqual([true, false])
    for (let i = 0; i < 8; i++) leave(`a${i}`)
    clock.advance(100)
    expect([enter('a13', 'a'), queue.isLate()]).toEqual([true, false])
  })

  test('is not late for those that a stranger may make up, nor for what is patient', () => {
    const { clock, queue, enter, many } = bench()
    many(12, 'a')
    for (const key of ['made up 1', 'made up 2']) queue.enter(key, undefined, 'strangers')
    for (const key of ['b', 'c', 'd']) queue.enter(key)
    queue.enter('urgent', undefined, undefined, true)
    const late = () => {
      clock.advance(60_000)
      queue.isLate()
      clock.advance(100)
      return queue.isLate()
    }
    expect([queue.counts.free, late()]).toEqual([0, true])
    const other = bench()
    other.many(8, 'a')
    for (const key of ['x', 'y', 'z', 'w']) other.queue.enter(key, undefined, 'strangers')
    other.queue.enter('urgent', undefined, undefined, true)
    other.clock.advance(60_000)
    other.queue.isLate()
    other.clock.advance(100)
    expect([other.queue.counts.free, other.queue.isLate()]).toEqual([0, false])
    expect(enter('e', 'e')).toBe(false)
  })

  test('counts the wait for a row to the row, not to the permits', () => {
    const { clock, enter, leave } = bench()
    for (const name of ['w0', 'w1', 'w2']) enter(name, 'a', 'row')
    clock.advance(5_000)
    leave('w0')
    expect(enter('w3', 'a', 'row')).toBe(true)
  })

  test('gives a key that comes a permit of the reserve at once, and no second one while others wait', () => {
    const { many, running } = bench()
    many(20, 'a')
    many(2, 'b')
    many(1, 'c')
    expect(running().slice(8)).toEqual(['b0', 'c0'])
    many(1, 'd')
    expect(running()).toHaveLength(10)
  })

  test('has a place ready only when one waits that would get a permit: not for its row, nor past the reserve', () => {
    const { queue, enter } = bench({ running_max: 4, reserve: 1, row_running_max: 1 })
    for (const name of ['w0', 'w1']) enter(name, 'work', 'row')
    expect(queue.hasReady).toBe(false)
    enter('a0', 'a')
    for (const name of ['b0', 'b1']) enter(name, 'b')
    expect(queue.hasReady).toBe(true)
    // With the reserve out, `b` gets none of what comes free, and a key without any does.
    enter('c0', 'c')
    expect(queue.hasReady).toBe(false)
    enter('d0', 'd')
    expect(queue.hasReady).toBe(true)
  })

  test('gives what comes free to the key that has fewest, until all who wait have the same', () => {
    const { many, running, leave } = bench()
    many(20, 'a')
    many(20, 'b')
    for (let i = 0; i < 4; i++) leave(`a${i}`)
    const of = (key: string) => running().filter((name) => name.startsWith(key)).length
    expect([of('a'), of('b')]).toEqual([4, 4])
    leave('b0')
    expect([of('a'), of('b')]).toEqual([4, 4])
  })

  test('serves each key in the order in which it came, and keys of the same standing in turn', () => {
    const { enter, running, leave } = bench({ running_max: 1, reserve: 0 })
    for (const name of ['a0', 'a1', 'a2', 'b0', 'b1', 'c0']) enter(name, name[0]!)
    const order: string[] = []
    for (let i = 0; i < 6; i++) {
      const [name] = running()
      order.push(name!)
      leave(name!)
    }
    expect(order).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2'])
  })

  test('lets the keys of a group wait beside each other, and leaves room for all that are in none', () => {
    const queue = new FairQueue(limits, new TestClock())
    const waiting = (count: number, keyOf: (i: number) => string, group?: string) =>
      Array.from({ length: count }, (_, i) => queue.enter(keyOf(i), undefined, group)).filter(
        (place) => place !== null && place.turn !== null,
      ).length
    expect(waiting(200, () => 'flooded', 'strangers')).toBe(50)
    expect(waiting(200, (i) => `made up ${i}`, 'strangers')).toBe(25)
    expect(waiting(20, (i) => `tenant ${i}`)).toBe(20)
  })

  test('is late once a key without a permit has waited too long for one, and lets only the patient wait then', () => {
    const { clock, queue, enter, many, running, leave } = bench()
    many(8, 'a')
    for (const key of ['b', 'x']) many(1, key)
    enter('a waits', 'a')
    clock.advance(60_000)
    expect(queue.isLate()).toBe(false) // a, b and x hold permits
    enter('c0', 'c')
    clock.advance(limits.late_ms_max)
    expect([queue.isLate(), enter('d0', 'd')]).toEqual([false, true])
    clock.advance(1)
    expect(queue.isLate()).toBe(false) // seen for the first time
    clock.advance(100)
    expect([queue.isLate(), enter('e0', 'e'), queue.enter('f', undefined, undefined, true) !== null]).toEqual(
      [...[true, false, true]],
    )
    leave('b0')
    expect(running()).toContain('c0')
    expect([queue.isLate(), enter('e0', 'e')]).toEqual([false, true])
  })

  test('has room for the patient when the others have none, and for no more than that', () => {
    const { queue, many } = bench()
    for (let i = 0; i < 200; i++) many(1, `c${i}`)
    const patient = Array.from({ length: 11 }, (_, i) => queue.enter(`p${i}`, undefined, undefined, true))
    expect(patient.map((place) => place !== null)).toEqual([...Array(10).fill(true), false])
  })

  test('serves a key that always waits, however many keys with one call each leave and come back', () => {
    const { enter, running, leave } = bench({ running_max: 2, reserve: 0 })
    for (let i = 0; i < 5; i++) enter(`single ${i}`, `single ${i}`)
    for (let i = 0; i < 20; i++) enter(`shared ${i}`, 'shared')
    let of_shared = 0
    for (let i = 0; i < 60; i++) {
      const [name] = running()
      leave(name!)
      if (name!.startsWith('shared')) of_shared += 1
      else enter(name!, name!)
    }
    expect(of_shared).toBeGreaterThanOrEqual(10)
  })

  test('lets two of a row run, in the order in which they came, and others of the key past them', () => {
    const { enter, many, running, leave } = bench()
    many(5, 'a', 'row')
    enter('free', 'a')
    many(1, 'b', 'row')
    expect(running()).toEqual(['arow0', 'arow1', 'free', 'brow0'])
    leave('arow1')
    expect(running()).toEqual(['arow0', 'arow2', 'free', 'brow0'])
    leave('arow0')
    leave('arow2')
    expect(running()).toEqual(['arow3', 'arow4', 'free', 'brow0'])
  })

  test('lets a key have as many waiting as there is room left for, so that there is room for the next', () => {
    const { many, places } = bench()
    expect(many(8, 'a')).toEqual(Array(8).fill(true))
    expect(many(51, 'a')).toEqual([...Array(50).fill(true), false])
    expect(many(28, 'b')).toEqual([...Array(26).fill(true), false, false])
    expect(many(1, 'c')).toEqual([true])
    expect(places.size).toBeGreaterThan(0)
  })

  test('lets a row have half as many waiting, so that the key has room beside it', () => {
    const { many } = bench()
    expect(many(2 + 34, 'a', 'row')).toEqual([...Array(2 + 34).fill(true)])
    expect(many(1, 'a', 'row')).toEqual([false])
    expect(many(1, 'a', 'other')).toEqual([true])
  })

  test('forgets a place that is given up while it waits, for a permit or for a row', () => {
    const { enter, many, running, leave } = bench({ running_max: 1, reserve: 0 })
    enter('first', 'a', 'row')
    enter('ready', 'a', 'row')
    enter('behind', 'a', 'row')
    enter('last', 'a', 'row')
    leave('behind')
    leave('ready')
    expect(running()).toEqual(['first'])
    leave('first')
    expect(running()).toEqual(['last'])
    leave('last')
    expect(many(1, 'b')).toEqual([true])
    expect(running()).toEqual(['b0'])
  })

  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'whatever comes and goes, no permit is lost, none given twice, and no row has more than two (%d)',
    (seed) => {
      const random = randomFrom(seed)
      const queue = new FairQueue(limits, new TestClock())
      const places: { place: Place; row: string | undefined }[] = []
      for (let step = 0; step < 3_000; step++) {
        if (random(100) < 55) {
          const row = random(3) === 0 ? `r${random(2)}` : undefined
          const place = queue.enter(`k${random(6)}`, row)
          if (place) places.push({ place, row })
        } else if (places.length > 0) {
          queue.leave(places.splice(random(places.length), 1)[0]!.place)
        }
        const running = places.filter(({ place }) => place.running)
        expect(running.length).toBeLessThanOrEqual(limits.running_max)
        const rows = new Map<string, number>()
        for (const { place, row } of running) {
          const name = `${place.key} ${row}`
          if (row !== undefined) rows.set(name, (rows.get(name) ?? 0) + 1)
        }
        expect(Math.max(0, ...rows.values())).toBeLessThanOrEqual(limits.row_running_max)
        const idle = places.filter(
          ({ place, row }) =>
            !place.running &&
            (row === undefined || (rows.get(`${place.key} ${row}`) ?? 0) < limits.row_running_max),
        )
        // Every place that may run does, except on the reserve.
        if (running.length < limits.running_max - limits.reserve) expect(idle).toEqual([])
      }
      for (const { place } of places.splice(0)) queue.leave(place)
      expect(queue.enter('k0')!.running).toBe(true)
    },
  )
})
