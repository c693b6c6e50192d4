import { describe, expect, test } from 'bun:test'
import { seededRandom } from '../../test/support/work-process.ts'
import {
  ahead_max,
  destination_max,
  type Ended,
  type Lane,
  lane_max,
  node_ahead_max,
  node_max,
  quick_ms,
  reserve,
  type Seeker,
  Slots,
} from './slots.ts'

const quick: Ended = { answered: true, duration_ms: quick_ms }
const slow: Ended = { answered: true, duration_ms: quick_ms + 1 }
const unanswered: Ended = { answered: false, duration_ms: 0 }

const one: Lane = { tenant_id: 'ten_one', destination: 'http://one.test' }
const none: Lane = { tenant_id: 'ten_one', destination: '' }

/** Takes as many places as there are; answers how many that were. */
function fill(slots: Slots, lane: Lane): number {
  let taken = 0
  for (; slots.isFree(lane); taken++) slots.take(lane)
  return taken
}

/** Of what was taken, this many attempts begin and end so. */
function end(slots: Slots, lane: Lane, times: number, ended: Ended | null): void {
  for (let i = 0; i < times; i++) {
    expect(slots.turn(lane)).toBe(true)
    slots.end(lane, ended)
  }
}

function giveBack(slots: Slots, lane: Lane, times: number): void {
  for (let i = 0; i < times; i++) slots.giveBack(lane)
}

/** A lane whose receiver has answered often enough; all its places are free. */
function proven(slots: Slots, lane: Lane, ended = slow): void {
  for (let i = 0; i < lane_max; i++) {
    slots.take(lane)
    end(slots, lane, 1, ended)
  }
}

const lanesOf = (tenants: number, destination = (i: number) => `http://host-${i}.test`): Lane[] =>
  Array.from({ length: tenants }, (_, i) => ({ tenant_id: `ten_${i}`, destination: destination(i) }))

test('the bounds are 320 attempts on a node with a reserve of 64, 16 for one destination, and 12 of these for one tenant', () => {
  expect([node_max, reserve, destination_max, lane_max]).toEqual([320, 64, 16, 12])
})

test('a quick lane may have 72 leased ahead, all of a node 96; quick is an answer within 50 ms', () => {
  expect([ahead_max, node_ahead_max, quick_ms]).toEqual([72, 96, 50])
})

describe('slow start', () => {
  test('a lane begins with one place, and has one more for each answer, up to 12', () => {
    const slots = new Slots()
    const places = []
    for (let answers = 0; answers < 20; answers++) {
      const taken = fill(slots, one)
      places.push(taken)
      end(slots, one, 1, slow)
      giveBack(slots, one, taken - 1)
    }
    expect(places).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 12, 12, 12, 12, 12, 12, 12])
  })

  test('doubles with each round of answers', () => {
    const slots = new Slots()
    const rounds = []
    for (let round = 0; round < 6; round++) {
      const taken = fill(slots, one)
      rounds.push(taken)
      end(slots, one, taken, slow)
    }
    expect(rounds).toEqual([1, 2, 4, 8, 12, 12])
  })

  test('falls back to one place when no answer comes, and begins anew', () => {
    const slots = new Slots()
    proven(slots, one)
    expect(fill(slots, one)).toBe(12)
    end(slots, one, 1, unanswered)
    expect(slots.isFree(one)).toBe(false)
    giveBack(slots, one, 10)
    expect(slots.isFree(one)).toBe(false)
    giveBack(slots, one, 1)
    expect(fill(slots, one)).toBe(1)
    end(slots, one, 1, slow)
    expect(fill(slots, one)).toBe(2)
  })

  test('counts nothing where nothing was tried', () => {
    const slots = new Slots()
    slots.take(one)
    slots.giveBack(one)
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
    end(slots, other, 1, unanswered)
    expect(fill(slots, one)).toBe(12)
  })
})

