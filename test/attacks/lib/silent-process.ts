// Receivers that never answer, in a process of its own: each listens on a port of loopback, takes connections and says
// nothing. Told how many, it tells their ports.

process.on('message', (count: number) => {
  const listeners = Array.from({ length: count }, () =>
    Bun.listen({ hostname: '127.0.0.66', port: 0, socket: { data() {} } }),
  )
  process.send!(listeners.map(({ port }) => port))
})
process.on('disconnect', () => process.exit(0))
