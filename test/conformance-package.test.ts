// The conformance suite as people get it: packed, installed without a network, run by plain Node.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { version } from '../src/version.ts'
import { RunningClock } from './support/clock.ts'
import { finished } from './support/finished.ts'
import { cron_secret, TestService } from './support/service.ts'

/** Each run is a process. */
setDefaultTimeout(60_000)

const root = join(import.meta.dir, '..')
const folder = mkdtempSync(join(tmpdir(), 'waystation-conformance-'))
const project = join(folder, 'project')
const service = new TestService()
service.clock = new RunningClock()
let files: string[]

async function run(command: string[], cwd: string, environment: Record<string, string> = {}) {
  const binaries = [join(project, 'node_modules', '.bin'), join(root, 'node_modules', '.bin')]
  const child = Bun.spawn(command, {
    cwd,
    env: {
      ...process.env,
      PATH: [...binaries, process.env.PATH].join(delimiter),
      npm_config_cache: join(folder, 'cache'),
      npm_config_update_notifier: 'false',
      ...environment,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return finished(child)
}

const suite = (args: string[], environment?: Record<string, string>) =>
  run(['waystation-conformance', ...args], project, environment)

beforeAll(async () => {
  const source = join(folder, 'conformance')
  cpSync(join(root, 'conformance'), source, { recursive: true, filter: (path) => !path.endsWith('dist') })
  cpSync(join(root, 'node_modules', '@types'), join(folder, 'node_modules', '@types'), {
    recursive: true,
    dereference: true,
  })
  const installer = join('scripts', 'ensure-install.mjs')
  cpSync(join(root, installer), join(folder, installer))
  const packed = await run(['npm', 'pack', '--json', '--silent'], source)
  if (packed.exit_code !== 0) throw new Error(packed.stdout + packed.stderr)
  const [{ filename, files: listed }] = JSON.parse(packed.stdout)
  files = listed.map(({ path }: { path: string }) => path)
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"private": true}')
  const installed = await run(
    ['npm', 'install', join(source, filename), '--offline', '--no-audit', '--no-fund'],
    project,
  )
  if (installed.exit_code !== 0) throw new Error(installed.stdout + installed.stderr)
  await service.start('sqlite::memory:')
}, 300_000)
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('the package has the version of the service, and depends on nothing', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'conformance', 'package.json'), 'utf8'))
  expect(manifest.version).toBe(version)
  expect(Object.keys(manifest).filter((name) => /dependencies/i.test(name))).toEqual([])
  expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
    'waystation-conformance',
  ])
  expect(files.filter((path) => !path.startsWith('dist/')).toSorted()).toEqual([
    'LICENSE',
    'README.md',
    'package.json',
  ])
  expect(files).toContain('dist/chapters/kv.js')
})

test('under Node it passes, and prints a report that machines read', async () => {
  const { exit_code, stdout, stderr } = await suite(
    [service.url, '--json', '--only', 'kv.', '--only', 'attempts.fires'],
    {
      CONFORMANCE_CRON_SECRET: cron_secret,
    },
  )
  expect([stderr, exit_code]).toEqual(['', 0])
  const report = JSON.parse(stdout)
  expect(report).toMatchObject({ suite_version: version, url: service.url, failed: 0 })
  expect(report.passed).toBeGreaterThan(20)
  expect(report.results.find(({ name }: { name: string }) => name === 'kv.cas')).toMatchObject({
    outcome: 'passed',
    reason: null,
    calls: [],
  })
  expect(report.operations['PUT /v1/kv/{namespace}/{key}']).toContain(200)
  expect(report.codes).toContain('VERSION_MISMATCH')
})

test('a failure shows the check, its sentence and its calls without a key in clear, and exits with 1', async () => {
  const broken = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { origin } = new URL(request.url)
      const body = request.method === 'POST' ? await request.text() : null
      const headers = new Headers(request.headers)
      headers.delete('host')
      const answer = await fetch(service.url + request.url.slice(origin.length), {
        method: request.method,
        headers,
        body,
      })
      return new Response((await answer.text()).replace('"status":"active"', '"status":"new"'), answer)
    },
  })
  const { exit_code, stdout } = await suite([broken.url.origin, '--only', 'tenants.create'])
  await broken.stop(true)
  expect(exit_code).toBe(1)
  expect(stdout).toContain('FAILED tenants.create\n  POST /tenants answers 201')
  expect(stdout).toContain('svc_adm_****')
  expect(stdout).not.toMatch(/svc_\w+_[0-9A-Za-z]{38}|whsec_[A-Za-z0-9+/]{20}/)
})

