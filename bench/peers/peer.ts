// Another program that does what one of our hot paths does, and how it is measured beside the service.

import type { HotRequest } from '../hot-path.ts'

/** The version that is here, or the reason why it cannot be measured. */
export type Availability = { version: string } | { missing: string }

export const operations = ['kv-get', 'kv-put', 'rate-check', 'hook', 'audit-append', 'mixed'] as const
export type Operation = (typeof operations)[number]

export interface Peer {
  name: string
  /** One line for the page: how it does the same, and where that differs. */
  how: string
  available(): Promise<Availability>
  /** False when its disk cannot be made slower: the program flushes without the C library. */
  slow_disk: boolean
  start(options: StartOptions): Promise<RunningPeer>
}

export interface StartOptions {
  /** Added to every flush. */
  flush_delay_ms: number
}

export interface RunningPeer {
  /** The server and its database: what the CPU time of a request is made of. */
  pids: readonly number[]
  /** Prepares the operation, tries it once and says how it is asked. Null when it has no such operation. */
  load(operation: Operation): Promise<PeerLoad | null>
  stop(): Promise<void>
}

export interface PeerLoad {
  url: string
  /** One of them is chosen at random each time. */
  requests: readonly PeerRequest[]
  /** Writes that were kept so far: must rise by what was acknowledged. Absent for reads. */
  kept?(): Promise<number>
}

export interface PeerRequest extends HotRequest {
  headers: Readonly<Record<string, string>>
}

/** Throws unless the request succeeds; the answer is its text. */
export async function ask(url: string, { method, path, headers, body }: PeerRequest): Promise<string> {
  const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
  return text
}

/** The first line that a program prints about its version. */
export function versionOf(cmd: string[], form: RegExp): string | null {
  const { stdout, stderr } = Bun.spawnSync(cmd)
  return form.exec(`${stdout}${stderr}`)?.[1] ?? null
}
