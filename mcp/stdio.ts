// The same tools over standard input and output, for clients that start their servers. The API is called over HTTP.

import { serveStdio as serveLines } from '@modelcontextprotocol/server/stdio'
import { LineTransport } from './lines.ts'
import { mcpServer } from './server.ts'

export interface StdioOptions {
  /** Where the service is, without /v1. */
  url: string
  /** An agent key. */
  key: string
  /** Of the workflow that every call belongs to: the bytes of its UTF-8, a character each. */
  workflow_header?: string | undefined
  read_only?: boolean
}

const answer_ms_max = 30_000

/** Of a message; one that is longer ends the server, since nothing behind it can be read. */
export const message_bytes_max = 10 * 1_048_576

/**
 * Serves until standard input ends; calls under way are answered first, waits at once. False when a message was longer than
 * `message_bytes_max`.
 */
export async function serveStdio({
  url,
  key,
  workflow_header,
  read_only = false,
}: StdioOptions): Promise<boolean> {
  const sent = {
    authorization: `Bearer ${key}`,
    ...(workflow_header && { 'x-workflow-id': workflow_header }),
  }
  const ending = new AbortController()
  const under_way = new Set<Promise<unknown>>()
  const transport = new LineTransport(process.stdin, process.stdout, message_bytes_max)
  const options = {
    api: fetchAnswer,
    base_url: url.replace(/\/+$/, ''),
    headers: () => new Headers(sent),
    timeIn: (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString(),
    read_only,
    signal: ending.signal,
    onCall(result: Promise<unknown>) {
      const forget = () => under_way.delete(result)
      under_way.add(result)
      result.then(forget, forget)
    },
  }
  const connection = serveLines(() => mcpServer(options), { transport })
  const was_read = await transport.input_ended
  ending.abort()
  await Promise.allSettled(under_way)
  // The protocol writes an answer after the call that made it.
  await new Promise((resolve) => setTimeout(resolve, 0))
  await connection.close()
  return was_read
}

async function fetchAnswer(request: Request, held_seconds: number): Promise<Response> {
  const late = AbortSignal.timeout(answer_ms_max + held_seconds * 1_000)
  const answer = await fetch(request, {
    signal: AbortSignal.any([request.signal, late]),
    // The service never redirects: the answer of something before it is named as such.
    redirect: 'manual',
    // On a kept connection that was closed meanwhile Bun sends a PUT or DELETE again by itself.
    ...(request.method === 'GET' ? {} : { keepalive: false }),
  })
  return inSeconds(answer)
}

/** A proxy may give Retry-After as a date (RFC 9110 section 10.2.3): by its own clock, which Date has. */
function inSeconds(answer: Response): Response {
  const { status, headers } = answer
  const after = headers.get('retry-after') ?? ''
  const seconds = Math.ceil((Date.parse(after) - Date.parse(headers.get('date') ?? '')) / 1_000)
  if (/^\d*$/.test(after) || Number.isNaN(seconds)) return answer
  return new Response(answer.body, {
    status,
    headers: { ...Object.fromEntries(headers), 'retry-after': String(Math.max(0, seconds)) },
  })
}
