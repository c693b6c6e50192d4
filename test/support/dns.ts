// A DNS server on loopback whose answers a test decides, over UDP (RFC 1035 section 4).

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIP } from 'node:net'

/**
 * Addresses, IPv4 and IPv6 mixed; `alias` is a CNAME to the name that they belong to. Null: the server is silent, or
 * about one family only.
 */
export type DnsAnswer =
  | { addresses: string[]; alias?: string; ttl_seconds?: number; silent_about?: 'A' | 'AAAA' }
  | 'NXDOMAIN'
  | 'SERVFAIL'
  | 'REFUSED'
  | null

export interface DnsServer {
  /** `address:port`. */
  address: string
  /** `A pub.test`, in the order in which they came. */
  queries: string[]
  stop(): void
}

/** `answer` is told a name in lower case. */
export async function startDnsServer(
  answer: (name: string) => DnsAnswer,
  { host = '127.0.0.1', port = 0 } = {},
): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const queries: string[] = []
  socket.on('message', (message, { address, port }) => {
    const query = parseQuery(message)
    queries.push(`${query.type} ${query.name}`)
    const reply = replyTo(message, query, answer(query.name))
    if (reply) socket.send(reply, port, address)
  })
  socket.bind(port, host)
  await once(socket, 'listening')
  return { address: `${host}:${socket.address().port}`, queries, stop: () => socket.close() }
}

interface DnsQuery {
  name: string
  type: 'A' | 'AAAA' | 'other'
  /** Where the question ends. */
  end: number
}

const header_bytes = 12
const types: Record<number, 'A' | 'AAAA'> = { 1: 'A', 28: 'AAAA' }
const codes = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 }

function parseQuery(message: Buffer): DnsQuery {
  const labels: string[] = []
  let at = header_bytes
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = types[message.readUInt16BE(at + 1)] ?? 'other'
  return { name: labels.join('.').toLowerCase(), type, end: at + 5 }
}

function replyTo(message: Buffer, { type, end }: DnsQuery, answer: DnsAnswer): Buffer | null {
  const question = message.subarray(header_bytes, end)
  if (answer === null) return null
  if (typeof answer === 'string') return Buffer.concat([headerOf(message, codes[answer], 0), question])
  const { addresses, alias, ttl_seconds = 60, silent_about } = answer
  if (silent_about === type) return null
  const family = type === 'A' ? 4 : 6
  const data = addresses.filter((address) => isIP(address) === family).map(bytesOf)
  // The name of a record: that of the question, or that of the alias, which stands in the first record.
  const owner = alias === undefined ? header_bytes : end + 12
  const records = data.map((bytes) => recordOf(owner, family === 4 ? 1 : 28, ttl_seconds, bytes))
  if (alias !== undefined) records.unshift(recordOf(header_bytes, 5, ttl_seconds, labelsOf(alias)))
  return Buffer.concat([headerOf(message, 0, records.length), question, ...records])
}

/** A response, recursion available. */
function headerOf(message: Buffer, code: number, answers: number): Buffer {
  const header = Buffer.alloc(header_bytes)
  message.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(answers, 6)
  return header
}

function recordOf(owner: number, type: number, ttl_seconds: number, data: Buffer): Buffer {
  const record = Buffer.alloc(12)
  record.writeUInt16BE(0xc000 | owner, 0)
  record.writeUInt16BE(type, 2)
  record.writeUInt16BE(1, 4)
  record.writeUInt32BE(ttl_seconds, 6)
  record.writeUInt16BE(data.length, 10)
  return Buffer.concat([record, data])
}

function labelsOf(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`))
  return Buffer.concat([...labels, Buffer.alloc(1)])
}

/** Of an address without `::`, or of one in IPv4. */
function bytesOf(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [first, last] = [groups(head), groups(tail)]
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}
