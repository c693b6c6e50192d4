import { expect, test } from 'bun:test'
import { traceIdOf, traceparentOf } from './traceparent.ts'

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
const span_id = '00f067aa0ba902b7'
const valid = `00-${trace_id}-${span_id}-01`

test('a valid header is passed on as it is', () => {
  expect(traceparentOf(valid)).toBe(valid)
  expect(traceparentOf(`00-${trace_id}-${span_id}-00`)).toBe(`00-${trace_id}-${span_id}-00`)
  expect(traceIdOf(valid)).toBe(trace_id)
})

test.each([
  ['none', null],
  ['an empty one', ''],
  ['version ff', `ff-${trace_id}-${span_id}-01`],
  ['capital letters', valid.toUpperCase()],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${span_id}-01`],
  ['a span of zeros', `00-${trace_id}-${'0'.repeat(16)}-01`],
  ['a short trace', `00-${trace_id.slice(1)}-${span_id}-01`],
  ['more than version 00 has', `${valid}-extra`],
  ['two of them', `${valid}, ${valid}`],
  ['no flags', `00-${trace_id}-${span_id}`],
])('%s counts as absent', (_, sent) => {
  expect(traceparentOf(sent)).toBeNull()
})

test('of a later version the members that version 00 has are passed on', () => {
  expect(traceparentOf(`01-${trace_id}-${span_id}-01-what-the-future-holds`)).toBe(valid)
  expect(traceparentOf(`cc-${trace_id}-${span_id}-01`)).toBe(valid)
  expect(traceparentOf(`01-${trace_id}-${span_id}-01.what`)).toBeNull()
})
