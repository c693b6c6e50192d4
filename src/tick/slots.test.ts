import { describe, expect, test } from 'bun:test'
import { destination_max, type Lane, lane_max, node_max, Slots } from './slots.ts'

const one: Lane = { tenant_id: 'ten_one', destination: 'http://one.test' }
const none: Lane = { tenant_id: 'ten_one', destination: '' }

/** Takes as many places as there are; answers how many that were. */
function fill(slots: Slots, lane: Lane): number {
  let taken = 0
  for (; slots.isFree(lane); taken++) slots.take(lane)
  return taken
}

function giveBack(slots: Slots, lane: Lane, times: number, answered: boolean | null): void {
  for (let i = 0; i < times; i++) slots.giveBack(lane, answered)
}

/** A lane whose receiver has answered often enough; all its places are free. */
function proven(slots: Slots, lane: Lane): void {
  for (let i = 1; i < lane_max; i++) {
    slots.take(lane)
    slots.giveBack(lane, true)
  }
}

const lanesOf = (tenants: number, destination = (i: number) => `http://host-${i}.test`): Lane[] =>
  Array.from({ length: tenants }, (_, i) => ({ tenant_id: `ten_${i}`, destination: destination(i) }))

test('the bounds are 256 attempts on a node, 16 for one destination, and 12 of these for one tenant', () => {
  expect([node_max, destination_max, lane_max]).toEqual([256, 16, 12])
})

describe('slow start', () => {
  test('a lane begins with one place, and has one more for each answer, up to 12', () => {
    const slots = new Slots()
    const places = []
    for (let answers = 0; answers < 20; answers++) {
      const taken = fill(slots, one)
      places.push(taken)
      slots.giveBack(one, true)
      giveBack(slots, one, taken - 1, null)
    }
    expect(places).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 12, 12, 12, 12, 12, 12, 12])
  })

  test('doubles with each round of answers', () => {
    const slots = new Slots()
    const rounds = []
    for (let round = 0; round < 6; round++) {
      const taken = fill(slots, one)
      rounds.push(taken)
      giveBack(slots, one, taken, true)
    }
    expect(rounds).toEqual([1, 2, 4, 8, 12, 12])
  })

  test('falls back to one place when no answer comes, and begins anew', () => {
    const slots = new Slots()
    proven(slots, one)
    expect(fill(slots, one)).toBe(12)
    slots.giveBack(one, false)
    expect(slots.isFree(one)).toBe(false)
    giveBack(slots, one, 10, null)
    expect(slots.isFree(one)).toBe(false)
    giveBack(slots, one, 1, null)
    expect(fill(slots, one)).toBe(1)
    slots.giveBack(one, true)
    expect(fill(slots, one)).toBe(2)
  })

  test('counts nothing where nothing was tried', () => {
    const slots = new Slots()
    slots.take(one)
    slots.giveBack(one, null)
    expect(fill(slots, one)).toBe(1)
  })

  const others: [whose: string, lane: Lane][] = [
    ['the same receiver for another tenant', { ...one, tenant_id: 'ten_two' }],
    ['another receiver for the same tenant', { ...one, destination: 'http://two.test' }],
  ]
  test.each(others)('is of one lane: %s neither gains nor loses by it', (_, other) => {
    const slots = new Slots()
    proven(slots, one)
    expect(fill(slots, other)).toBe(1)
    giveBack(slots, other, 1, false)
    expect(fill(slots, one)).toBe(12)
  })
})

describe('one destination', () => {
  test('has 16 places, however many tenants call it', () => {
    const slots = new Slots()
    const lanes = lanesOf(20, () => one.destination)
    const taken = lanes.filter((lane) => fill(slots, lane) === 1)
    expect(taken).toEqual(lanes.slice(0, 16))
    slots.giveBack(lanes[0]!, null)
    expect(slots.isFree(lanes[19]!)).toBe(true)
  })

  test('that two tenants share has places for the second, whatever the first has taken', () => {
    const slots = new Slots()
    const two = { ...one, tenant_id: 'ten_two' }
    for (const lane of [one, two]) proven(slots, lane)
    expect([fill(slots, one), fill(slots, two)]).toEqual([12, 4])
    giveBack(slots, one, 8, true)
    expect(fill(slots, two)).toBe(8)
    expect([slots.isFree(one), slots.isFree(two)]).toEqual([false, false])
  })

  test('that has none left keeps no other from its places', () => {
    const slots = new Slots()
    const two = { ...one, tenant_id: 'ten_two' }
    for (const lane of [one, two]) proven(slots, lane)
    expect(fill(slots, one) + fill(slots, two)).toBe(16)
    expect(slots.isFree({ ...one, tenant_id: 'ten_three' })).toBe(false)
    expect(slots.isFree({ tenant_id: 'ten_three', destination: 'http://two.test' })).toBe(true)
  })
})

describe('the node', () => {
  test('has 256 places for all destinations together', () => {
    const slots = new Slots()
    const lanes = lanesOf(300)
    const taken = lanes.filter((lane) => fill(slots, lane) === 1)
    expect(taken).toEqual(lanes.slice(0, 256))
    expect(slots.free).toBe(0)
    slots.giveBack(lanes[7]!, false)
    expect(slots.free).toBe(1)
    expect(slots.isFree(lanes[299]!)).toBe(true)
  })

  test('gives a timeout, which sends nothing, any free place', () => {
    const slots = new Slots()
    expect(fill(slots, none)).toBe(256)
    expect(slots.isFree(one)).toBe(false)
    giveBack(slots, none, 1, null)
    expect(slots.isFree(one)).toBe(true)
    expect(slots.isFree(none)).toBe(true)
  })

  test('has all its places again once all were given back, whatever came of them', () => {
    const slots = new Slots()
    for (const answered of [true, false, null]) {
      const lanes = [...lanesOf(200), none]
      const taken = lanes.map((lane) => fill(slots, lane))
      lanes.forEach((lane, i) => {
        giveBack(slots, lane, taken[i]!, answered)
      })
      expect(slots.free).toBe(256)
    }
  })

  test('remembers a bounded number of idle lanes: a forgotten one begins anew, a busy one is kept', () => {
    const slots = new Slots()
    const busy = { tenant_id: 'ten_busy', destination: 'http://busy.test' }
    proven(slots, one)
    proven(slots, busy)
    slots.take(busy)
    for (const lane of lanesOf(10_000)) {
      slots.take(lane)
      slots.giveBack(lane, true)
    }
    expect(fill(slots, one)).toBe(1)
    expect(fill(slots, busy)).toBe(11)
    giveBack(slots, busy, 12, true)
    giveBack(slots, one, 1, true)
    expect(slots.free).toBe(256)
  })
})
