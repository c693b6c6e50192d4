// Ports for what starts later, or again.

const ports_of_a_process = 256
/** Below the ports that systems give to connections and to those who ask for any port: one of them could be taken in between. */
const lowest = 16_384
/** Test processes run side by side and have ids close to each other: each has a range of its own. */
const first = lowest + (process.pid % 64) * ports_of_a_process
let taken = Math.floor(Math.random() * ports_of_a_process)

/** Nobody listens there just now. */
export function freePort(): number {
  for (let tries = 0; tries < ports_of_a_process; tries++) {
    const port = first + (taken++ % ports_of_a_process)
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
      return port
    } catch {
      // in use
    }
  }
  throw new Error(`no port from ${first} to ${first + ports_of_a_process - 1} is free`)
}
