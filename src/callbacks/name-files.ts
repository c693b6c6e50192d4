// /etc/hosts and /etc/resolv.conf: read again when they have changed.

import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { limit } from '../base/limit.ts'

/** As in glibc. */
const ndots_max = limit('dns.ndots', 15, 'entries', 'The most that `ndots` in `/etc/resolv.conf` counts for.')

const search_domains_max = limit(
  'dns.search_domains',
  16,
  'entries',
  'Search domains of `/etc/resolv.conf` that are used, the first ones.',
)

export interface Search {
  domains: string[]
  /** A name with fewer dots is looked for in the domains first. */
  ndots: number
}

/** resolv.conf(5), `search` and `options ndots`. */
export function candidatesOf(name: string, { domains, ndots }: Search): string[] {
  const in_domains = domains.map((domain) => `${name}.${domain}`)
  const dots = name.split('.').length - 1
  return dots >= ndots ? [name, ...in_domains] : [...in_domains, name]
}

export function parseSearch(text: string): Search {
  let domains = [hostname().split('.').slice(1).join('.')]
  let ndots = 1
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line.trim().split(/\s+/)
    if (keyword === 'search') domains = words
    else if (keyword === 'domain') domains = words.slice(0, 1)
    else if (keyword === 'options') ndots = ndotsOf(words) ?? ndots
  }
  const named = domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '')
  return { domains: named.slice(0, search_domains_max), ndots }
}

function ndotsOf(options: string[]): number | undefined {
  const digits = options.map((option) => /^ndots:(\d+)$/.exec(option)?.[1]).findLast((found) => found)
  return digits === undefined ? undefined : Math.min(ndots_max, Number(digits))
}

/** hosts(5): an address, its name, and aliases. A name may stand in several lines. */
export function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, '')
      const known = hosts.get(key)
      if (known) known.push(address)
      else hosts.set(key, [address])
    }
  }
  return hosts
}

/** A file that is parsed again when it has changed. One that is not there, or cannot be read, is empty. */
export class WatchedFile<T> {
  /** The state of the file that was read last. */
  stamp = 'never'
  #parsed: T | undefined

  constructor(
    private readonly path: string,
    private readonly parse: (text: string) => T,
  ) {}

  read(): T {
    const now = stampOf(this.path)
    if (now !== this.stamp || this.#parsed === undefined) {
      this.#parsed = this.parse(textOf(this.path))
      this.stamp = now
    }
    return this.#parsed
  }
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path)
    return `${mtimeMs} ${size} ${ino}`
  } catch {
    return 'absent'
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
