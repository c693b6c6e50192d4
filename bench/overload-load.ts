// The load of bench/overload.ts, in a process of its own: so many requests a second, or as many as are answered, over a
// number of connections with one request at a time each. It sends again whatever the answer was, and ignores Retry-After.

import type { Socket } from 'bun'

export interface LoadTask {
  port: number
  connections: number
  seconds: number
  /** Null: each connection sends its next request when it has the answer to the last. */
  per_second: number | null
  keys: { agent_id: string; api_key: string }[]
}

export interface Sent {
  count: number
  p50_ms: number
  p99_ms: number
}

export interface LoadReport {
  accepted: Sent
  /** 503. */
  refused: Sent
  /** Any other answer, and connections that were closed. */
  failed: number
  /** Due while every connection waited for an answer. */
  unsent: number
}

const task = JSON.parse(process.argv[2]!) as LoadTask
const accepted: number[] = []
const refused: number[] = []
let failed = 0
let unsent = 0
let requests = 0
const idle: Connection[] = []
/** Known once all connections are open, which takes seconds for thousands. */
let ends = Number.POSITIVE_INFINITY
const value = 'v'.repeat(100)

/** A mix of what agents do: two reads, a write and an entry of the audit log, of one tenant after the other. */
const prepared = task.keys.flatMap((key) =>
  Array.from({ length: 100 }, (_, i) => [
    request(key, 'GET', `/v1/kv/ns/k${i}`),
    request(key, 'PUT', `/v1/kv/ns/k${i}`, JSON.stringify({ value })),
    request(key, 'GET', `/v1/kv/ns/k${(i * 7) % 100}`),
    request(key, 'POST', '/v1/audit', JSON.stringify({ action: 'a', metadata: { i, value } })),
  ]).flat(),
)
for (let i = prepared.length - 1; i > 0; i--) {
  const other = (i * 48_271) % (i + 1)
  ;[prepared[i], prepared[other]] = [prepared[other]!, prepared[i]!]
}

class Connection {
  #sent_at = 0
  #socket: Socket | null = null
  #waits = false

  async open(): Promise<void> {
    this.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: task.port,
      socket: {
        data: (_, bytes) => this.#answered(bytes),
        close: () => this.#closed(),
        error: () => {},
      },
    })
  }

  send(): void {
    this.#waits = true
    this.#sent_at = performance.now()
    this.#socket!.write(prepared[requests++ % prepared.length]!)
  }

  /** Answers are small: one comes in one piece, and what does not begin like one is the rest of another. */
  #answered(bytes: Uint8Array): void {
    if (!this.#waits || bytes[0] !== 0x48) return
    this.#waits = false
    const now = performance.now()
    const status = (bytes[9]! - 48) * 100 + (bytes[10]! - 48) * 10 + (bytes[11]! - 48)
    // A key that nobody has put yet is an answer too.
    if (status < 300 || status === 404) accepted.push(now - this.#sent_at)
    else if (status === 503) refused.push(now - this.#sent_at)
    else failed += 1
    if (now >= ends) return
    if (task.per_second === null) this.send()
    else idle.push(this)
  }

  #closed(): void {
    if (this.#waits) failed += 1
    this.#waits = false
    if (performance.now() < ends)
      void this.open().then(() => (task.per_second === null ? this.send() : idle.push(this)))
  }
}

function request(key: LoadTask['keys'][number], method: string, path: string, body = ''): Buffer {
  const headers = `host: 127.0.0.1:${task.port}\r\nx-agent-id: ${key.agent_id}\r\nx-api-key: ${key.api_key}\r\n`
  const content = body === '' ? '' : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${headers}${content}\r\n${body}`)
}

const connections = Array.from({ length: task.connections }, () => new Connection())
for (const connection of connections) await connection.open()
ends = performance.now() + task.seconds * 1_000
if (task.per_second === null) for (const connection of connections) connection.send()
else {
  idle.push(...connections)
  let due = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    due += ((now - last) * task.per_second!) / 1_000
    last = now
    for (; due >= 1; due -= 1) {
      const connection = idle.shift()
      if (connection) connection.send()
      else unsent += 1
    }
    if (now >= ends) clearInterval(timer)
  }, 1)
}
await Bun.sleep(ends - performance.now())
const report: LoadReport = { accepted: sent(accepted), refused: sent(refused), failed, unsent }
console.log(JSON.stringify(report))
process.exit(0)

function sent(latencies_ms: number[]): Sent {
  latencies_ms.sort((one, other) => one - other)
  const at = (part: number) => latencies_ms[Math.floor(latencies_ms.length * part)] ?? 0
  return { count: latencies_ms.length, p50_ms: at(0.5), p99_ms: at(0.99) }
}
