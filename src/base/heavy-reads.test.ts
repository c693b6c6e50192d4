import { afterEach, expect, jest, test } from 'bun:test'
import { ApiError } from './errors.ts'
import type { Permit } from './heavy-read.ts'
import {
  HeavyReads,
  running_max,
  running_of_tenant_max,
  wait_ms_max,
  waiting_max,
  waiting_of_tenant_max,
} from './heavy-reads.ts'

const there = new AbortController().signal

afterEach(() => {
  jest.useRealTimers()
})

/** Long enough for every permit that can be had. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** The entries made here wait without a time-out. */
function withoutEnd(enterAll: () => void): void {
  jest.useFakeTimers()
  enterAll()
  jest.useRealTimers()
}

function bench() {
  const reads = new HeavyReads()
  const running: [name: string, permit: Permit][] = []
  const refused: [name: string, code: string][] = []
  const enter = (name: string, tenant_id = name, gone = there) =>
    void reads.enter(tenant_id, gone).then(
      (permit) => running.push([name, permit]),
      (error: ApiError) => refused.push([name, error.code]),
    )
  const names = () => running.map(([name]) => name)
  return { reads, running, refused, enter, names }
}

test('a tenant has two heavy reads at once; the others wait in order and hinder no other tenant', async () => {
  const { reads, running, enter, names } = bench()
  for (const name of ['1', '2', '3', '4']) enter(name, 'ten_a')
  enter('other')
  await turns()
  expect(names()).toEqual(['1', '2', 'other'])
  expect(reads.size).toEqual({ running: 3, waiting: 2, tenants: 2 })
  running[1]![1].release()
  await turns()
  expect(names()).toEqual(['1', '2', 'other', '3'])
  for (let i = 0; i < 5; i++) {
    for (const [, permit] of running) permit.release()
    await turns()
  }
  expect(names()).toEqual(['1', '2', 'other', '3', '4'])
  expect(reads.size).toEqual({ running: 0, waiting: 0, tenants: 0 })
})

