import { describe, expect, test } from 'bun:test'
import { kindOf } from '../../test/support/job-bench.ts'
import { seededRandom } from '../../test/support/random.ts'
import { ConcurrencyLimiter, destination_max, type Lane, lane_max, node_max, reserve } from './concurrency.ts'
import { isLast } from './kind.ts'
import { type Ended, node_prefetch_max, prefetch_max, quick_ms } from './prefetch.ts'

const quick: Ended = { answered: true, duration_ms: quick_ms }
const slow: Ended = { answered: true, duration_ms: quick_ms + 1 }
const unanswered: Ended = { answered: false, duration_ms: 0 }

const one: Lane = { tenant_id: 'ten_one', destination: 'http://one.test' }
const none: Lane = { tenant_id: 'ten_one', destination: '' }

/** Takes as many places as there are; answers how many that were. */
function fill(limiter: ConcurrencyLimiter, lane: Lane): number {
  let taken = 0
  for (; limiter.mayAcquire(lane); taken++) limiter.acquire(lane)
  return taken
}

/** Of what was taken, this many attempts begin and end so. */
function end(limiter: ConcurrencyLimiter, lane: Lane, times: number, ended: Ended | null): void {
  for (let i = 0; i < times; i++) {
    expect(limiter.start(lane)).toBe(true)
    limiter.end(lane, ended)
  }
}

function release(limiter: ConcurrencyLimiter, lane: Lane, times: number): void {
  for (let i = 0; i < times; i++) limiter.release(lane)
}

/** A lane whose receiver has answered often enough; all its places are free. */
function proven(limiter: ConcurrencyLimiter, lane: Lane, ended = slow): void {
  for (let i = 0; i < lane_max; i++) {
    limiter.acquire(lane)
    end(limiter, lane, 1, ended)
  }
}

const lanesOf = (tenants: number, destination = (i: number) => `http://host-${i}.test`): Lane[] =>
  Array.from({ length: tenants }, (_, i) => ({ tenant_id: `ten_${i}`, destination: destination(i) }))

test('the bounds are 320 attempts on a node with a reserve of 64, 16 for one destination, and 12 of these for one tenant', () => {
  expect([node_max, reserve, destination_max, lane_max]).toEqual([320, 64, 16, 12])
})

test('a quick lane may have 72 jobs prefetched, all of a node 96; quick is an answer within 50 ms', () => {
  expect([prefetch_max, node_prefetch_max, quick_ms]).toEqual([72, 96, 50])
})

describe('slow start', () => {
  test('a lane begins with one permit, and has one more for each answer, up to 12', () => {
    const limiter = new ConcurrencyLimiter()
    const places = []
    for (let answers = 0; answers < 20; answers++) {
      const taken = fill(limiter, one)
      places.push(taken)
      end(limiter, one, 1, slow)
      release(limiter, one, taken - 1)
    }
    expect(places).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 12, 12, 12, 12, 12, 12, 12])
  })

  test('doubles when each attempt in flight is answered', () => {
    const limiter = new ConcurrencyLimiter()
    const rounds = []
    for (let round = 0; round < 6; round++) {
      const taken = fill(limiter, one)
      rounds.push(taken)
      end(limiter, one, taken, slow)
    }
    expect(rounds).toEqual([1, 2, 4, 8, 12, 12])
  })

  test('falls back to one permit when no answer comes, and begins again', () => {
    const limiter = new ConcurrencyLimiter()
    proven(limiter, one)
    expect(fill(limiter, one)).toBe(12)
    end(limiter, one, 1, unanswered)
    expect(limiter.mayAcquire(one)).toBe(false)
    release(limiter, one, 10)
    expect(limiter.mayAcquire(one)).toBe(false)
    release(limiter, one, 1)
    expect(fill(limiter, one)).toBe(1)
    end(limiter, one, 1, slow)
    expect(fill(limiter, one)).toBe(2)
  })

  test('counts nothing where nothing was tried', () => {
    const limiter = new ConcurrencyLimiter()
    limiter.acquire(one)
    limiter.release(one)
    expect(fill(limiter, one)).toBe(1)
  })

  const others: [whose: string, lane: Lane][] = [
    ['the same receiver for another tenant', { ...one, tenant_id: 'ten_two' }],
    ['another receiver for the same tenant', { ...one, destination: 'http://two.test' }],
  ]
  test.each(others)('is of one lane: %s neither gains nor loses by it', (_, other) => {
    const limiter = new ConcurrencyLimiter()
    proven(limiter, one)
    expect(fill(limiter, other)).toBe(1)
    end(limiter, other, 1, unanswered)
    expect(fill(limiter, one)).toBe(12)
  })
})

