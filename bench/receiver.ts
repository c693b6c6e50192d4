// A receiver of callbacks in a process of its own: counts webhook-ids and says how late each request came. A second
// port takes connections and never answers. Both listen on every loopback address, each of which is a destination.
//
// Prints its two ports. GET / answers the figures so far, DELETE / forgets them. Every body is {"at": <milliseconds>},
// the time at which it was due.

export interface Figures {
  received: number
  /** Different webhook-ids among them. */
  distinct: number
  /** When the last one came, milliseconds since 1970. */
  last_at: number
  /** Arrival less due time of each, in the order of arrival. Milliseconds. */
  lateness_ms: number[]
}

if (import.meta.main) serve()

function serve(): void {
  const ids = new Set<string>()
  let lateness_ms: number[] = []
  let last_at = 0

  const figures = (): Figures => ({ received: lateness_ms.length, distinct: ids.size, last_at, lateness_ms })

  const answering = Bun.serve({
    hostname: '0.0.0.0',
    port: 0,
    async fetch(request) {
      if (request.method === 'POST') {
        const now = performance.timeOrigin + performance.now()
        const { at } = (await request.json()) as { at: number }
        ids.add(request.headers.get('webhook-id')!)
        lateness_ms.push(now - at)
        last_at = now
        return new Response(null, { status: 204 })
      }
      const told = Response.json(figures())
      if (request.method === 'DELETE') {
        ids.clear()
        lateness_ms = []
      }
      return told
    },
  })
  const silent = Bun.listen({ hostname: '0.0.0.0', port: 0, socket: { data() {} } })
  console.log(`${answering.port} ${silent.port}`)
}
