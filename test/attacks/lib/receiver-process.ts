// A receiver of callbacks in a process of its own: answers 200 at once and notes when what came. Tells its parent its
// port, and every arrival.

export interface Arrival {
  path: string
  at: number
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    process.send!({ path: new URL(request.url).pathname, at: Date.now() } satisfies Arrival)
    return new Response('ok')
  },
})
process.on('disconnect', () => process.exit(0))
process.send!(server.port)
