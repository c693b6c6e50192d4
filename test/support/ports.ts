// Ports for what starts later, or again.

/**
 * Nobody listens there just now. Below the ports that systems give to connections and to those who ask for any port: one of
 * them could be taken in between.
 */
export function freePort(): number {
  for (;;) {
    const port = 16_384 + Math.floor(Math.random() * 16_384)
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
      return port
    } catch {
      // in use
    }
  }
}
