// A door before a PostgreSQL, which counts the connections that come and turns them away as a server does that cannot have them.

import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** An error with which a server ends a connection that opens. */
export interface Refusal {
  state: string
  message: string
}

export const starting_up: Refusal = { state: '57P03', message: 'the database system is starting up' }

export class Door {
  /** With its port. */
  host = ''
  /** `pass`: to the server. `hold`: the connection is taken, and nothing is said on it. `drop`: it ends without a word. */
  does: 'pass' | 'hold' | 'drop' | Refusal = 'pass'
  /** Connections that have come. */
  count = 0
  /** The most of those that were turned away, or are held, at one time. */
  most_at_once = 0
  /** Of those, the ones that are there now. */
  outside = 0
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  #target: URL

  private constructor(url: string) {
    this.#target = new URL(url)
    this.#server = createServer((client) => this.#enter(client))
  }

  static async before(url: string): Promise<Door> {
    const door = new Door(url)
    await new Promise<void>((resolve) => door.#server.listen(0, '127.0.0.1', resolve))
    door.host = `127.0.0.1:${(door.#server.address() as AddressInfo).port}`
    return door
  }

  /** Of the same database, through this door. */
  get url(): string {
    const url = new URL(this.#target)
    url.host = this.host
    return url.href
  }

  /** Connections that come from now on go to this server. */
  leadTo(url: string): void {
    this.#target = new URL(url)
  }

  /** Ends what goes through it, and turns away what comes: the outage begins. */
  shut(does: Exclude<Door['does'], 'pass'>): void {
    this.does = does
    this.cut()
  }

  /** Ends every connection; others may come. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #enter(client: Socket): void {
    this.count += 1
    this.#keep(client)
    if (this.does === 'pass') this.#pass(client)
    else this.#turnAway(client, this.does)
  }

  #turnAway(client: Socket, does: Exclude<Door['does'], 'pass'>): void {
    this.outside += 1
    this.most_at_once = Math.max(this.most_at_once, this.outside)
    const leave = () => {
      this.outside -= 1
    }
    if (does === 'hold' || does === 'drop') {
      client.once('close', leave)
      if (does === 'drop') client.destroy()
      return
    }
    // A client hears nothing before it has spoken.
    client.once('data', () => {
      leave()
      client.end(packetOf(does))
    })
  }

  #pass(client: Socket): void {
    const server = connect(Number(this.#target.port), this.#target.hostname)
    this.#keep(server)
    client.once('close', () => server.destroy())
    server.once('close', () => client.destroy())
    client.pipe(server)
    server.pipe(client)
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
  }

  close(): void {
    this.#server.close()
    this.cut()
  }
}

/** ErrorResponse, "Message Formats" of PostgreSQL's protocol. */
function packetOf({ state, message }: Refusal): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${state}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(4 + fields.length, 1)
  return Buffer.concat([head, fields])
}
