// `bun bench/delay-proxy.ts <port> <ms>`: a TCP proxy to a port of this machine that delays what passes it, so that a
// database on the same machine answers like one at a distance. Prints its own port. Nothing is reordered or slowed down.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

const [target, ms] = process.argv.slice(2).map(Number) as [number, number]
if (!(target > 0 && ms >= 0)) {
  console.error('Usage: bun bench/delay-proxy.ts <port> <ms>')
  process.exit(2)
}

interface Held {
  due: number
  bytes: Buffer
  to: Socket
}

/** In the order of their time: all wait equally long. */
const held: Held[] = []
let sending = false

function hold(bytes: Buffer, to: Socket): void {
  held.push({ due: performance.now() + ms, bytes, to })
  if (!sending) send()
}

/** A timer may come a millisecond late, which is half of what is measured: for the last part it looks again and again. */
function send(): void {
  sending = true
  const now = performance.now()
  let sent = 0
  while (sent < held.length && held[sent]!.due <= now) {
    const { bytes, to } = held[sent++]!
    if (!to.destroyed) to.write(bytes)
  }
  held.splice(0, sent)
  if (held.length === 0) {
    sending = false
    return
  }
  const left_ms = held[0]!.due - performance.now()
  if (left_ms > 1.5) setTimeout(send, Math.floor(left_ms - 0.5))
  else setImmediate(send)
}

const listener = createServer((client) => {
  const server = connect(target, '127.0.0.1')
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.setNoDelay(true)
    from.on('data', (bytes: Buffer) => hold(bytes, to))
    from.on('error', () => {})
    from.on('close', () => to.destroy())
  }
})
listener.listen(0, '127.0.0.1', () => console.log((listener.address() as AddressInfo).port))
