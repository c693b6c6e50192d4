// The service itself, measured as its peers are.

import { join } from 'node:path'
import { type HotPath, type HotRequest, hotPath } from '../hot-path.ts'
import { Client, startService } from '../service.ts'
import type { Operation, Peer, PeerLoad, PeerRequest } from './peer.ts'
import { slowDisk } from './slow-disk.ts'

const requests_count = 1_000
const here = join(import.meta.dir, '../..')

/** How often each is asked in a mixed load, of a hundred requests. */
const mix: readonly [name: string, share: number][] = [
  ['kv-get', 40],
  ['kv-put', 20],
  ['audit-append', 15],
  ['rate-check', 15],
  ['hook', 10],
]

export const waystation = serviceOf('Waystation', here)

/** The service of a checkout. */
export function serviceOf(name: string, root: string): Peer {
  return {
    name,
    how: 'as `npm start` runs it, on SQLite; each request carries the key of an agent',
    slow_disk: true,
    available: async () => ({ version: versionIn(root) }),
    async start({ flush_delay_ms }) {
      const service = await startService(root, undefined, undefined, slowDisk(flush_delay_ms))
      const client = await Client.signUp(service.url)
      return {
        pids: [service.pid],
        load: (operation) => (operation === 'mixed' ? mixed(client) : loadOf(operation, client)),
        stop: () => service.stop(),
      }
    },
  }
}

export function versionIn(root: string): string {
  return (
    Bun.spawnSync(['git', '-C', root, 'rev-parse', '--short', 'HEAD']).stdout.toString().trim() || 'no git'
  )
}

async function loadOf(name: Operation, client: Client): Promise<PeerLoad> {
  const path = hotPath(name)
  await path.preload(client)
  const requests = requestsOf(path, client, requests_count)
  await client.send(requests[0]!)
  return { url: client.url, requests, ...(path.kept ? { kept: () => path.kept!(client) } : {}) }
}

async function mixed(client: Client): Promise<PeerLoad> {
  const paths = mix.map(([name, share]) => ({ path: hotPath(name), share }))
  for (const { path } of paths) await path.preload(client)
  const requests = paths.flatMap(({ path, share }) =>
    requestsOf(path, client, (requests_count / 100) * share),
  )
  const kept = async () => {
    let sum = 0
    for (const { path } of paths) sum += (await path.kept?.(client)) ?? 0
    return sum
  }
  return { url: client.url, requests, kept }
}

function requestsOf(path: HotPath, client: Client, count: number): PeerRequest[] {
  const run = path.run?.(client) ?? 'run'
  return Array.from({ length: count }, (_, n) => withKey(path.request(n, run), client))
}

/** A sender of webhooks has no key: the path holds the token. */
function withKey(request: HotRequest, { agent_id, api_key }: Client): PeerRequest {
  const key: Record<string, string> = request.path.startsWith('/hook/')
    ? {}
    : { 'x-agent-id': agent_id, 'x-api-key': api_key }
  const type: Record<string, string> =
    request.body === undefined ? {} : { 'content-type': 'application/json' }
  return { ...request, headers: { ...key, ...type } }
}
