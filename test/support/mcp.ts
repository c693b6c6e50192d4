// The official MCP client, connected to a service over either transport, in either generation of the protocol.

import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { quick } from './quick.ts'

export type Over = 'http' | 'stdio'
/** The last that begins with a handshake, and the first without one. */
export type Revision = '2025-11-25' | '2026-07-28'

const all: readonly [Over, Revision][] = [
  ['http', '2025-11-25'],
  ['http', '2026-07-28'],
  ['stdio', '2025-11-25'],
  ['stdio', '2026-07-28'],
]

/** The quick run leaves out stdio, which starts a process. */
export const transports = all.filter(([over]) => over === 'http' || !quick)

export interface McpClient {
  client: Client
  /** Returns the answer; the client has checked it against the tool's output schema. */
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<ToolAnswer>
  close(): Promise<void>
}

export interface ToolAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an answer's shape
  data: any
  text: string
  is_error: boolean
}

interface Options {
  read_only?: boolean
  revision?: Revision
}

export async function connect(
  over: Over,
  url: string,
  key: string,
  { read_only = false, revision = '2025-11-25' }: Options = {},
): Promise<McpClient> {
  const client = clientOf(revision === '2025-11-25' ? 'legacy' : { pin: revision })
  await client.connect(over === 'http' ? overHttp(url, key, read_only) : overStdio(url, key, read_only))
  return {
    client,
    async call(name, args = {}, signal) {
      const result = await client.callTool({ name, arguments: args }, signal ? { signal } : {})
      const [{ text }] = result.content as unknown as [{ text: string }]
      return { data: result.structuredContent ?? JSON.parse(text), text, is_error: result.isError ?? false }
    },
    close: () => client.close(),
  }
}

/** `auto` asks which revision there is; the others speak one alone. */
export function clientOf(mode: 'auto' | 'legacy' | { readonly pin: Revision }): Client {
  return new Client({ name: 'tests', version: '1.0.0' }, { versionNegotiation: { mode } })
}

export function overHttp(url: string, key: string, read_only = false) {
  const headers = { authorization: `Bearer ${key}` }
  const at = new URL(read_only ? `${url}/mcp?mode=read-only` : `${url}/mcp`)
  return new StreamableHTTPClientTransport(at, { requestInit: { headers } })
}

function overStdio(url: string, key: string, read_only: boolean) {
  return new StdioClientTransport({
    command: process.execPath,
    args: [join(import.meta.dir, '../../cli/main.ts'), 'mcp', ...(read_only ? ['--read-only'] : [])],
    env: { WAYSTATION_URL: url, WAYSTATION_KEY: key },
    stderr: 'inherit',
  })
}
