// The end of new connections. Bun closes its listening socket and its idle connections in one step, and the system
// resets connections that wait to be accepted at that moment, with the requests that they have sent.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const libraries = ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1']

// socket(7) and linux/filter.h.
const SOL_SOCKET = 1
const SO_ATTACH_FILTER = 26
/** Takes a segment unless it is the first of a connection, by the flags in its TCP header: SYN without ACK. */
const filter: [code: number, jump_if: number, jump_else: number, operand: number][] = [
  [0x30, 0, 0, 13], // load the byte with the flags
  [0x54, 0, 0, 0x12], // of them SYN and ACK
  [0x15, 0, 1, 0x02], // SYN alone
  [0x06, 0, 0, 0], // drop
  [0x06, 0, 0, 0xffff_ffff], // take
]
const instruction_bytes = 8

/**
 * Lets no new connection of this port in, while those that are open or wait to be accepted go on. A client that connects
 * tries again after a second, and finds the next process or none. Linux only; elsewhere, and where /proc cannot be read,
 * nothing happens.
 */
export async function refuseConnections(port: number): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const sockets = listeningSockets(port)
    if (sockets.length > 0) await attachFilter(sockets)
  } catch {
    // A connection may then be reset while the socket is closed.
  }
}

/** The file descriptors of this process that listen on the port. */
function listeningSockets(port: number): number[] {
  const local_port = port.toString(16).toUpperCase().padStart(4, '0')
  const lines = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/self/net/${name}`, 'utf8').split('\n'))
  const links = lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(`:${local_port}`) && state === '0A')
    .map((fields) => `socket:[${fields[9]}]`)
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => links.includes(linkOf(fd)))
}

function linkOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return '' // closed meanwhile
  }
}

async function attachFilter(sockets: readonly number[]): Promise<void> {
  const { dlopen, FFIType, ptr } = await import('bun:ffi')
  const { i32, u32 } = FFIType
  const symbols = { setsockopt: { args: [i32, i32, i32, FFIType.ptr, u32], returns: i32 } } as const
  const program = Buffer.alloc(filter.length * instruction_bytes)
  for (const [i, [code, jump_if, jump_else, operand]] of filter.entries()) {
    const at = i * instruction_bytes
    program.writeUInt16LE(code, at)
    program.writeUInt8(jump_if, at + 2)
    program.writeUInt8(jump_else, at + 3)
    program.writeUInt32LE(operand, at + 4)
  }
  const option = Buffer.alloc(16)
  option.writeUInt16LE(filter.length, 0)
  option.writeBigUInt64LE(BigInt(ptr(program)), 8)
  const library = opened()
  for (const fd of sockets)
    library.symbols.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, ptr(option), option.length)

  function opened() {
    for (const name of libraries) {
      try {
        return dlopen(name, symbols)
      } catch {
        // of another system
      }
    }
    throw new Error('there is no C library')
  }
}
