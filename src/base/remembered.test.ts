import { expect, test } from 'bun:test'
import { Remembered } from './remembered.ts'

test('past its limit it forgets what was not used for longest', () => {
  const remembered = new Remembered<number>(2)
  remembered.put('a', 1)
  remembered.put('b', 2)
  expect(remembered.get('a')).toBe(1)
  remembered.put('c', 3)
  expect(['a', 'b', 'c'].map((key) => remembered.get(key))).toEqual([1, undefined, 3])
})