describe('one destination', () => {
  test('has 16 permits, however many tenants call it', () => {
    const limiter = new ConcurrencyLimiter()
    const lanes = lanesOf(20, () => one.destination)
    const taken = lanes.filter((lane) => fill(limiter, lane) === 1)
    expect(taken).toEqual(lanes.slice(0, 16))
    limiter.release(lanes[0]!)
    expect(limiter.mayAcquire(lanes[19]!)).toBe(true)
  })

  test('that two tenants share has permits for the second, whatever the first has taken', () => {
    const limiter = new ConcurrencyLimiter()
    const two = { ...one, tenant_id: 'ten_two' }
    for (const lane of [one, two]) proven(limiter, lane)
    expect([fill(limiter, one), fill(limiter, two)]).toEqual([12, 4])
    end(limiter, one, 8, slow)
    expect(fill(limiter, two)).toBe(8)
    expect([limiter.mayAcquire(one), limiter.mayAcquire(two)]).toEqual([false, false])
  })

  test('that has none left keeps no other from its permits', () => {
    const limiter = new ConcurrencyLimiter()
    const two = { ...one, tenant_id: 'ten_two' }
    for (const lane of [one, two]) proven(limiter, lane)
    expect(fill(limiter, one) + fill(limiter, two)).toBe(16)
    expect(limiter.mayAcquire({ ...one, tenant_id: 'ten_three' })).toBe(false)
    expect(limiter.mayAcquire({ tenant_id: 'ten_three', destination: 'http://two.test' })).toBe(true)
  })
})

describe('the node', () => {
  test('has 320 permits for all destinations together', () => {
    const limiter = new ConcurrencyLimiter()
    const lanes = lanesOf(400)
    const taken = lanes.filter((lane) => fill(limiter, lane) === 1)
    expect(taken).toEqual(lanes.slice(0, 320))
    expect(limiter.free).toBe(0)
    end(limiter, lanes[7]!, 1, unanswered)
    expect(limiter.free).toBe(1)
    expect(limiter.mayAcquire(lanes[399]!)).toBe(true)
  })

  test('has all its permits again once all were released, whatever the outcome', () => {
    const limiter = new ConcurrencyLimiter()
    for (const ended of [quick, slow, unanswered, null]) {
      const lanes = [...lanesOf(200), none]
      const taken = lanes.map((lane) => fill(limiter, lane))
      lanes.forEach((lane, i) => {
        end(limiter, lane, taken[i]!, ended)
      })
      expect(limiter.free).toBe(320)
    }
  })

  test('remembers a bounded number of idle lanes: a forgotten one begins again, a busy one is kept', () => {
    const limiter = new ConcurrencyLimiter()
    const busy = { tenant_id: 'ten_busy', destination: 'http://busy.test' }
    proven(limiter, one)
    proven(limiter, busy)
    limiter.acquire(busy)
    for (const lane of lanesOf(10_000)) {
      limiter.acquire(lane)
      end(limiter, lane, 1, slow)
    }
    expect(fill(limiter, one)).toBe(1)
    expect(fill(limiter, busy)).toBe(11)
    end(limiter, busy, 12, slow)
    end(limiter, one, 1, slow)
    expect(limiter.free).toBe(320)
  })
})

