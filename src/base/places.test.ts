import { expect, test } from 'bun:test'
import { Places } from './places.ts'

test('a key has its number of places, others have theirs, and those that have none are forgotten', () => {
  const places = new Places()
  const max = 8
  for (let i = 0; i < max; i++) expect(places.enter('a', max)).toBe(true)
  expect([places.enter('a', max), places.enter('b', max), places.keys]).toEqual([false, true, 2])
  places.leave('a')
  expect([places.enter('a', max), places.enter('a', max)]).toEqual([true, false])
  for (let i = 0; i < max; i++) places.leave('a')
  places.leave('b')
  expect([places.all, places.keys]).toEqual([0, 0])
})

test('all keys together have no more places than there are, and a place that is left is free', () => {
  const places = new Places(3)
  expect(['a', 'b', 'c', 'd'].map((key) => places.enter(key, 2))).toEqual([true, true, true, false])
  places.leave('b')
  expect([places.enter('d', 2), places.enter('a', 2), places.all]).toEqual([true, false, 3])
})
