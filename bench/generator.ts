// Load for machines without wrk. It costs more than the service does, so requests per second and latency are its
// own limits; the server's CPU per request still holds.

import { type HotRequest, hotPath } from './hot-path.ts'
import type { Load } from './load.ts'

const [url, connections, seconds, name, agent_id, api_key, run] = process.argv.slice(2) as [
  url: string,
  connections: string,
  seconds: string,
  name: string,
  agent_id?: string,
  api_key?: string,
  run?: string,
]

const next = name === '' ? (): HotRequest => ({ method: 'GET', path: '' }) : requestsOf(name)
const headers: Record<string, string> = agent_id
  ? { 'x-agent-id': agent_id, 'x-api-key': api_key!, 'content-type': 'application/json' }
  : {}

const latencies_ms: number[] = []
const began = performance.now()
const ends = began + Number(seconds) * 1_000
await Promise.all(Array.from({ length: Number(connections) }, connection))
const took_seconds = (performance.now() - began) / 1_000
latencies_ms.sort((a, b) => a - b)

const load: Load = {
  requests: latencies_ms.length,
  requests_per_second: latencies_ms.length / took_seconds,
  p50_ms: latencies_ms[Math.floor(latencies_ms.length * 0.5)]!,
  p99_ms: latencies_ms[Math.floor(latencies_ms.length * 0.99)]!,
}
console.log(JSON.stringify(load))

function requestsOf(name: string): () => HotRequest {
  const { request } = hotPath(name)
  let n = 0
  return () => request(++n, run!)
}

async function connection(): Promise<void> {
  let sent = performance.now()
  while (sent < ends) {
    const { method, path, body } = next()
    const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) })
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}`)
    const now = performance.now()
    latencies_ms.push(now - sent)
    sent = now
  }
}
