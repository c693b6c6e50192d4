// A power cut between any two turns of the event loop: what was acknowledged, shown, or let an effect leave is kept.

import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { SnapshotConnection } from '../src/db/sqlite-connection.ts'
import { cutPower } from './support/power-cut-run.ts'

const cuts = Number(process.env.POWER_CUTS ?? 30)
const seed = Number(process.env.POWER_CUT_SEED ?? Date.now() % 1_000_000)
const test_ms_max = 300_000 + cuts * 1_000

describe(`a power cut (POWER_CUT_SEED=${seed})`, () => {
  for (const in_loop of [false, true]) {
    describe(`with flushes ${in_loop ? 'in' : 'off'} the event loop`, () => {
      test(
        `${cuts} of them take back nothing that was acknowledged or shown, and damage no file`,
        async () => {
          const options = { cuts, seed, in_loop, text_characters: 2_000 }
          const { acknowledged, shown, lost } = await cutPower(options)
          expect(lost).toEqual([])
          expect(acknowledged).toBeGreaterThan(cuts)
          expect(shown).toBeGreaterThan(cuts)
        },
        test_ms_max,
      )

      // In the loop each flush is one of all writers: fewer cuts see the log begin again as often.
      const large_cuts = in_loop ? Math.ceil(cuts / 3) : cuts
      test(
        `${large_cuts} of them while the log is copied and begins again`,
        async () => {
          const options = { cuts: large_cuts, seed, in_loop, text_characters: 400_000 }
          const { lost, begun_again } = await cutPower(options)
          expect(lost).toEqual([])
          expect(begun_again).toBeGreaterThan(0)
        },
        test_ms_max,
      )
    })
  }

  const spies: { mockRestore(): void }[] = []
  afterEach(() => {
    for (const spy of spies.splice(0)) spy.mockRestore()
  })

  test(
    'finds a service that answers before the flush',
    async () => {
      const { lost } = await cutPower({
        ...{ cuts: 100, seed, text_characters: 2_000 },
        isEnough: (lost) => has(lost, 'acknowledged') && has(lost, 'an effect'),
        sync: (disk) => ({
          offLoop(fd) {
            void disk.sync(fd)
            return Promise.resolve()
          },
        }),
      })
      expect(has(lost, 'acknowledged')).toBe(true)
      expect(has(lost, 'an effect')).toBe(true)
    },
    test_ms_max,
  )

  test(
    'finds a service that leaves out the flush in the event loop',
    async () => {
      const { lost } = await cutPower({
        ...{ cuts: 100, seed, text_characters: 2_000 },
        isEnough: (lost) => has(lost, 'acknowledged'),
        sync: () => ({ inLoop() {} }),
      })
      expect(has(lost, 'acknowledged')).toBe(true)
    },
    test_ms_max,
  )

  test(
    'finds readers that see a commit before its flush',
    async () => {
      spies.push(spyOn(SnapshotConnection.prototype, 'keep').mockImplementation(() => {}))
      const isEnough = (found: string[], cut: number) => found.length > 0 && cut >= 30
      const { lost } = await cutPower({ cuts: 200, seed, text_characters: 2_000, isEnough })
      expect(lost.length).toBeGreaterThan(0)
      expect(lost.filter((fault) => !fault.startsWith('shown'))).toEqual([])
    },
    test_ms_max,
  )
})

/** True when a cut took back something of this kind. */
function has(lost: string[], kind: string): boolean {
  return lost.some((fault) => fault.startsWith(kind))
}
