import { describe, expect, test } from 'bun:test'
import {
  attempt_look_ups_max,
  attempt_look_ups_reserve,
  creation_look_ups_max,
  creation_look_ups_reserve,
  Lookups,
  type LookupTimes,
  type Purpose,
} from './lookups.ts'

/** Holds every look-up until the test answers it. */
class HeldNames {
  readonly asked: { name: string; limit_ms: number; answer: (addresses: string[]) => void }[] = []
  readonly hosts = new Map<string, string[]>()

  known(name: string): string[] | null {
    return this.hosts.get(name) ?? null
  }

  ask(name: string, limit_ms: number): Promise<string[]> {
    return new Promise((answer) => this.asked.push({ name, limit_ms, answer }))
  }

  get names(): string[] {
    return this.asked.map(({ name }) => name)
  }

  /** Answers what was asked first. */
  async answer(addresses: string[] = [], count = 1): Promise<void> {
    for (const held of this.asked.splice(0, count)) held.answer(addresses)
    await turn()
  }
}

interface Held {
  lookups: Lookups
  names: HeldNames
  /** Begins as many look-ups of different names; answers how many of all are under way. */
  begin(tenant_id: string, count: number, purpose?: Purpose): Promise<number>
  /** The answers of the look-ups that ended, in that order. */
  found: (string[] | null)[]
}

