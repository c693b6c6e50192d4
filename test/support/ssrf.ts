// The published SSRF cases, and a network for them that is not there.

import { readFileSync } from 'node:fs'
import { Sender } from '../../src/callbacks/deliver.ts'
import { openConnection } from '../../src/callbacks/dial.ts'
import type { EgressPolicy, Resolver } from '../../src/callbacks/guard.ts'
import { TestClock } from './clock.ts'

export interface SsrfCase {
  name: string
  url: string
  allowed: boolean
}

/** Every URL of ssrf-cases.tsv. */
export const ssrf_urls: SsrfCase[] = readRows('ssrf-cases.tsv')
  .map(([name = '', url = '', expected]) => ({
    name,
    url: url.replace(/\\(\\|[trn]|u[0-9a-f]{4})/g, (_, code: string) => unescaped(code)),
    allowed: expected === 'allow',
  }))
  .filter(({ name }) => !name.startsWith('ip-'))

/** Cases that can only be refused at the attempt: at creation they are accepted. */
export const told_at_delivery = /^(dns-(nxdomain|empty)|redirect-.*)$/

/** Nothing is allowed that is not public, and names are answered by ssrf-dns.tsv. */
export function strictPolicy(): EgressPolicy {
  return {
    ...{ allow: [], https_only: false, public_url: 'http://self.dns.test' },
    ...{ listening: null, interfaces: () => [], resolve: stubResolver() },
  }
}

/** Connects to this port of loopback whatever it is asked for; `peers` are the addresses that it was asked for. */
export function strictSender(port: number, policy = strictPolicy()): { sender: Sender; peers: string[] } {
  const peers: string[] = []
  const sender = new Sender(policy, new TestClock(), {
    connect: (peer) => {
      peers.push(peer.address)
      const socket = openConnection({ address: '127.0.0.1', port, server_name: null })
      Object.defineProperty(socket, 'remoteAddress', { value: peer.address })
      socket.on('connect', () => {
        if (peer.server_name !== null) socket.emit('secureConnect')
      })
      return socket
    },
  })
  return { sender, peers }
}

/** Any name that is not in the table has a public address. */
function stubResolver(): Resolver {
  const asked = new Map<string, number>()
  const answers = new Map(readRows('ssrf-dns.tsv').map(([name, first, later]) => [name, { first, later }]))
  return async (_, name) => {
    const count = (asked.get(name) ?? 0) + 1
    asked.set(name, count)
    const { first = '', later = '' } = answers.get(name) ?? { first: '93.184.216.34', later: 'same as first' }
    const answer = count === 1 || later === 'same as first' ? first : later
    if (answer.startsWith('!')) throw new Error(answer.slice(1))
    return answer === '' ? [] : answer.split(',')
  }
}

function readRows(file: string): string[][] {
  const text = readFileSync(new URL(`../data/${file}`, import.meta.url), 'utf8')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.slice(1).map((line) => line.split('\t'))
}

function unescaped(code: string): string {
  const plain: Record<string, string> = { '\\': '\\', t: '\t', r: '\r', n: '\n' }
  return plain[code] ?? String.fromCharCode(Number.parseInt(code.slice(1), 16))
}
