import { expect, test } from 'bun:test'
import type { Batch } from './db.ts'
import type { Member } from './postgres-batch.ts'
import { Line, lineOf, lines_count, placeOf } from './postgres-lines.ts'

interface Written extends Partial<Omit<Batch, 'line'>> {
  row?: string
}

function member(key: string, { row, ...batch }: Written = {}): Member {
  const turn = { key, ...(row === undefined ? {} : { row }), batch: { line: 'a', ...batch } }
  const call = { place: null, abandoned: false, committing: false }
  return { turn, call, work: () => key, resolve() {}, reject() {} }
}

function lineWith(members: readonly Member[]): Line {
  const line = new Line(placeOf('a', 'postgres'))
  for (const one of members) line.add(one)
  return line
}

const keysOf = (members: Member[]) => members.map(({ turn }) => turn.key)

test('a batch has 64 writes at most, 24 of them of one key while others write, in the order in which they came', () => {
  const members = Array.from({ length: 70 }, (_, i) => member(`key ${i % 3}`))
  const line = lineWith(members)
  expect(line.take()).toEqual(members.slice(0, 64))
  expect([line.isEmpty, line.take().length, line.isEmpty]).toEqual([false, 6, true])
  const of_one = Array.from({ length: 25 }, () => member('a'))
  const shared = lineWith(of_one)
  expect([shared.take(), shared.take(), shared.isEmpty]).toEqual([
    of_one.slice(0, 24),
    of_one.slice(24),
    true,
  ])
  const alone = lineWith(Array.from({ length: 65 }, () => member('a')))
  expect([alone.take(false).length, alone.take(false).length, alone.isEmpty]).toEqual([64, 1, true])
})

test('keys take turns, so that one with many writes does not keep others out of the next batch', () => {
  const line = lineWith([
    ...Array.from({ length: 100 }, () => member('busy')),
    member('other'),
    member('other'),
    member('third'),
  ])
  expect(keysOf(line.take()).slice(0, 6)).toEqual(['busy', 'other', 'third', 'busy', 'other', 'busy'])
})

test('of more keys than a batch has writes, those that were not served come first', () => {
  const keys = Array.from({ length: 70 }, (_, i) => `key ${i}`)
  const line = lineWith(keys.flatMap((key) => [member(key), member(key)]))
  expect(keysOf(line.take())).toEqual(keys.slice(0, 64))
  expect(keysOf(line.take()).slice(0, 7)).toEqual([...keys.slice(64), keys[0]!])
})

test('a write that is apart shares no batch with others of its row, and those behind it keep their order', () => {
  const [put, remove, again, elsewhere] = [
    member('a', { row: 'k' }),
    member('a', { row: 'k', apart: true }),
    member('a', { row: 'k' }),
    member('a', { row: 'l' }),
  ]
  const of_another = member('b', { row: 'k', apart: true })
  const line = lineWith([put!, remove!, again!, elsewhere!, of_another])
  expect(line.take()).toEqual([put!, of_another, elsewhere!])
  expect(line.take()).toEqual([remove!])
  expect(line.take()).toEqual([again!])
})

test('a row may have fewer writes in a batch, and those of others fill it', () => {
  const [one, two, three, four] = Array.from({ length: 4 }, () => member('a', { row: 'k', row_max: 2 }))
  const elsewhere = member('a', { row: 'l', row_max: 2 })
  const line = lineWith([one!, two!, three!, four!, elsewhere])
  expect(line.take()).toEqual([one!, two!, elsewhere])
  expect(line.take()).toEqual([three!, four!])
})

test('a batch sends 4 MiB at most, and a larger write has one of its own', () => {
  const mib = 1_048_576
  const members = [
    member('a', { bytes: 3 * mib }),
    member('b', { bytes: 2 * mib }),
    member('c', { bytes: mib }),
  ]
  const line = lineWith([...members, member('d', { bytes: 9 * mib })])
  expect(keysOf(line.take())).toEqual(['a', 'c'])
  expect(keysOf(line.take())).toEqual(['b'])
  expect(keysOf(line.take())).toEqual(['d'])
})

test('a write that waits can leave, and only once', () => {
  const [one, other] = [member('a'), member('a')]
  const line = lineWith([one, other])
  expect([line.remove(one), line.remove(one)]).toEqual([true, false])
  expect(line.take()).toEqual([other])
  expect(line.remove(other)).toBe(false)
})

test('every node gives a tenant the same line', () => {
  expect(['tnt_a', 'tnt_b', 'tnt_c', 'tnt_d', 'tnt_e'].map(lineOf)).toEqual([3, 1, 3, 0, 2])
  expect(lines_count).toBe(4)
})

test('on a distributed database each tenant has a line and a lock of its own, the same on every node', () => {
  expect(['tnt_a', 'tnt_c'].map((tenant) => placeOf(tenant, 'citus'))).toEqual([
    { name: 'batch tnt_a', lock: 1_172_824_571 },
    { name: 'batch tnt_c', lock: -1_410_760_489 },
  ])
  expect(placeOf('tnt_a', 'postgres')).toEqual(placeOf('tnt_c', 'postgres'))
})

test('a line is idle while no write waits or runs in it', async () => {
  const [line, one] = [new Line(placeOf('a', 'citus')), member('a')]
  const { promise, resolve } = Promise.withResolvers<void>()
  const seen = [line.isIdle]
  line.add(one)
  seen.push(line.isIdle)
  line.take()
  seen.push(line.isIdle)
  const passed = line.pass(() => promise)
  seen.push(line.isIdle)
  resolve()
  await passed
  seen.push(line.isIdle)
  line.busy = true
  expect([...seen, line.isIdle]).toEqual([true, false, true, false, true, false])
})
