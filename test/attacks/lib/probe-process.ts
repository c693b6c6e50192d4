// A well-behaved client in a process of its own: a request on a kept connection, and the next one a while after the
// answer. Asked for its latencies by its parent, with which it ends.

import { requestBytes, Wire } from './wire.ts'

export interface ProbeSpec {
  port: number
  from: string
  interval_ms: number
  method: string
  path: string
  headers: Record<string, string>
  body?: string
}

export interface Taken {
  latencies_ms: number[]
  errors: number
  /** The last errors. */
  told: string[]
}

const patience_ms = 30_000

let seen: Taken = { latencies_ms: [], errors: 0, told: [] }
let asked_at: number | null = null

process.on('message', (message: ProbeSpec | 'take') => {
  if (message !== 'take') return void probe(message)
  const waits = asked_at === null ? [] : [performance.now() - asked_at]
  process.send!({ ...seen, latencies_ms: [...seen.latencies_ms, ...waits] })
  seen = { latencies_ms: [], errors: 0, told: [] }
})
process.on('disconnect', () => process.exit(0))

async function probe({ port, from, interval_ms, method, path, headers, body }: ProbeSpec): Promise<never> {
  const request = requestBytes(method, path, headers, body)
  let wire: Wire | null = null
  for (;;) {
    asked_at = performance.now()
    let late: Timer | undefined
    let sent = false
    try {
      wire ??= await Wire.connect(port, { from })
      sent = true
      const silence = new Promise<never>((_, reject) => {
        late = setTimeout(() => reject(new Error('no answer')), patience_ms)
      })
      const { status } = await Promise.race([wire.ask(request), silence])
      if (status !== 200) failed(String(status))
      seen.latencies_ms.push(performance.now() - asked_at)
    } catch (error) {
      if (sent) seen.latencies_ms.push(performance.now() - asked_at) // one that was never sent took no time
      failed((error as Error).message)
      wire?.reset()
      wire = null
    } finally {
      clearTimeout(late)
    }
    asked_at = null
    await Bun.sleep(interval_ms)
  }
}

function failed(why: string): void {
  seen.errors += 1
  seen.told = [...seen.told, why].slice(-5)
}
