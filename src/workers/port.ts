// The port of a service of several processes. They share it, so the system no longer refuses a second service there.

import { bracketed } from '../http/address.ts'

export interface Port {
  number: number
  /** Gives the claim up. */
  release(): void
}

/**
 * Claims a port for the workers of this service; 0 takes any free one. Throws EADDRINUSE, like a server that listens
 * alone, when another program has it: one that listens is found by listening alone for a moment, and another supervisor,
 * whose workers may not listen at this moment, by a name that one process can hold (unix(7), abstract addresses).
 */
export function claimPort(host: string, port: number): Port {
  const alone = Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() })
  const number = alone.port!
  try {
    const name = `\0waystation/${bracketed(host)}:${number}`
    const claim = Bun.listen({ unix: name, socket: { open: (socket) => void socket.end(), data() {} } })
    return { number, release: () => claim.stop(true) }
  } catch (error) {
    throw Object.assign(
      new Error(`Another service is about to listen on port ${number}.`, { cause: error }),
      {
        code: 'EADDRINUSE',
      },
    )
  } finally {
    void alone.stop(true)
  }
}
