// examples/mcp.json and what README prints of /mcp, tried as a reader would.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { ready_tools } from '../mcp/server.ts'
import { clientOf } from './support/mcp.ts'
import { forEachService } from './support/service.ts'

const root = join(import.meta.dir, '..')
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const example = textOf('examples/mcp.json')

interface Example {
  mcpServers: {
    waystation: { url: string; headers: Record<string, string> }
    'waystation-stdio': { command: string; args: string[]; env: Record<string, string> }
  }
}

test('docs/mcp.md prints examples/mcp.json', () => {
  expect(textOf('docs/mcp.md')).toContain(`\`\`\`json\n${example}\`\`\``)
})

forEachService('MCP as printed', (service) => {
  test.each(['waystation', 'waystation-stdio'] as const)(
    '%s of examples/mcp.json connects, from any folder',
    async (name) => {
      const { api_key } = await service.signUp()
      const filled = example
        .replaceAll('http://127.0.0.1:8420', service.url)
        .replaceAll('svc_agt_…', api_key)
        .replaceAll('/path/to/waystation', root)
      const { waystation, 'waystation-stdio': stdio } = (JSON.parse(filled) as Example).mcpServers
      const transport =
        name === 'waystation'
          ? new StreamableHTTPClientTransport(new URL(waystation.url), { requestInit: waystation })
          : new StdioClientTransport({ ...stdio, cwd: tmpdir() })
      const client = clientOf('auto')
      await client.connect(transport)
      expect((await client.listTools()).tools).toHaveLength(ready_tools.length)
      await client.close()
    },
  )

  test.each([
    ['over HTTP', []],
    ['over stdio', ['--stdio']],
    ['over stdio, with tools that only read', ['--stdio', '--read-only']],
    ['over HTTP, with tools that only read', ['--read-only']],
  ])('waystation mcp config prints what connects %s', async (_, words) => {
    const { api_key } = await service.signUp()
    const printed = Bun.spawn(['node', join(root, 'cli/waystation.mjs'), 'mcp', 'config', ...words], {
      cwd: tmpdir(),
      env: { PATH: process.env.PATH ?? '', WAYSTATION_URL: service.url, WAYSTATION_KEY: api_key },
      stderr: 'pipe',
    })
    const { mcpServers } = JSON.parse(await new Response(printed.stdout).text())
    const { url, headers, ...stdio } = mcpServers.waystation
    const transport = url
      ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
      : new StdioClientTransport({ ...stdio, cwd: tmpdir() })
    const client = clientOf('auto')
    await client.connect(transport)
    const reading = ready_tools.filter(({ listed }) => listed.annotations.readOnlyHint)
    const expected = words.includes('--read-only') ? reading : ready_tools
    expect((await client.listTools()).tools).toHaveLength(expected.length)
    await client.close()
  })

  test('the call that README prints is answered', async () => {
    const { api_key } = await service.signUp()
    await service.ask('PUT', '/v1/kv/state/last-run', { key: api_key, body: { value: { rows: 42 } } })
    const section = textOf('README.md').split('## The same over MCP\n')[1]!
    const [, call] = /```sh\n([\s\S]*?)```/.exec(section)!
    const shell = Bun.spawn(['bash', '-c', call!], {
      env: { PATH: process.env.PATH ?? '', BASE: service.url, AGENT_KEY: api_key },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const { result } = JSON.parse(await new Response(shell.stdout).text())
    expect(await shell.exited).toBe(0)
    expect(result.structuredContent.items).toMatchObject([{ key: 'last-run', version: 1 }])
  })
})