test('each begins in a turn of the event loop of its own', async () => {
  const { enter, names } = bench()
  for (const name of ['a', 'b', 'c']) enter(name)
  const seen = []
  for (let turn = 0; turn < 4; turn++) {
    seen.push(names().length)
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  expect(seen).toEqual([0, 1, 2, 3])
})

test('a node has eight at once, and tenants take turns', async () => {
  const { running, enter, names } = bench()
  for (let i = 0; i < running_max / running_of_tenant_max; i++)
    for (let j = 0; j < running_of_tenant_max; j++) enter(`full-${i}-${j}`, `full-${i}`)
  for (const name of ['a1', 'a2', 'a3']) enter(name, 'ten_a')
  enter('b1', 'ten_b')
  await turns()
  expect(names()).toHaveLength(running_max)
  running[0]![1].release()
  running[1]![1].release()
  await turns()
  expect(names().slice(running_max)).toEqual(['a1', 'b1'])
})

test('a client that is gone leaves the line, and what it would have read is not read', async () => {
  const { reads, running, refused, enter, names } = bench()
  const [early, waiting, late] = [new AbortController(), new AbortController(), new AbortController()]
  early.abort()
  enter('gone before', 'ten_a', early.signal)
  enter('1', 'ten_a')
  enter('gone before its turn', 'ten_a', late.signal)
  enter('gone while it waits', 'ten_a', waiting.signal)
  enter('2', 'ten_a')
  late.abort()
  waiting.abort()
  await turns()
  expect(refused.map(([name]) => name).toSorted()).toEqual([
    'gone before',
    'gone before its turn',
    'gone while it waits',
  ])
  expect(names()).toEqual(['1', '2'])
  for (const [, permit] of running) permit.release()
  expect(reads.size).toEqual({ running: 0, waiting: 0, tenants: 0 })
})

test('past 2,000 that wait of a tenant the next is UNAVAILABLE, and others may still wait', async () => {
  const { reads, refused, enter } = bench()
  withoutEnd(() => {
    for (let i = 0; i < running_of_tenant_max + waiting_of_tenant_max; i++) enter('waits', 'ten_a')
  })
  await turns()
  expect([reads.size.waiting, refused]).toEqual([waiting_of_tenant_max, []])
  enter('too many', 'ten_a')
  enter('other', 'ten_b')
  await turns()
  expect(refused).toEqual([['too many', 'UNAVAILABLE']])
  expect(reads.size.running).toBe(running_of_tenant_max + 1)
})

test('past 10,000 that wait of all tenants the next is UNAVAILABLE', async () => {
  const { reads, refused, enter } = bench()
  const tenants = waiting_max / waiting_of_tenant_max
  withoutEnd(() => {
    for (let tenant = 0; tenant < running_max; tenant++) enter('runs', `first-${tenant}`)
    for (let tenant = 0; tenant < tenants; tenant++)
      for (let i = 0; i < waiting_of_tenant_max; i++) enter('waits', `ten_${tenant}`)
  })
  await turns()
  expect([reads.size.waiting, refused]).toEqual([waiting_max, []])
  enter('too many')
  await turns()
  expect(refused).toEqual([['too many', 'UNAVAILABLE']])
})

test('a request that waits for something else reads again with a permit, and keeps nobody from it meanwhile', async () => {
  const { reads, running, enter, names } = bench()
  enter('1', 'ten_a')
  enter('2', 'ten_a')
  enter('3', 'ten_a')
  await turns()
  const { promise, resolve } = Promise.withResolvers<string>()
  const paused = running[0]![1].pause(promise)
  await turns()
  expect(names()).toEqual(['1', '2', '3'])
  resolve('told')
  await turns()
  expect(reads.size).toMatchObject({ running: 2, waiting: 1 })
  running[2]![1].release()
  expect(await paused).toBe('told')
  expect(reads.size).toMatchObject({ running: 2, waiting: 0 })
})

test('a permit is released once, also when its answer was sent before the time is over', async () => {
  const { reads, running, enter } = bench()
  enter('1')
  await turns()
  running[0]![1].releaseSoon()
  expect(reads.size).toEqual({ running: 0, waiting: 0, tenants: 1 })
  running[0]![1].releaseSoon()
  running[0]![1].release()
  running[0]![1].release()
  expect(reads.size).toEqual({ running: 0, waiting: 0, tenants: 0 })
})

test('what is thrown is the error of the API', async () => {
  const gone = AbortSignal.abort()
  expect(new HeavyReads().enter('ten_a', gone)).rejects.toBeInstanceOf(ApiError)
})

test('an answer that is being sent keeps others of its tenant from reading, and no other tenant', async () => {
  const { reads, running, enter, names } = bench()
  for (let i = 0; i < running_max / running_of_tenant_max; i++)
    for (let j = 0; j < running_of_tenant_max; j++) enter(`slow-${i}-${j}`, `slow-${i}`)
  enter('third of the first', 'slow-0')
  enter('honest')
  await turns()
  expect(names()).toHaveLength(running_max)
  for (const [, permit] of running) permit.releaseSoon()
  await turns()
  expect(names().slice(running_max)).toEqual(['honest'])
  running[0]![1].release()
  await turns()
  expect(names().slice(running_max)).toEqual(['honest', 'third of the first'])
  for (const [, permit] of running) permit.release()
  expect(reads.size).toEqual({ running: 0, waiting: 0, tenants: 0 })
})

test('a permit that cannot be had within 3 s is UNAVAILABLE with Retry-After, and no sooner', async () => {
  expect(wait_ms_max).toBe(3_000)
  const { reads, running, enter } = bench()
  for (const name of ['1', '2']) enter(name, 'ten_a')
  await turns()
  jest.useFakeTimers()
  const waiting = reads.enter('ten_a', there)
  const outcome = waiting.catch((error: ApiError) => error)
  jest.advanceTimersByTime(wait_ms_max - 1)
  expect(reads.size).toMatchObject({ running: 2, waiting: 1 })
  jest.advanceTimersByTime(1)
  jest.useRealTimers()
  expect(await outcome).toMatchObject({ code: 'UNAVAILABLE', retry_after_seconds: 1 })
  expect(reads.size).toMatchObject({ running: 2, waiting: 0 })
  for (const [, permit] of running) permit.release()
  expect(reads.size).toEqual({ running: 0, waiting: 0, tenants: 0 })
})
