import { describe, expect, test } from 'bun:test'
import { BytePace } from './byte-pace.ts'

function bench() {
  const turns: (() => void)[] = []
  const pace = new BytePace(100, (run) => turns.push(run))
  const passed: string[] = []
  const pass = (name: string, bytes: number) => {
    const waits = pace.pass(bytes)
    if (waits) void waits.then(() => passed.push(name))
    else passed.push(name)
  }
  const turn = async () => {
    turns.shift()?.()
    for (let i = 0; i < 5; i++) await Promise.resolve()
  }
  return { turns, passed, pass, turn }
}

describe('the pace of bytes', () => {
  test('lets as much pass as a turn takes, and the rest in later turns and in order', async () => {
    const { passed, pass, turn } = bench()
    for (const [name, bytes] of [
      ['a', 60],
      ['b', 40],
      ['c', 1],
      ['d', 99],
      ['e', 1],
    ] as const) {
      pass(name, bytes)
    }
    expect(passed).toEqual(['a', 'b'])
    await turn()
    expect(passed).toEqual(['a', 'b', 'c', 'd'])
    await turn()
    expect(passed).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('lets one alone pass that is larger than a turn', async () => {
    const { passed, pass, turn } = bench()
    pass('small', 1)
    pass('large', 1_000)
    pass('next', 1)
    expect(passed).toEqual(['small'])
    await turn()
    expect(passed).toEqual(['small', 'large'])
    await turn()
    expect(passed).toEqual(['small', 'large', 'next'])
  })

  test('asks for no turn once nothing passes', async () => {
    const { turns, passed, pass, turn } = bench()
    pass('a', 100)
    await turn()
    expect(turns).toHaveLength(0)
    pass('b', 100)
    expect([passed, turns.length]).toEqual([['a', 'b'], 1])
  })
})