describe('one tenant', () => {
  /** As many destinations of one tenant. */
  const ofTenant = (tenant_id: string, count: number): Lane[] =>
    Array.from({ length: count }, (_, i) => ({ tenant_id, destination: `http://${tenant_id}-${i}.test` }))
  const fillAll = (limiter: ConcurrencyLimiter, lanes: Lane[]) =>
    lanes.reduce((sum, lane) => sum + fill(limiter, lane), 0)

  test('that is alone has all permits of a node but the reserve of 64', () => {
    const limiter = new ConcurrencyLimiter()
    expect(fillAll(limiter, ofTenant('ten_a', 1_000))).toBe(256)
    expect(limiter.free).toBe(64)
  })

  test('leaves permits to others, of which each takes what is left to others still', () => {
    const limiter = new ConcurrencyLimiter()
    const taken = ['a', 'b', 'c', 'd', 'e'].map((who) => fillAll(limiter, ofTenant(`ten_${who}`, 1_000)))
    expect(taken).toEqual([256, 7, 6, 5, 5])
    expect(limiter.mayAcquire({ tenant_id: 'ten_f', destination: 'http://f.test' })).toBe(true)
  })

  test.each([2, 3, 5, 16])(
    'of %i that send to 1,000 silent receivers each leaves a permit to another',
    (count) => {
      const limiter = new ConcurrencyLimiter()
      const tenants = Array.from({ length: count }, (_, i) => ofTenant(`ten_${i}`, 1_000))
      for (let i = 0; i < 1_000; i++) {
        for (const lanes of tenants) if (limiter.mayAcquire(lanes[i]!)) limiter.acquire(lanes[i]!)
      }
      const active = tenants.map((lanes) => limiter.activeOf(lanes[0]!.tenant_id))
      expect(Math.max(...active) - Math.min(...active)).toBeLessThanOrEqual(1)
      expect(limiter.free).toBe(reserve)
      expect(limiter.mayAcquire(one)).toBe(true)
    },
  )

  test('has permits for its timeouts beside receivers that never answer', () => {
    const limiter = new ConcurrencyLimiter()
    fillAll(limiter, ofTenant(none.tenant_id, 1_000))
    expect(limiter.mayAcquire(one)).toBe(false)
    expect(fill(limiter, none)).toBe(7)
    expect(limiter.activeOf(none.tenant_id)).toBe(256 + 7)
    release(limiter, none, 7)
    expect(limiter.activeOf(none.tenant_id)).toBe(256)
  })

  test('with nothing but timeouts has all permits but the reserve, and needs none of a destination', () => {
    const limiter = new ConcurrencyLimiter()
    expect(fill(limiter, none)).toBe(256)
    expect(limiter.mayAcquire(one)).toBe(true)
    release(limiter, none, 256)
    expect(limiter.free).toBe(320)
  })

  test('prefetches without permits: what waits under its lease takes none from others', () => {
    const limiter = new ConcurrencyLimiter()
    const lanes = ofTenant('ten_a', 20)
    for (const lane of lanes) proven(limiter, lane, quick)
    expect(fillAll(limiter, lanes)).toBe(240 + 96)
    expect(limiter.free).toBe(80)
    expect(limiter.activeOf('ten_a')).toBe(336)
  })
})

