// A load in a process of its own, bounded in connections and time. Tells its parent what came of it, and ends.

import { percentile } from './figures.ts'
import { requestBytes, Wire } from './wire.ts'

export interface LoadSpec {
  port: number
  from: string
  connections: number
  /** The load ends by itself after this time. */
  seconds: number
  /** Or after this many rounds of the requests, over all connections. */
  rounds_max?: number
  /** Every connection makes these in turn. `{n}` in a path or a body is the number of the round, of eight digits. */
  requests: LoadRequest[]
  /**
   * - answers: waits for the whole answer, then makes the next request.
   * - resets: resets the connection `reset_after_ms` after it sent, and opens another.
   * - withholds: sends all but the last byte, once, and waits what comes.
   * - unread: sends and reads nothing.
   * - opens: asks once and keeps the connection open to the end.
   */
  manner: 'answers' | 'resets' | 'withholds' | 'unread' | 'opens'
  reset_after_ms?: number
}

export interface LoadRequest {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
}

export interface LoadResult {
  /** Requests that were sent, whole or not. */
  requests: number
  /** Answers by status. `closed`: connections that ended without one; `open`: that never heard anything. */
  answers: Record<string, number>
  bytes: number
  seconds: number
  p50_ms: number
  p99_ms: number
}

const opened_at_once = 100
const after_end_ms = 500
const pause_after_failure_ms = 20

process.on('message', async (spec: LoadSpec) => {
  process.send!(await load(spec))
  process.exit(0)
})
process.on('disconnect', () => process.exit(0))

async function load(spec: LoadSpec): Promise<LoadResult> {
  const began = performance.now()
  const ends = began + spec.seconds * 1_000
  const result: LoadResult = { requests: 0, answers: {}, bytes: 0, seconds: 0, p50_ms: 0, p99_ms: 0 }
  const latencies_ms: number[] = []
  let round = 0
  const count = (what: number | string) => {
    result.answers[what] = (result.answers[what] ?? 0) + 1
  }
  const built = spec.requests.map((request) => builder(request))
  const over = () => performance.now() >= ends
  const wires = new Set<Wire>()
  const opened = async () => {
    const wire = await Wire.connect(spec.port, { from: spec.from })
    wires.add(wire)
    return wire
  }
  const nextRound = () => (spec.rounds_max !== undefined && round >= spec.rounds_max ? null : round++)

  async function answers(): Promise<void> {
    let wire: Wire | null = null
    for (let n = nextRound(); n !== null && !over(); n = nextRound()) {
      for (const build of built) {
        const sent = performance.now()
        try {
          wire ??= await opened()
          result.requests += 1
          const answer = await wire.ask(build(n))
          count(answer.status)
          result.bytes += answer.bytes
          latencies_ms.push(performance.now() - sent)
          if (wire.closed || /\r\nconnection: close/i.test(answer.head)) wire = null
        } catch {
          count(over() ? 'open' : 'closed')
          wire = null
          await Bun.sleep(pause_after_failure_ms)
          if (over()) return
        }
      }
    }
  }

  async function resets(): Promise<void> {
    for (let n = nextRound(); n !== null && !over(); n = nextRound()) {
      try {
        const wire = await opened()
        wire.push(built[n % built.length]!(n))
        result.requests += 1
        await Bun.sleep(spec.reset_after_ms ?? 0)
        wires.delete(wire)
        wire.reset()
      } catch {
        count('closed')
        await Bun.sleep(pause_after_failure_ms)
      }
    }
  }

  async function once(n: number): Promise<void> {
    try {
      const wire = await opened()
      const request = built[n % built.length]!(n)
      result.requests += 1
      const answered = wire.answered()
      if (spec.manner === 'unread') wire.stopReading()
      wire.push(spec.manner === 'withholds' ? request.subarray(0, -1) : request)
      const status = await answered
      count(status !== 0 ? status : over() ? 'open' : 'closed')
    } catch {
      count('closed')
    }
  }

  // Requests that still wait at the end are reset.
  setTimeout(() => {
    for (const wire of wires) wire.reset()
  }, spec.seconds * 1_000)
  const manners = { answers, resets, withholds: once, unread: once, opens: once }
  const running: Promise<void>[] = []
  for (let i = 0; i < spec.connections && !over(); i++) {
    running.push(manners[spec.manner](i))
    if (i % opened_at_once === opened_at_once - 1) await Bun.sleep(10)
  }
  // A connection that was never accepted does not end on its own.
  await Promise.race([Promise.all(running), Bun.sleep(Math.max(0, ends - performance.now()) + after_end_ms)])
  if (spec.manner === 'opens') await Bun.sleep(Math.max(0, ends - performance.now()))
  result.seconds = (performance.now() - began) / 1_000
  result.p50_ms = percentile(latencies_ms, 50)
  result.p99_ms = percentile(latencies_ms, 99)
  return result
}

/** Bytes of the request for a round; made once when no round changes them. */
function builder({ method, path, headers, body }: LoadRequest): (n: number) => Buffer {
  if (!path.includes('{n}') && !body?.includes('{n}')) {
    const bytes = requestBytes(method, path, headers, body)
    return () => bytes
  }
  return (n) => {
    const digits = String(n).padStart(8, '0')
    return requestBytes(method, path.replaceAll('{n}', digits), headers, body?.replaceAll('{n}', digits))
  }
}
