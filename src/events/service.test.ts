import { expect, test } from 'bun:test'
import { inTime } from '../../test/support/patience.ts'
import { Notifier } from '../base/notifier.ts'
import { Tails } from '../contract/tails.ts'
import { type EventsContext, read } from './service.ts'

const none = { number: async () => true, lastSeq: () => 0, after: () => [] }

test('a client that has left before its wait began leaves nothing that waits', async () => {
  const notifier = new Notifier({ looks_again: false })
  const tails = new Tails(none, notifier)
  const gone = new AbortController()
  const context = {
    caller: { kind: 'agent', tenant_id: 'ten_a', agent_id: 'agent-one' },
    dependencies: { shared: { notifier, tails }, keys: { cache: { onForgotten: () => () => {} } } },
    signal: () => gone.signal,
    extendTimeout() {},
    requireStillAllowed: async () => {},
  } as unknown as EventsContext
  const waiting = read(context, { any: [{}], after: null, rows_max: 1, wait_ms: 3_600_000 })
  gone.abort()
  expect(await inTime(waiting)).toEqual({ events: [], next_after: 0 })
  expect(tails.size).toBe(0)
})