describe('a tenant with 21 quick receivers and endless work', () => {
  const eager = Array.from({ length: 21 }, (_, i) => ({
    tenant_id: 'ten_eager',
    destination: `http://q-${i}.test`,
  }))

  /** All of it is in flight or waits; answers what ends one attempt of each lane. */
  function begin(limiter: ConcurrencyLimiter): { endOneEach: () => Promise<void>; startMore: () => void } {
    const in_flight = new Map(eager.map((lane) => [lane, 0]))
    for (const lane of eager) proven(limiter, lane, quick)
    const told = (lane: Lane, goes: boolean) => {
      if (goes) in_flight.set(lane, in_flight.get(lane)! + 1)
      else limiter.release(lane)
    }
    const startMore = () => {
      for (let open = eager; open.length > 0; open = open.filter((lane) => limiter.mayAcquire(lane))) {
        for (const lane of open) {
          if (!limiter.mayAcquire(lane)) continue
          limiter.acquire(lane)
          const turn = limiter.start(lane)
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
          limiter.end(lane, quick)
        }
        await null
        await null
      },
    }
  }

  test('shares its permits with 40 others that wait', async () => {
    const limiter = new ConcurrencyLimiter()
    const { endOneEach, startMore } = begin(limiter)
    expect(limiter.activeOf('ten_eager')).toBe(252 + 96)
    const others = lanesOf(40)
    const inTurns = () => {
      for (let took = true; took; ) {
        const open = others.filter((lane) => limiter.mayAcquire(lane))
        const least = Math.min(...open.map(({ tenant_id }) => limiter.activeOf(tenant_id)))
        const next = open.find(({ tenant_id }) => limiter.activeOf(tenant_id) === least)
        if (next) limiter.acquire(next)
        took = next !== undefined
      }
    }
    for (const lane of others) {
      limiter.acquire(lane)
      for (let i = 0; i < lane_max; i++) {
        if (i > 0) limiter.acquire(lane)
        end(limiter, lane, 1, slow)
      }
    }
    for (let round = 0; round < 50; round++) {
      inTurns()
      await endOneEach()
      inTurns()
      startMore()
    }
    const active = others.map(({ tenant_id }) => limiter.activeOf(tenant_id))
    expect(Math.min(...active)).toBeGreaterThanOrEqual(6)
  })

  test.each([
    [4, 0],
    [5, 96],
  ])(
    'gives nothing back of what is ahead before the reserve is in use: beside %i others %i',
    async (count, back) => {
      const limiter = new ConcurrencyLimiter()
      const { endOneEach } = begin(limiter)
      for (const lane of lanesOf(count)) limiter.acquire(lane)
      expect(limiter.free).toBe(reserve + 4 - count)
      await endOneEach()
      expect(limiter.activeOf('ten_eager')).toBe(252 + 96 - 21 - back)
    },
  )

  test.each([
    [3, 96],
    [4, 0],
  ])(
    'takes nothing ahead where no permit is left beyond the reserve: beside %i others %i',
    (count, ahead) => {
      const limiter = new ConcurrencyLimiter()
      for (const lane of eager) proven(limiter, lane, quick)
      for (const lane of eager) for (let i = 0; i < lane_max; i++) limiter.acquire(lane)
      for (const lane of lanesOf(count)) limiter.acquire(lane)
      expect(eager.reduce((sum, lane) => sum + fill(limiter, lane), 0)).toBe(ahead)
    },
  )
})

