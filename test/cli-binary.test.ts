// The one executable: server and CLI, with nothing else beside it.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tools } from '../mcp/tools.ts'
import { version } from '../src/version.ts'
import { Bench, follow, root } from './support/cli.ts'

const bench = new Bench()
afterAll(() => bench.clean())

test('the binary serves from an empty folder, is its own client, and drains at SIGTERM', async () => {
  const binary = join(bench.folder(), 'waystation')
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [bun, ...build] = (scripts['build:binary'] as string).split(' ')
  expect(bun).toBe('bun')
  const built = await bench.run([...build, '--outfile', binary], {}, { command: [process.execPath] })
  expect([built.code, existsSync(binary)]).toEqual([0, true])

  const cwd = bench.folder()
  const command = [binary]
  const told = await bench.run(['--version'], {}, { command, cwd })
  expect(told).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })

  const server = bench.start(['serve'], { PORT: '0' }, { command, cwd })
  const banner = await follow(server.stdout).until('first call')
  const url = /address +(\S+)/.exec(banner)![1]!
  expect(readdirSync(join(cwd, 'data')).toSorted()).toContain('waystation.db')

  const { port } = new URL(url)
  const second = await bench.run(['serve'], { PORT: port }, { command, cwd: bench.folder() })
  expect([second.code, second.stdout]).toEqual([1, ''])
  expect(second.stderr).toMatch(new RegExp(`^waystation: PORT: .*\\b${port}\\b.*\\n$`))

  const env = { XDG_CONFIG_HOME: bench.folder() }
  // Nothing of this folder may be read: one file would run, the other change the address.
  const hostile = bench.folder()
  writeFileSync(join(hostile, 'bunfig.toml'), 'preload = ["./owned.ts"]\n')
  writeFileSync(join(hostile, 'owned.ts'), 'process.exit(66)\n')
  writeFileSync(join(hostile, '.env'), 'WAYSTATION_URL=http://127.0.0.1:1\n')
  const here = { command, cwd: hostile }
  const steps: [args: string[], stdout: string][] = [
    [
      ['tenant', 'create', 'acme', '--email', 'a@example.com', '--save', 'admin', '--url', url],
      'tenant_id\tten_',
    ],
    [['agent', 'create', 'worker-1', '--save', 'worker'], 'agent_id\tworker-1\n'],
    [['kv', 'put', 'state', 'last-run', '{"rows": 42}'], 'namespace\tstate\n'],
    [['kv', 'get', 'state', 'last-run'], '{"rows": 42}\n'],
    [['health', '--verbose'], 'status\tready\n'],
  ]
  for (const [args, stdout] of steps) {
    const ended = await bench.run(args, env, here)
    expect([args, ended.code]).toEqual([args, 0])
    expect(ended.stdout).toStartWith(stdout)
  }

  // Files beside the sources of a checkout are in the executable: pages, the reference, the console, the MCP server.
  const pages: [path: string, has: RegExp][] = [
    ['/docs/reference', /<script src="[^"]+"/],
    ['/docs', /<h1 id="waystation">Waystation</],
    ['/docs/kv', /<h1 id="key-value-store">/],
    ['/docs/search.json', /"Key-value store"/],
    ['/docs/images/overview.png', /^\S*PNG/],
    ['/examples/agent.ts', /^\/\/ /],
    ['/docs/kv.md', /^# Key-value store\n/],
    ['/llms.txt', /^# Waystation\n/],
    ['/console', /<script [^>]*src="[^"]*assets\/[^"]+"/],
    ['/approve/chk_1', /<script [^>]*src="[^"]*assets\/[^"]+"/],
  ]
  for (const [path, has] of pages) {
    const answer = await fetch(url + path)
    const text = await answer.text()
    expect([path, answer.status, has.test(text)]).toEqual([path, 200, true])
    for (const [, asset] of text.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css))"/g)) {
      const { status } = await fetch(new URL(asset!, url))
      expect([asset, status]).toEqual([asset, 200])
    }
  }
  const stdin = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })}\n`
  const mcp = await bench.run(['--profile', 'worker', 'mcp'], env, { command, cwd, stdin })
  expect([mcp.code, JSON.parse(mcp.stdout).result.tools.length]).toEqual([0, tools.length])

  server.kill('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(await new Response(server.stderr).text()).toContain('"msg":"draining"')
  expect(readdirSync(join(cwd, 'data')).filter((file) => file.endsWith('-wal'))).toEqual([])
})
