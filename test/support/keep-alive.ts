// Clients that keep their connections, and count each request that got no answer.

import { connect, type Socket } from 'node:net'

export interface KeepAliveLoad {
  /** Requests that were answered so far. */
  answered: number
  /** Answers other than 200, by status line. */
  refused: Map<string, number>
  /** Requests that were sent on a connection that ended before the answer was there, and connections that failed. */
  cut_off: string[]
  /** Connections that were opened after the first of each client. */
  reopened: number
  /** Resolves when no client can connect any more. */
  ended: Promise<void>
}

/**
 * Begins `clients` clients. Each sends a request, waits for the answer and sends the next on the same connection, until
 * the service refuses connections. Every other one pauses between two requests, so that its connection is idle. A
 * connection that ends between two requests is opened again.
 */
export function keepAliveLoad(
  url: string,
  clients: number,
  request: (client: number) => string,
): KeepAliveLoad {
  const { hostname, port } = new URL(url)
  const load: KeepAliveLoad = {
    ...{ answered: 0, refused: new Map(), cut_off: [], reopened: -clients },
    ended: Promise.resolve(),
  }
  const run = async (client: number) => {
    for (;;) {
      const connection = await Connection.open(Number(port), hostname)
      if (connection === null) return
      if (typeof connection === 'string') {
        load.cut_off.push(`client ${client}, a new connection: ${connection}`)
        return
      }
      load.reopened += 1
      await converse(connection, client)
      connection.end()
    }
  }
  const converse = async (connection: Connection, client: number) => {
    while (connection.is_open) {
      const answer = await connection.ask(request(client))
      if (answer === null) {
        load.cut_off.push(
          `client ${client}, request ${connection.asked} of its connection: ${connection.failure}`,
        )
        return
      }
      const status = answer.slice('HTTP/1.1 '.length, answer.indexOf('\r\n'))
      if (status === '200 OK') load.answered += 1
      else load.refused.set(status, (load.refused.get(status) ?? 0) + 1)
      if (/\r\nconnection: close\r\n/i.test(answer)) return
      if (client % 2 === 0) await Bun.sleep(client % 16)
    }
  }
  load.ended = Promise.all(Array.from({ length: clients }, (_, client) => run(client))).then(() => {})
  return load
}

class Connection {
  is_open = true
  /** Requests that were sent. */
  asked = 0
  failure = 'it was closed'
  #received = ''
  #waiting: ((answer: string | null) => void) | null = null

  /** Null when the service does not listen any more; the code of another error. */
  static open(port: number, hostname: string): Promise<Connection | string | null> {
    return new Promise((resolve) => {
      const socket = connect(port, hostname)
      const failed = (error: NodeJS.ErrnoException) => {
        resolve(error.code === 'ECONNREFUSED' ? null : (error.code ?? error.message))
      }
      socket.once('error', failed)
      socket.once('connect', () => {
        socket.off('error', failed)
        resolve(new Connection(socket))
      })
    })
  }

  constructor(private readonly socket: Socket) {
    socket.setNoDelay(true)
    socket.on('data', (bytes) => this.#read(bytes.toString('latin1')))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.failure = error.code ?? error.message
    })
    socket.on('end', () => this.#closed())
    socket.on('close', () => this.#closed())
  }

  /** The whole answer, or null when the connection ended before. */
  ask(request: string): Promise<string | null> {
    this.asked += 1
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.socket.write(request)
    })
  }

  end(): void {
    this.is_open = false
    this.socket.destroy()
  }

  #read(text: string): void {
    this.#received += text
    const head = this.#received.indexOf('\r\n\r\n')
    if (head === -1) return
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#received.slice(0, head))?.[1] ?? 0)
    const end = head + 4 + length
    if (this.#received.length < end) return
    const answer = this.#received.slice(0, end)
    this.#received = this.#received.slice(end)
    this.#waiting?.(answer)
    this.#waiting = null
  }

  #closed(): void {
    this.is_open = false
    this.#waiting?.(null)
    this.#waiting = null
  }
}
