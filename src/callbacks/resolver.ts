// Names to addresses, from /etc/hosts and DNS, with resolv.conf's search and ndots. The system's own resolver,
// getaddrinfo, runs on a few threads, and a few names whose servers are silent stop it for the whole process. Here
// look-ups run beside each other, and each ends at its limit.

import { Resolver as DnsClient } from 'node:dns/promises'
import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { candidatesOf, parseHosts, parseSearch, type Search, WatchedFile } from './name-files.ts'

/** The first time that a server is waited for; it doubles with each try. */
const try_ms = 1_000
const tries_max = limit('dns.tries', 3, 'attempts', 'How often each DNS server is asked in one look-up.')
/** How long the second family of addresses is waited for once the first has answered: some servers drop AAAA queries. */
const other_family_ms_max = limit(
  'dns.other_family',
  1_000,
  'milliseconds',
  'How long a look-up waits for the addresses of one family once it has those of the other.',
)
/** How long a client is used. It caches answers and reads resolv.conf once, so both are at most this old. */
const client_ms_max = limit(
  'dns.answer_kept',
  1_000,
  'milliseconds',
  'How long an answer of a DNS server may be used again, whatever its TTL.',
)
const clients_kept_max = limit('dns.clients', 64, 'entries', 'Idle DNS clients that are kept.')

export interface SystemResolverOptions {
  hosts_path?: string
  resolv_path?: string
  /** `address:port`. Default: those of resolv.conf. */
  servers?: string[]
}

/** A client answers one look-up at a time, because cancelling one cancels all that it has under way. */
interface Client {
  dns: DnsClient
  /** On the monotonic clock. */
  made_at: number
  /** The state of resolv.conf that it has read. */
  resolv_stamp: string
}

export class SystemResolver {
  readonly #hosts: WatchedFile<Map<string, string[]>>
  readonly #search: WatchedFile<Search>
  readonly #servers: string[] | undefined
  #idle: Client[] = []

  constructor(
    private readonly clock: Clock,
    { hosts_path = '/etc/hosts', resolv_path = '/etc/resolv.conf', servers }: SystemResolverOptions = {},
  ) {
    this.#hosts = new WatchedFile(hosts_path, parseHosts)
    this.#search = new WatchedFile(resolv_path, parseSearch)
    this.#servers = servers
  }

  /** The addresses of a name in lower case that needs no DNS server, or null. */
  known(name: string): string[] | null {
    const in_hosts = this.#hosts.read().get(name)
    if (in_hosts) return in_hosts
    return /(^|\.)localhost$/.test(name) ? ['127.0.0.1', '::1'] : null // RFC 6761 section 6.3
  }

  /**
   * All A and AAAA answers as text, the A answers first; none when the name does not resolve. Ends after `limit_ms`
   * with the answers that are there by then, and nothing stays under way.
   */
  async ask(name: string, limit_ms: number): Promise<string[]> {
    const client = this.#take()
    const query = new Query(client.dns)
    const timer = setTimeout(() => query.end(), limit_ms)
    try {
      return await query.addressesOf(candidatesOf(name, this.#search.read()))
    } finally {
      clearTimeout(timer)
      if (!query.ended) this.#keep(client)
    }
  }

  #take(): Client {
    this.#search.read()
    const { stamp } = this.#search
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      if (idle.resolv_stamp === stamp && this.#isFresh(idle)) return idle
    }
    const dns = new DnsClient({ timeout: try_ms, tries: tries_max })
    if (this.#servers) dns.setServers(this.#servers)
    return { dns, made_at: this.clock.monotonic(), resolv_stamp: stamp }
  }

  #keep(client: Client): void {
    if (this.#isFresh(client) && this.#idle.length < clients_kept_max) this.#idle.push(client)
  }

  #isFresh({ made_at }: Client): boolean {
    return this.clock.monotonic() - made_at < client_ms_max
  }
}

/** The name does not exist, or not for this server: the next name of the search list is tried. */
const absent_codes = new Set(['ENOTFOUND', 'ENODATA', 'ESERVFAIL', 'EREFUSED'])

class Query {
  ended = false
  readonly #over = Promise.withResolvers<void>()

  constructor(private readonly dns: DnsClient) {}

  /** The addresses of the first of these names that has any. */
  async addressesOf(names: string[]): Promise<string[]> {
    for (const name of names) {
      const { addresses, is_absent } = await this.#ask(name)
      if (addresses.length > 0 || !is_absent || this.ended) return addresses
    }
    return []
  }

  async #ask(name: string): Promise<{ addresses: string[]; is_absent: boolean }> {
    const found: [v4: string[], v6: string[]] = [[], []]
    let is_absent = true
    let timer: Timer | undefined
    const answered = async (family: 0 | 1, answers: Promise<string[]>): Promise<void> => {
      try {
        found[family] = await answers
        timer ??= setTimeout(() => this.end(), other_family_ms_max)
      } catch (error) {
        is_absent &&= absent_codes.has((error as { code?: string }).code ?? '')
      }
    }
    const both = [answered(0, this.dns.resolve4(name)), answered(1, this.dns.resolve6(name))]
    await Promise.race([Promise.all(both), this.#over.promise])
    clearTimeout(timer)
    return { addresses: found.flat(), is_absent }
  }

  end(): void {
    this.ended = true
    this.dns.cancel()
    this.#over.resolve()
  }
}