describe('one destination', () => {
  test('has 16 places, however many tenants call it', () => {
    const slots = new Slots()
    const lanes = lanesOf(20, () => one.destination)
    const taken = lanes.filter((lane) => fill(slots, lane) === 1)
    expect(taken).toEqual(lanes.slice(0, 16))
    slots.giveBack(lanes[0]!)
    expect(slots.isFree(lanes[19]!)).toBe(true)
  })

  test('that two tenants share has places for the second, whatever the first has taken', () => {
    const slots = new Slots()
    const two = { ...one, tenant_id: 'ten_two' }
    for (const lane of [one, two]) proven(slots, lane)
    expect([fill(slots, one), fill(slots, two)]).toEqual([12, 4])
    end(slots, one, 8, slow)
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
  test('has 320 places for all destinations together', () => {
    const slots = new Slots()
    const lanes = lanesOf(400)
    const taken = lanes.filter((lane) => fill(slots, lane) === 1)
    expect(taken).toEqual(lanes.slice(0, 320))
    expect(slots.free).toBe(0)
    end(slots, lanes[7]!, 1, unanswered)
    expect(slots.free).toBe(1)
    expect(slots.isFree(lanes[399]!)).toBe(true)
  })

  test('has all its places again once all were given back, whatever came of them', () => {
    const slots = new Slots()
    for (const ended of [quick, slow, unanswered, null]) {
      const lanes = [...lanesOf(200), none]
      const taken = lanes.map((lane) => fill(slots, lane))
      lanes.forEach((lane, i) => {
        end(slots, lane, taken[i]!, ended)
      })
      expect(slots.free).toBe(320)
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
      end(slots, lane, 1, slow)
    }
    expect(fill(slots, one)).toBe(1)
    expect(fill(slots, busy)).toBe(11)
    end(slots, busy, 12, slow)
    end(slots, one, 1, slow)
    expect(slots.free).toBe(320)
  })
})

describe('one tenant', () => {
  /** As many destinations of one tenant. */
  const ofTenant = (tenant_id: string, count: number): Lane[] =>
    Array.from({ length: count }, (_, i) => ({ tenant_id, destination: `http://${tenant_id}-${i}.test` }))
  const fillAll = (slots: Slots, lanes: Lane[]) => lanes.reduce((sum, lane) => sum + fill(slots, lane), 0)

  test('that is alone has all places of a node but the reserve of 64', () => {
    const slots = new Slots()
    expect(fillAll(slots, ofTenant('ten_a', 1_000))).toBe(256)
    expect(slots.free).toBe(64)
  })

  test('leaves places to others, of which each takes what is left to others still', () => {
    const slots = new Slots()
    const taken = ['a', 'b', 'c', 'd', 'e'].map((who) => fillAll(slots, ofTenant(`ten_${who}`, 1_000)))
    expect(taken).toEqual([256, 7, 6, 5, 5])
    expect(slots.isFree({ tenant_id: 'ten_f', destination: 'http://f.test' })).toBe(true)
  })

  test.each([2, 3, 5, 16])(
    'of %i that send to 1,000 silent receivers each leaves a place to another',
    (count) => {
      const slots = new Slots()
      const tenants = Array.from({ length: count }, (_, i) => ofTenant(`ten_${i}`, 1_000))
      for (let i = 0; i < 1_000; i++) {
        for (const lanes of tenants) if (slots.isFree(lanes[i]!)) slots.take(lanes[i]!)
      }
      const active = tenants.map((lanes) => slots.activeOf(lanes[0]!.tenant_id))
      expect(Math.max(...active) - Math.min(...active)).toBeLessThanOrEqual(1)
      expect(slots.free).toBe(reserve)
      expect(slots.isFree(one)).toBe(true)
    },
  )

  test('has places for its timeouts beside receivers that never answer', () => {
    const slots = new Slots()
    fillAll(slots, ofTenant(none.tenant_id, 1_000))
    expect(slots.isFree(one)).toBe(false)
    expect(fill(slots, none)).toBe(7)
    expect(slots.activeOf(none.tenant_id)).toBe(256 + 7)
    giveBack(slots, none, 7)
    expect(slots.activeOf(none.tenant_id)).toBe(256)
  })

  test('with nothing but timeouts has all places but the reserve, and needs none of a destination', () => {
    const slots = new Slots()
    expect(fill(slots, none)).toBe(256)
    expect(slots.isFree(one)).toBe(true)
    giveBack(slots, none, 256)
    expect(slots.free).toBe(320)
  })

  test('goes ahead without places: what waits under its lease takes none from others', () => {
    const slots = new Slots()
    const lanes = ofTenant('ten_a', 20)
    for (const lane of lanes) proven(slots, lane, quick)
    expect(fillAll(slots, lanes)).toBe(240 + 96)
    expect(slots.free).toBe(80)
    expect(slots.activeOf('ten_a')).toBe(336)
  })
})

describe('a tenant with 21 quick receivers and endless work', () => {
  const eager = Array.from({ length: 21 }, (_, i) => ({
    tenant_id: 'ten_eager',
    destination: `http://q-${i}.test`,
  }))

  /** All of it is in flight or waits; answers what ends one attempt of each lane. */
  function begin(slots: Slots): { endOneEach: () => Promise<void>; startMore: () => void } {
    const in_flight = new Map(eager.map((lane) => [lane, 0]))
    for (const lane of eager) proven(slots, lane, quick)
    const told = (lane: Lane, goes: boolean) => {
      if (goes) in_flight.set(lane, in_flight.get(lane)! + 1)
      else slots.giveBack(lane)
    }
    const startMore = () => {
      for (let open = eager; open.length > 0; open = open.filter((lane) => slots.isFree(lane))) {
        for (const lane of open) {
          if (!slots.isFree(lane)) continue
          slots.take(lane)
          const turn = slots.turn(lane)
          if (typeof turn === 'boolean') told(lane, turn)
          else void turn.then((goes) => told(lane, goes))
        }
      }
    }
    startMore()
    return {
      startMore,
      async endOneEach() {
        for (const lane of eager) {
          if (in_flight.get(lane) === 0) continue
          in_flight.set(lane, in_flight.get(lane)! - 1)
          slots.end(lane, quick)
        }
        await null
        await null
      },
    }
  }

  test('shares its places with 40 others that wait', async () => {
    const slots = new Slots()
    const { endOneEach, startMore } = begin(slots)
    expect(slots.activeOf('ten_eager')).toBe(252 + 96)
    const others = lanesOf(40)
    const inTurns = () => {
      for (let took = true; took; ) {
        const open = others.filter((lane) => slots.isFree(lane))
        const least = Math.min(...open.map(({ tenant_id }) => slots.activeOf(tenant_id)))
        const next = open.find(({ tenant_id }) => slots.activeOf(tenant_id) === least)
        if (next) slots.take(next)
        took = next !== undefined
      }
    }
    for (const lane of others) {
      slots.take(lane)
      for (let i = 0; i < lane_max; i++) {
        if (i > 0) slots.take(lane)
        end(slots, lane, 1, slow)
      }
    }
    for (let round = 0; round < 50; round++) {
      inTurns()
      await endOneEach()
      inTurns()
      startMore()
    }
    const active = others.map(({ tenant_id }) => slots.activeOf(tenant_id))
    expect(Math.min(...active)).toBeGreaterThanOrEqual(6)
  })

  test.each([
    [4, 0],
    [5, 96],
  ])(
    'gives nothing back of what is ahead before the reserve is in use: beside %i others %i',
    async (count, back) => {
      const slots = new Slots()
      const { endOneEach } = begin(slots)
      for (const lane of lanesOf(count)) slots.take(lane)
      expect(slots.free).toBe(reserve + 4 - count)
      await endOneEach()
      expect(slots.activeOf('ten_eager')).toBe(252 + 96 - 21 - back)
    },
  )

  test.each([
    [3, 96],
    [4, 0],
  ])('takes nothing ahead where no place is left beyond the reserve: beside %i others %i', (count, ahead) => {
    const slots = new Slots()
    for (const lane of eager) proven(slots, lane, quick)
    for (const lane of eager) for (let i = 0; i < lane_max; i++) slots.take(lane)
    for (const lane of lanesOf(count)) slots.take(lane)
    expect(eager.reduce((sum, lane) => sum + fill(slots, lane), 0)).toBe(ahead)
  })
})

describe('ahead of its places', () => {
  const two = { ...one, tenant_id: 'ten_two' }

  /** Asks for the turn of one more; answers what it was told, null as long as that is nothing. */
  function ask(slots: Slots, lane: Lane): { told: boolean | null } {
    const asked: { told: boolean | null } = { told: null }
    const turn = slots.turn(lane)
    if (typeof turn === 'boolean') asked.told = turn
    else void turn.then((goes) => (asked.told = goes))
    return asked
  }

  /** A quick lane with all that it may take: 12 in flight, the others waiting for their turn. */
  function ahead(): { slots: Slots; asked: { told: boolean | null }[] } {
    const slots = new Slots()
    proven(slots, one, quick)
    const asked = Array.from({ length: fill(slots, one) }, () => ask(slots, one))
    return { slots, asked }
  }

  const told = (asked: { told: boolean | null }[]) => asked.map((one) => one.told)
  const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

  test('a lane takes 72 after 12 quick answers in a row, and none after 11 or after a slow one', () => {
    const slots = new Slots()
    const taken = []
    for (const ended of [...times(11, quick), quick, slow, ...times(11, quick), quick]) {
      slots.take(one)
      end(slots, one, 1, ended)
      const filled = fill(slots, one)
      giveBack(slots, one, filled)
      taken.push(filled)
    }
    expect(taken.slice(10)).toEqual([12, 84, 12, ...times(11, 12), 84])
  })

  test('12 are in flight, and the next begins when one of them has ended', async () => {
    const { slots, asked } = ahead()
    expect(told(asked)).toEqual([...times<boolean | null>(12, true), ...times(72, null)])
    slots.end(one, quick)
    slots.end(one, null)
    await null
    expect(told(asked)).toEqual([...times<boolean | null>(14, true), ...times(70, null)])
  })

  test.each([
    ['slow', slow],
    ['does not come', unanswered],
  ])('those that wait are sent away when an answer is %s', async (_, ended) => {
    const { slots, asked } = ahead()
    slots.end(one, ended)
    await null
    expect(told(asked)).toEqual([...times(12, true), ...times(72, false)])
    giveBack(slots, one, 72)
    expect(fill(slots, one)).toBe(ended.answered ? 1 : 0)
  })

  test('those that wait are sent away when the node stops', async () => {
    const { slots, asked } = ahead()
    slots.close()
    await null
    expect(told(asked)).toEqual([...times(12, true), ...times(72, false)])
  })

  test('more is taken when two dozen are left, and then all at once', () => {
    const { slots } = ahead()
    for (let left = 83; left >= 25; left--) {
      slots.end(one, quick)
      expect([left, slots.isFree(one), slots.isAhead(one)]).toEqual([left, false, true])
    }
    slots.end(one, quick)
    expect([slots.isFree(one), slots.isAhead(one)]).toEqual([true, false])
    expect(fill(slots, one)).toBe(60)
    expect(slots.isFree(one)).toBe(false)
  })

  test('the lane is ahead until no more is taken than it has places', () => {
    const { slots } = ahead()
    const seen = []
    for (let left = 83; left >= 0; left--) {
      slots.end(one, quick)
      if (slots.isAhead(one)) seen.push(left)
    }
    // At 24 it says that it is not, once, so that what has ended is written and more is leased.
    expect(seen).toEqual([...Array.from({ length: 71 }, (_, i) => 83 - i)].filter((left) => left !== 24))
  })

  test('nothing is taken while another tenant has places at the destination', () => {
    const slots = new Slots()
    proven(slots, one, quick)
    slots.take(two)
    expect(fill(slots, one)).toBe(12)
    slots.giveBack(two)
    expect(fill(slots, one)).toBe(72)
  })

  test('takes nothing from the four places that other tenants find at the destination', () => {
    const { slots } = ahead()
    proven(slots, two, quick)
    expect(fill(slots, two)).toBe(4)
    for (let i = 0; i < 76; i++) slots.end(one, quick)
    expect([fill(slots, two), fill(slots, one)]).toEqual([4, 0])
  })

  test('a node takes 96', () => {
    const slots = new Slots()
    const lanes = lanesOf(5)
    for (const lane of lanes) proven(slots, lane, quick)
    expect(lanes.map((lane) => fill(slots, lane))).toEqual([84, 36, 12, 12, 12])
    expect(slots.free).toBe(320 - 60)
  })

  test.each<[kind: Seeker['kind'], attempts: number, ahead: boolean]>([
    ['schedule', 0, true],
    ['schedule', 1, true],
    ['schedule', 2, false],
    ['callback', 1, true],
    ['callback', 2, false],
    ['forward', 0, false],
  ])('of a %s with %i attempts so far: %p, since a last attempt is not', (kind, attempts, is_ahead) => {
    const slots = new Slots()
    proven(slots, one, quick)
    const seeker = { ...one, kind, attempts }
    for (let i = 0; i < lane_max; i++) {
      expect(slots.isFree(seeker)).toBe(true)
      slots.take(one)
    }
    expect(slots.isFree(seeker)).toBe(is_ahead)
  })

  test.each<[what: string, happens: (slots: Slots) => void]>([
    ['an answer was slow', (slots) => slots.end(one, slow)],
    ['no answer came', (slots) => slots.end(one, unanswered)],
    ['the node was told to stop', (slots) => slots.close()],
  ])('whoever was leased meanwhile is sent away at once when %s', (_, happens) => {
    const slots = new Slots()
    proven(slots, one, quick)
    const taken = fill(slots, one)
    for (let i = 0; i < lane_max; i++) expect(slots.turn(one)).toBe(true)
    happens(slots)
    const turns = Array.from({ length: taken - lane_max }, () => slots.turn(one))
    expect(turns.filter((turn) => turn !== true && turn !== false)).toEqual([])
  })
})

test.each([1, 2, 3])(
  '10,000 random steps keep every bound, and every turn is told (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const slots = new Slots()
    const lanes: Lane[] = [none]
    for (const host of ['a', 'b', 'c', 'd']) {
      for (const who of ['one', 'two', 'three']) {
        lanes.push({ tenant_id: `ten_${who}`, destination: `http://${host}.test` })
      }
    }
    const held = new Map(lanes.map((lane) => [lane, { leasing: 0, waiting: 0, in_flight: 0, away: 0 }]))
    const of = (lane: Lane) => held.get(lane)!
    const all = (lane: Lane) => of(lane).leasing + of(lane).waiting + of(lane).in_flight + of(lane).away
    const sum = (some: Lane[], what = all) => some.reduce((total, lane) => total + what(lane), 0)
    const inFlight = (lane: Lane) => of(lane).in_flight
    const at = ({ destination }: Lane) => lanes.filter((lane) => lane.destination === destination)

    function turn(lane: Lane): void {
      of(lane).leasing -= 1
      const told = slots.turn(lane)
      if (typeof told === 'boolean') {
        of(lane)[told ? 'in_flight' : 'away'] += 1
        return
      }
      of(lane).waiting += 1
      void told.then((goes) => {
        of(lane).waiting -= 1
        of(lane)[goes ? 'in_flight' : 'away'] += 1
      })
    }

    const reached = { ahead: 0, waiting: 0, away: 0 }
    for (let step = 0; step < 10_000; step++) {
      const lane = lanes[Math.floor(random() * lanes.length)]!
      // Quick for a while, so that lanes get ahead; then anything may happen.
      const is_calm = step % 1_000 < 800
      const dice = random()
      if (dice < 0.3)
        for (let left = 20; left > 0 && slots.isFree(lane); left--) {
          slots.take(lane)
          of(lane).leasing += 1
        }
      else if (dice < 0.55) while (of(lane).leasing > 0) turn(lane)
      else if (dice < 0.6 && of(lane).leasing > 0) {
        slots.giveBack(lane)
        of(lane).leasing -= 1
      } else if (dice < 0.65)
        while (of(lane).away > 0) {
          slots.giveBack(lane)
          of(lane).away -= 1
        }
      else
        for (let left = 8; left > 0 && of(lane).in_flight > 0; left--) {
          of(lane).in_flight -= 1
          slots.end(lane, is_calm ? quick : [quick, slow, unanswered, null][Math.floor(random() * 4)]!)
        }
      await null
      await null
      const places = sum(lanes, (each) => (each === none ? all(each) : Math.min(all(each), lane_max)))
      expect(slots.free).toBe(node_max - places)
      expect(slots.free).toBeGreaterThanOrEqual(0)
      expect(slots.activeOf(lane.tenant_id)).toBe(
        sum(lanes.filter((one) => one.tenant_id === lane.tenant_id)),
      )
      if (lane === none) continue
      expect(inFlight(lane)).toBeLessThanOrEqual(lane_max)
      expect(sum(at(lane), inFlight)).toBeLessThanOrEqual(destination_max)
      expect(sum(at(lane), (one) => Math.min(all(one), lane_max))).toBeLessThanOrEqual(destination_max)
      const ahead = sum(lanes.slice(1), (one) => Math.max(0, all(one) - lane_max))
      expect(ahead).toBeLessThanOrEqual(node_ahead_max)
      // Who waits has somebody before it, whose end is its turn.
      expect(of(lane).waiting === 0 || of(lane).in_flight === lane_max).toBe(true)
      reached.ahead = Math.max(reached.ahead, ahead)
      reached.waiting = Math.max(reached.waiting, of(lane).waiting)
      reached.away = Math.max(reached.away, of(lane).away)
    }
    expect(Math.min(reached.ahead, reached.waiting, reached.away)).toBeGreaterThan(10)

    slots.close()
    for (const lane of lanes) while (of(lane).leasing > 0) turn(lane)
    await null
    for (const lane of lanes) {
      expect(of(lane).waiting).toBe(0)
      giveBack(slots, lane, of(lane).away)
      for (let i = of(lane).in_flight; i > 0; i--) slots.end(lane, slow)
    }
    expect(slots.free).toBe(node_max)
    expect(lanes.map(({ tenant_id }) => slots.activeOf(tenant_id))).toEqual(lanes.map(() => 0))
  },
)
