// The official MCP client, connected to a service over either transport.

import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'

export type Over = 'http' | 'stdio'
export const transports: readonly Over[] = ['http', 'stdio']

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

export async function connect(over: Over, url: string, key: string, read_only = false): Promise<McpClient> {
  const client = new Client({ name: 'tests', version: '1.0.0' })
  await client.connect((over === 'http' ? http(url, key, read_only) : stdio(url, key, read_only)) as never)
  return {
    client,
    async call(name, args = {}, signal) {
      const result = await client.callTool({ name, arguments: args }, undefined, signal ? { signal } : {})
      const { content, structuredContent, isError } = result as CallToolResult
      const [{ text }] = content as unknown as [{ text: string }]
      return { data: structuredContent ?? JSON.parse(text), text, is_error: isError ?? false }
    },
    close: () => client.close(),
  }
}

function http(url: string, key: string, read_only: boolean) {
  const headers = { authorization: `Bearer ${key}` }
  const at = new URL(read_only ? `${url}/mcp?mode=read-only` : `${url}/mcp`)
  return new StreamableHTTPClientTransport(at, { requestInit: { headers } })
}

function stdio(url: string, key: string, read_only: boolean) {
  return new StdioClientTransport({
    command: process.execPath,
    args: [join(import.meta.dir, '../../cli/main.ts'), 'mcp', ...(read_only ? ['--read-only'] : [])],
    env: { WAYSTATION_URL: url, WAYSTATION_KEY: key },
    stderr: 'inherit',
  })
}