function held(times: LookupTimes = {}): Held {
  const names = new HeldNames()
  const lookups = new Lookups(names, times)
  const found: (string[] | null)[] = []
  return {
    ...{ lookups, names, found },
    async begin(tenant_id, count, purpose = 'attempt') {
      for (let i = 0; i < count; i++) {
        void lookups.addresses(tenant_id, `${i}.${tenant_id}`, purpose).then((each) => found.push(each))
      }
      await turn()
      return names.asked.length
    },
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('there are 64 look-ups for attempts with a reserve of 16, and 32 at creation with a reserve of 16', () => {
  expect([attempt_look_ups_max, attempt_look_ups_reserve]).toEqual([64, 16])
  expect([creation_look_ups_max, creation_look_ups_reserve]).toEqual([32, 16])
})

test.each<[Purpose, number]>([
  ['attempt', 5_000],
  ['creation', 500],
])('a look-up for an %s ends after %i ms', async (purpose, limit_ms) => {
  const { names, begin } = held()
  await begin('ten_1', 1, purpose)
  expect(names.asked[0]).toMatchObject({ name: '0.ten_1', limit_ms })
})

test.each<Purpose>(['attempt', 'creation'])('for an %s answers with what was found', async (purpose) => {
  const { names, begin, found } = held()
  await begin('ten_1', 1, purpose)
  await names.answer(['1.2.3.4', '::1'])
  expect(found).toEqual([['1.2.3.4', '::1']])
})

test.each<Purpose>(['attempt', 'creation'])(
  'for an %s of a name in /etc/hosts needs no permit',
  async (purpose) => {
    const { lookups, names, begin } = held()
    names.hosts.set('known.test', ['10.0.0.9'])
    const under_way = await begin('ten_1', 100, purpose)
    expect(await lookups.addresses('ten_1', 'known.test', purpose)).toEqual(['10.0.0.9'])
    expect(names.asked).toHaveLength(under_way)
  },
)

describe('for attempts', () => {
  test('of one tenant 48 are under way, and the others wait for their turn', async () => {
    const { names, begin, found } = held()
    expect(await begin('ten_1', 192)).toBe(48)
    for (let next = 48; next < 192; next++) {
      await names.answer(['1.2.3.4'])
      expect(names.names.at(-1)).toBe(`${next}.ten_1`)
      expect(names.asked).toHaveLength(48)
    }
    await names.answer(['1.2.3.4'], 48)
    expect(found).toHaveLength(192)
    expect(found.filter((each) => each?.[0] !== '1.2.3.4')).toEqual([])
  })

  test('of another tenant go on beside one whose look-ups hang', async () => {
    const { names, begin } = held()
    await begin('ten_1', 192)
    expect(await begin('ten_2', 1)).toBe(49)
    expect(names.names.at(-1)).toBe('0.ten_2')
  })

  test('of five tenants whose look-ups hang leave some to a sixth', async () => {
    const { begin, names } = held()
    for (let i = 1; i <= 5; i++) await begin(`ten_${i}`, 192)
    await begin('ten_6', 1)
    expect(names.names).toContain('0.ten_6')
  })

  test('are granted first to the tenant that has least under way', async () => {
    const { names, begin } = held()
    await begin('ten_1', 192)
    await begin('ten_2', 192)
    const of = (tenant_id: string) => names.names.filter((name) => name.endsWith(tenant_id)).length
    expect([of('ten_1'), of('ten_2')]).toEqual([48, 1])
    while (of('ten_1') > 24) await names.answer()
    expect([of('ten_1'), of('ten_2')]).toEqual([24, 24])
  })

  test('are granted before all others to a tenant that had none, beside as many that ask without end as there are permits', async () => {
    const { names, begin } = held()
    for (const count of [1, 10]) {
      for (let i = 0; i < attempt_look_ups_max; i++) await begin(`hostile_${i}`, count)
    }
    expect(await begin('honest', 3)).toBe(attempt_look_ups_max)
    await names.answer()
    expect(names.names.at(-1)).toBe('0.honest')
  })

  test('are granted in turns where tenants hold the same', async () => {
    const { names, begin } = held()
    for (let i = 0; i < 2 * attempt_look_ups_max; i++) await begin(`ten_${i}`, 100)
    const served: string[] = []
    const rounds = 20 * attempt_look_ups_max
    for (let i = 0; i < rounds; i++) {
      await names.answer()
      served.push(names.names.at(-1)!.replace(/.*ten_/, ''))
    }
    const counts = [...Map.groupBy(served, (who) => who).values()].map((all) => all.length)
    expect(counts).toHaveLength(2 * attempt_look_ups_max)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(2)
  })

  test.each([
    [9_999, 'new'],
    [10_000, 'old'],
  ])('a tenant that was served before %i others: next is the one that is %s', async (others, next) => {
    const { names, begin } = held()
    await begin('old', 1)
    await names.answer()
    for (let i = attempt_look_ups_max; i < others; i++) {
      await begin(`other_${i}`, 1)
      await names.answer()
    }
    for (let i = 0; i < attempt_look_ups_max; i++) await begin(`hanging_${i}`, 1)
    for (const who of ['old', 'new']) await begin(who, 1)
    await names.answer()
    expect(names.names.at(-1)).toBe(`0.${next}`)
  })

  test('do not overtake those of their own tenant that wait', async () => {
    const { names, begin, lookups } = held()
    await begin('ten_1', 50)
    void lookups.addresses('ten_1', 'late.test', 'attempt')
    await names.answer([], 48)
    expect(names.names).toEqual(['48.ten_1', '49.ten_1', 'late.test'])
  })

  test('that get no permit in time are told so, and the permit goes to the next', async () => {
    const { names, begin, found } = held({ permit_wait_ms_max: 20 })
    expect(await begin('ten_1', 60)).toBe(48)
    while (found.length < 12) await turn()
    expect(found).toEqual(Array.from({ length: 12 }, () => null))
    await begin('ten_1', 1)
    await names.answer([], 48)
    expect(names.names).toEqual(['0.ten_1'])
  })

  test('give their permits back, whatever came of them', async () => {
    const names = new HeldNames()
    const fails = { known: () => null, ask: () => Promise.reject(new Error('no socket')) }
    const lookups = new Lookups(fails)
    for (let i = 0; i < 200; i++) {
      for (const purpose of ['attempt', 'creation'] as const) {
        await expect(lookups.addresses('ten_1', 'a.test', purpose)).rejects.toThrow('no socket')
      }
    }
    expect(names.asked).toEqual([])
  })
})

describe('at creation', () => {
  test('of one tenant 16 are under way, and one more has no permit, at once', async () => {
    const { names, begin, found } = held()
    expect(await begin('ten_1', 16, 'creation')).toBe(16)
    expect(found).toEqual([])
    expect(await begin('ten_1', 1, 'creation')).toBe(16)
    expect(found).toEqual([null])
    await names.answer()
    expect(await begin('ten_1', 1, 'creation')).toBe(16)
  })

  test('of another tenant go on beside one whose look-ups hang', async () => {
    const { begin } = held()
    await begin('ten_1', 1_000, 'creation')
    expect(await begin('ten_2', 1, 'creation')).toBe(17)
  })

  test('do not wait behind look-ups for attempts, nor these behind them', async () => {
    const { begin } = held()
    expect(await begin('ten_1', 192)).toBe(48)
    expect(await begin('ten_1', 192, 'creation')).toBe(48 + 16)
    expect(await begin('ten_2', 1)).toBe(48 + 16 + 1)
  })
})
