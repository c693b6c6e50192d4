import { expect, test } from 'bun:test'
import { RequestsUnderWay, requests_of_address_max } from './under-way.ts'

test('a client has its number of requests under way, others have theirs, and those that have none are forgotten', () => {
  const under_way = new RequestsUnderWay()
  for (let i = 0; i < requests_of_address_max; i++) expect(under_way.enter('a')).toBe(true)
  expect([under_way.enter('a'), under_way.enter('b'), under_way.clients]).toEqual([false, true, 2])
  under_way.leave('a')
  expect([under_way.enter('a'), under_way.enter('a')]).toEqual([true, false])
  for (let i = 0; i < requests_of_address_max; i++) under_way.leave('a')
  under_way.leave('b')
  expect(under_way.clients).toBe(0)
})