describe('prefetching', () => {
  const two = { ...one, tenant_id: 'ten_two' }

  /** Asks for the turn of one more; answers what it was told, null as long as that is nothing. */
  function ask(limiter: ConcurrencyLimiter, lane: Lane): { told: boolean | null } {
    const asked: { told: boolean | null } = { told: null }
    const turn = limiter.start(lane)
    if (typeof turn === 'boolean') asked.told = turn
    else void turn.then((goes) => (asked.told = goes))
    return asked
  }

  /** A quick lane with all that it may take: 12 in flight, the others waiting for their turn. */
  function ahead(): { limiter: ConcurrencyLimiter; asked: { told: boolean | null }[] } {
    const limiter = new ConcurrencyLimiter()
    proven(limiter, one, quick)
    const asked = Array.from({ length: fill(limiter, one) }, () => ask(limiter, one))
    return { limiter, asked }
  }

  const told = (asked: { told: boolean | null }[]) => asked.map((one) => one.told)
  const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

  test('a lane takes 72 after 12 quick answers in a row, and none after 11 or after a slow one', () => {
    const limiter = new ConcurrencyLimiter()
    const taken = []
    for (const ended of [...times(11, quick), quick, slow, ...times(11, quick), quick]) {
      limiter.acquire(one)
      end(limiter, one, 1, ended)
      const filled = fill(limiter, one)
      release(limiter, one, filled)
      taken.push(filled)
    }
    expect(taken.slice(10)).toEqual([12, 84, 12, ...times(11, 12), 84])
  })

  test('12 are in flight, and the next begins when one of them has ended', async () => {
    const { limiter, asked } = ahead()
    expect(told(asked)).toEqual([...times<boolean | null>(12, true), ...times(72, null)])
    limiter.end(one, quick)
    limiter.end(one, null)
    await null
    expect(told(asked)).toEqual([...times<boolean | null>(14, true), ...times(70, null)])
  })

  test.each([
    ['slow', slow],
    ['does not come', unanswered],
  ])('those that wait are sent away when an answer is %s', async (_, ended) => {
    const { limiter, asked } = ahead()
    limiter.end(one, ended)
    await null
    expect(told(asked)).toEqual([...times(12, true), ...times(72, false)])
    release(limiter, one, 72)
    expect(fill(limiter, one)).toBe(ended.answered ? 1 : 0)
  })

  test('those that wait are sent away when the node stops', async () => {
    const { limiter, asked } = ahead()
    limiter.close()
    await null
    expect(told(asked)).toEqual([...times(12, true), ...times(72, false)])
  })

  test('more is taken when two dozen are left, and then all at once', () => {
    const { limiter } = ahead()
    for (let left = 83; left >= 25; left--) {
      limiter.end(one, quick)
      expect([left, limiter.mayAcquire(one), limiter.isPrefetching(one)]).toEqual([left, false, true])
    }
    limiter.end(one, quick)
    expect([limiter.mayAcquire(one), limiter.isPrefetching(one)]).toEqual([true, false])
    expect(fill(limiter, one)).toBe(60)
    expect(limiter.mayAcquire(one)).toBe(false)
  })

  test('the lane prefetches until no more is held than it has permits', () => {
    const { limiter } = ahead()
    const seen = []
    for (let left = 83; left >= 0; left--) {
      limiter.end(one, quick)
      if (limiter.isPrefetching(one)) seen.push(left)
    }
    // At 24 it says that it is not, once, so that what has ended is written and more is leased.
    expect(seen).toEqual([...Array.from({ length: 71 }, (_, i) => 83 - i)].filter((left) => left !== 24))
  })

  test('nothing is taken while another tenant has permits at the destination', () => {
    const limiter = new ConcurrencyLimiter()
    proven(limiter, one, quick)
    limiter.acquire(two)
    expect(fill(limiter, one)).toBe(12)
    limiter.release(two)
    expect(fill(limiter, one)).toBe(72)
  })

  test('takes nothing from the four permits that other tenants find at the destination', () => {
    const { limiter } = ahead()
    proven(limiter, two, quick)
    expect(fill(limiter, two)).toBe(4)
    for (let i = 0; i < 76; i++) limiter.end(one, quick)
    expect([fill(limiter, two), fill(limiter, one)]).toEqual([4, 0])
  })

  test('a node takes 96', () => {
    const limiter = new ConcurrencyLimiter()
    const lanes = lanesOf(5)
    for (const lane of lanes) proven(limiter, lane, quick)
    expect(lanes.map((lane) => fill(limiter, lane))).toEqual([84, 36, 12, 12, 12])
    expect(limiter.free).toBe(320 - 60)
  })

  test.each<[kind: string, attempts: number, prefetched: boolean]>([
    ['schedule', 0, true],
    ['schedule', 1, true],
    ['schedule', 2, false],
    ['callback', 1, true],
    ['callback', 2, false],
    ['forward', 0, false],
  ])('of a %s with %i attempts so far: %p, since a last attempt is not', (kind, attempts, is_prefetched) => {
    const limiter = new ConcurrencyLimiter()
    proven(limiter, one, quick)
    const candidate = { ...one, is_last: isLast(kindOf(kind), attempts) }
    for (let i = 0; i < lane_max; i++) {
      expect(limiter.mayAcquire(candidate)).toBe(true)
      limiter.acquire(one)
    }
    expect(limiter.mayAcquire(candidate)).toBe(is_prefetched)
  })

  test.each<[what: string, happens: (limiter: ConcurrencyLimiter) => void]>([
    ['an answer was slow', (limiter) => limiter.end(one, slow)],
    ['no answer came', (limiter) => limiter.end(one, unanswered)],
    ['the node was told to stop', (limiter) => limiter.close()],
  ])('a job that was leased meanwhile is turned away at once when %s', (_, happens) => {
    const limiter = new ConcurrencyLimiter()
    proven(limiter, one, quick)
    const taken = fill(limiter, one)
    for (let i = 0; i < lane_max; i++) expect(limiter.start(one)).toBe(true)
    happens(limiter)
    const turns = Array.from({ length: taken - lane_max }, () => limiter.start(one))
    expect(turns.filter((turn) => turn !== true && turn !== false)).toEqual([])
  })
})