test('given tenants are used instead of a sign-up, and what needs its own is not run', async () => {
  const [one, two] = [await service.signUp('pro'), await service.signUp('pro')]
  const CONFORMANCE_TENANTS = [one, two].map(({ tenant_id, admin_key }) => `${tenant_id}:${admin_key}`).join()
  const only = ['--only', 'isolation.', '--only', 'tenants.rotate-key']
  const { exit_code, stdout } = await suite([service.url, ...only], { CONFORMANCE_TENANTS })
  expect(exit_code).toBe(0)
  expect(stdout).toContain('NOT RUN\n  needs a tenant of its own, and tenants were given:\n')
  expect((await suite([service.url, '--strict', ...only], { CONFORMANCE_TENANTS })).exit_code).toBe(1)
})

test('wrong options exit with 2 and say which, a service that does not answer with 3', async () => {
  for (const args of [
    [],
    ['nowhere'],
    [service.url, '--unknown'],
    [service.url, '--tenant', 'x'],
    [service.url, '--at-once', '0'],
    [service.url, '--profile', 'ours'],
    [service.url, '--only', 'no-such-check'],
    [service.url, '--profile', 'documents', '--only', 'kv.cas'],
    [service.url, '--listen', '127.0.0.1:99999'],
    [service.url, '--receiver-url', 'nowhere'],
    [service.url, '--timeout', 'soon'],
    [service.url, '--cron-secret', 'another-secret'],
    [service.url, '--tenant', 'ten_1:svc_adm_wrong'],
  ]) {
    const { exit_code, stderr } = await suite(args)
    expect([args, exit_code]).toEqual([args, 2])
    expect(stderr).toContain('Usage: waystation-conformance <url>')
  }
  expect((await suite(['http://127.0.0.1:9'])).exit_code).toBe(3)
})

test('a service that only says it is away is asked once, and the run ends with 3', async () => {
  let asked = 0
  const away = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch: () => {
      asked += 1
      const error = { code: 'UNAVAILABLE', message: 'Away.', request_id: 'req_1' }
      return Response.json({ error }, { status: 503, headers: { 'retry-after': '1' } })
    },
  })
  const { origin } = away.url
  const ended = await suite([origin, '--no-receiver', '--only', 'kv.cas'])
  await away.stop(true)
  expect([ended.exit_code, ended.stdout, asked]).toEqual([3, '', 1])
  expect(ended.stderr).toBe(
    `${origin}: it answers the first request with 503 UNAVAILABLE: nothing more is sent\n`,
  )
})

test('a service that hangs, or ends its answers early, fails the check within the time-out', async () => {
  let answered = 0
  const hanging = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      answered += 1
      if (answered === 1) socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}')
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n{')
    })
  })
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve))
  const { port } = hanging.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const args = ['--timeout', '0.2', '--json', '--no-receiver', '--only', 'paths.options']
  const { exit_code, stdout } = await suite([url, ...args])
  hanging.close()
  const report = JSON.parse(stdout)
  expect([exit_code, report.passed]).toEqual([1, 0])
  const reasons: string[] = report.results.map(({ reason }: { reason: string }) => reason)
  expect(reasons.filter((reason) => reason.includes('no answer within 0.2 s')).length).toBeGreaterThan(0)
  // A service that left ten requests unanswered gets no more.
  expect(reasons.filter((reason) => reason.includes('nothing more is sent')).length).toBeGreaterThan(0)
})

test('a run in which no check was possible does not pass', async () => {
  const args = ['--no-receiver', '--only', 'attempts.gone']
  const { exit_code, stdout } = await suite([service.url, ...args])
  expect([exit_code, stdout]).toEqual([1, expect.stringContaining('0 passed, 0 failed, 1 not run')])
})

test('a report is in the order of the list, and each result says its profile', async () => {
  const only = ['--only', 'kv.cas', '--only', 'core.kv', '--only', 'checkpoints.null-callback']
  const named = async (...more: string[]) => {
    const { stdout } = await suite([service.url, '--json', ...only, ...more])
    const { profile, results } = JSON.parse(stdout)
    return [profile, results.map((one: { name: string; profile: string }) => [one.name, one.profile])]
  }
  const core = ['core.kv', 'core.kv-rules', 'core.kv-cas', 'core.kv-if-match'].map((name) => [
    name,
    'documents',
  ])
  const kv = ['kv.cas', 'kv.cas-race', 'kv.cas_version'].map((name) => [name, 'contract'])
  const addition = ['checkpoints.null-callback', 'extensions']
  expect(await named('--profile', 'documents')).toEqual(['documents', core])
  expect(await named()).toEqual(['contract', [...core, ...kv]])
  expect(await named('--profile', 'extensions')).toEqual(['extensions', [...core, ...kv, addition]])
})

test('it lists its checks, and its help has every option that it takes', async () => {
  const { stdout } = await suite(['--list'])
  expect(stdout).toContain('kv.cas\n  With cas_version a put applies only if')
  const help = await suite(['--help'])
  expect(help.exit_code).toBe(0)
  const readme = readFileSync(join(root, 'conformance', 'README.md'), 'utf8')
  for (const [option] of readme.matchAll(/--[a-z-]{3,}/g)) expect(help.stdout).toContain(option)
})
