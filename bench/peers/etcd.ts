// etcd through its JSON gateway: one member that flushes its log before it answers a put.

import { bodyOfPut, keys_count } from '../kv-put.ts'
import { cores, end, start, temporaryFolder } from '../processes.ts'
import { freePort } from '../service.ts'
import { ask, type Peer, type PeerRequest, versionOf } from './peer.ts'

const ready_ms_max = 20_000
const at_once_max = 50
const etcd_binary = Bun.which('etcd')

export const etcd: Peer = {
  name: 'etcd',
  how: 'one member, the JSON gateway `/v3/kv/range` and `/v3/kv/put`, no keys checked; written in Go, it flushes without the C library, so its disk cannot be made slower here',
  slow_disk: false,
  async available() {
    if (!etcd_binary) return { missing: 'etcd is not installed' }
    return {
      version: `etcd ${versionOf([etcd_binary, '--version'], /etcd Version: (\S+)/) ?? '(version unknown)'}`,
    }
  },
  async start() {
    const { folder, remove } = temporaryFolder()
    const url = `http://127.0.0.1:${freePort()}`
    const peer_url = `http://127.0.0.1:${freePort()}`
    const settings = {
      'data-dir': folder,
      'listen-client-urls': url,
      'advertise-client-urls': url,
      'listen-peer-urls': peer_url,
      'initial-advertise-peer-urls': peer_url,
      'initial-cluster': `default=${peer_url}`,
      'log-level': 'error',
      'quota-backend-bytes': String(8 * 1024 ** 3),
    }
    const child = start(
      [etcd_binary!, ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`)],
      {
        core: cores.server,
        cwd: folder,
      },
    )
    for (const began = performance.now(); !(await isReady(url)); ) {
      if (child.exitCode !== null || performance.now() - began > ready_ms_max)
        throw new Error(
          `etcd did not start: ${child.exitCode === null ? 'no answer' : await new Response(child.stderr).text()}`,
        )
      await Bun.sleep(20)
    }
    return {
      pids: [child.pid],
      async load(operation) {
        if (operation === 'kv-put') return { url, requests: numbers.map(put), kept: () => revision(url) }
        if (operation !== 'kv-get') return null
        for (let from = 0; from < keys_count; from += at_once_max)
          await Promise.all(numbers.slice(from, from + at_once_max).map((n) => ask(url, put(n))))
        return { url, requests: numbers.map(range) }
      },
      async stop() {
        await end(child)
        remove()
      },
    }
  },
}

const numbers = Array.from({ length: keys_count }, (_, n) => n)

function put(n: number): PeerRequest {
  return post('/v3/kv/put', { key: keyOf(n), value: btoa(bodyOfPut(n)) })
}

function range(n: number): PeerRequest {
  return post('/v3/kv/range', { key: keyOf(n) })
}

function keyOf(n: number): string {
  return btoa(`bench/key-${String(n).padStart(4, '0')}`)
}

function post(path: string, body: object): PeerRequest {
  return { method: 'POST', path, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

/** Every put raises the revision by one. */
async function revision(url: string): Promise<number> {
  const answer = JSON.parse(await ask(url, range(0))) as { header: { revision: string } }
  return Number(answer.header.revision)
}

async function isReady(url: string): Promise<boolean> {
  const response = await fetch(`${url}/health`).catch(() => null)
  return response?.ok === true
}