test.each([1, 2, 3])(
  '10,000 random steps keep every bound, and every turn is told (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const limiter = new ConcurrencyLimiter()
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
      const told = limiter.start(lane)
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
        for (let left = 20; left > 0 && limiter.mayAcquire(lane); left--) {
          limiter.acquire(lane)
          of(lane).leasing += 1
        }
      else if (dice < 0.55) while (of(lane).leasing > 0) turn(lane)
      else if (dice < 0.6 && of(lane).leasing > 0) {
        limiter.release(lane)
        of(lane).leasing -= 1
      } else if (dice < 0.65)
        while (of(lane).away > 0) {
          limiter.release(lane)
          of(lane).away -= 1
        }
      else
        for (let left = 8; left > 0 && of(lane).in_flight > 0; left--) {
          of(lane).in_flight -= 1
          limiter.end(lane, is_calm ? quick : [quick, slow, unanswered, null][Math.floor(random() * 4)]!)
        }
      await null
      await null
      const places = sum(lanes, (each) => (each === none ? all(each) : Math.min(all(each), lane_max)))
      expect(limiter.free).toBe(node_max - places)
      expect(limiter.free).toBeGreaterThanOrEqual(0)
      expect(limiter.activeOf(lane.tenant_id)).toBe(
        sum(lanes.filter((one) => one.tenant_id === lane.tenant_id)),
      )
      if (lane === none) continue
      expect(inFlight(lane)).toBeLessThanOrEqual(lane_max)
      expect(sum(at(lane), inFlight)).toBeLessThanOrEqual(destination_max)
      expect(sum(at(lane), (one) => Math.min(all(one), lane_max))).toBeLessThanOrEqual(destination_max)
      const ahead = sum(lanes.slice(1), (one) => Math.max(0, all(one) - lane_max))
      expect(ahead).toBeLessThanOrEqual(node_prefetch_max)
      // A job waits only behind one in flight, whose end is its turn.
      expect(of(lane).waiting === 0 || of(lane).in_flight === lane_max).toBe(true)
      reached.ahead = Math.max(reached.ahead, ahead)
      reached.waiting = Math.max(reached.waiting, of(lane).waiting)
      reached.away = Math.max(reached.away, of(lane).away)
    }
    expect(Math.min(reached.ahead, reached.waiting, reached.away)).toBeGreaterThan(10)

    limiter.close()
    for (const lane of lanes) while (of(lane).leasing > 0) turn(lane)
    await null
    for (const lane of lanes) {
      expect(of(lane).waiting).toBe(0)
      release(limiter, lane, of(lane).away)
      for (let i = of(lane).in_flight; i > 0; i--) limiter.end(lane, slow)
    }
    expect(limiter.free).toBe(node_max)
    expect(lanes.map(({ tenant_id }) => limiter.activeOf(tenant_id))).toEqual(lanes.map(() => 0))
  },
)
