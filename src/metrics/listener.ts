// The listener of the metrics: a port of its own, which nobody but the collector needs to reach.

import type { MetricsAddress } from '../config.ts'
import { localUrl } from '../http/internal-calls.ts'
import type { Figure } from './figure.ts'
import { exposition } from './text.ts'

export interface MetricsListener {
  /** `http://127.0.0.1:9464/metrics` */
  url: string
  stop(): void
}

/** Serves GET /metrics. Throws like `Bun.serve` when it cannot listen there. */
export function listenForMetrics(
  { host, port }: MetricsAddress,
  collect: () => Promise<Figure[]>,
  onError: (error: unknown) => void,
): MetricsListener {
  const server = Bun.serve({
    hostname: host,
    port,
    development: false,
    reusePort: false,
    fetch: (request) => answerOf(request, collect),
    error(error) {
      onError(error)
      return plain(500, 'the metrics could not be collected\n')
    },
  })
  return { url: new URL('/metrics', server.url).href, stop: () => void server.stop(true) }
}

async function answerOf(request: Request, collect: () => Promise<Figure[]>): Promise<Response> {
  if (new URL(localUrl(request)).pathname !== '/metrics') return plain(404, 'the metrics are at /metrics\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return plain(405, 'the metrics are read with GET\n', { allow: 'GET, HEAD' })
  }
  const { content_type, text } = await exposition(await collect(), request.headers.get('accept'))
  return new Response(text, { headers: { 'content-type': content_type, 'cache-control': 'no-store' } })
}

function plain(status: number, text: string, headers: Record<string, string> = {}): Response {
  return new Response(text, { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers } })
}
