import { expect, test } from 'bun:test'
import type { Span, SpanStart } from '../base/tracer.ts'
import type { Outcome, Outgoing } from '../callbacks/attempt.ts'
import type { LeasedJob } from '../jobs/job.ts'
import type { Senders } from './background.ts'
import { sendFor } from './traced.ts'

const parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01'
const job = { tenant_id: 't', kind: 'schedule', attempts: 1, traceparent: parent } as LeasedJob
const request = { url: 'http://a.test/', method: 'POST', headers: {} } as Outgoing

async function endedAfter(outcome: Outcome) {
  const sent: Outgoing[] = []
  const ended: boolean[] = []
  const senders = {
    sender: {
      async send(_: string, made: Outgoing) {
        sent.push(made)
        return outcome
      },
    },
  } as unknown as Senders
  const tracer = {
    start: (_: SpanStart): Span => ({ traceparent, end: (_, failed) => void ended.push(failed) }),
    close: async () => {},
  }
  await sendFor(job, request, senders, tracer)
  expect(sent[0]!.headers.traceparent).toBe(traceparent)
  return ended
}

test('An attempt has a span, and one that was not made yet has none', async () => {
  expect(await endedAfter({ ok: true, status: 204, error: null, duration_ms: 1 })).toEqual([false])
  expect(await endedAfter({ ok: false, status: 500, error: 'status', duration_ms: 1 })).toEqual([true])
  expect(await endedAfter({ ok: false, status: null, error: 'untried', duration_ms: 1 })).toEqual([])
})
