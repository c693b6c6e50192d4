// The SDK as people get it: packed, installed without a network, run by Node and Bun, checked by a strict compiler.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { version } from '../src/version.ts'
import { type Finished, finished } from './support/finished.ts'
import { forEachService } from './support/service.ts'

const root = join(import.meta.dir, '..')
const binaries = join(root, 'node_modules', '.bin')
const folder = mkdtempSync(join(tmpdir(), 'waystation-sdk-'))
const project = join(folder, 'project')
const installed = join(project, 'node_modules', 'waystation')
const without_crypto = 'data:text/javascript,delete globalThis.crypto'
let packed: { files: { path: string }[]; filename: string }

async function run(
  command: string[],
  cwd: string,
  environment: Record<string, string> = {},
): Promise<Finished> {
  const child = Bun.spawn(command, {
    cwd,
    env: {
      ...process.env,
      PATH: [binaries, process.env.PATH].join(delimiter),
      npm_config_cache: join(folder, 'cache'),
      npm_config_update_notifier: 'false',
      ...environment,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return finished(child)
}

async function outputOf(
  command: string[],
  cwd: string,
  environment?: Record<string, string>,
): Promise<string> {
  const { exit_code, stdout, stderr } = await run(command, cwd, environment)
  if (exit_code !== 0) throw new Error(`${command.join(' ')} ended with ${exit_code}: ${stdout}${stderr}`)
  return stdout
}

beforeAll(async () => {
  const source = join(folder, 'sdk')
  cpSync(join(root, 'sdk'), source, { recursive: true, filter: (path) => !path.endsWith('dist') })
  const installer = join('scripts', 'ensure-install.mjs')
  cpSync(join(root, installer), join(folder, installer))
  packed = JSON.parse(await outputOf(['npm', 'pack', '--json', '--silent'], source))[0]
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{"private": true, "type": "module"}')
  const tarball = join(source, packed.filename)
  await outputOf(['npm', 'install', tarball, '--offline', '--no-audit', '--no-fund'], project)
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('The packed SDK', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'sdk', 'package.json'), 'utf8'))

  test('has the version of the service, and depends on nothing', () => {
    expect(manifest.version).toBe(version)
    expect(Object.keys(manifest).filter((name) => /dependencies/i.test(name))).toEqual([])
    expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'waystation',
    ])
  })

  test('holds each module with its types, README and LICENSE, and nothing else', () => {
    const modules = readdirSync(join(root, 'sdk', 'src')).map((file) => file.replace(/\.ts$/, ''))
    expect(packed.files.map(({ path }) => path).toSorted()).toEqual(
      [
        ...modules.flatMap((name) => [`dist/${name}.js`, `dist/${name}.d.ts`]),
        ...['LICENSE', 'README.md', 'package.json'],
      ].toSorted(),
    )
    const [license, of_root] = ['sdk/LICENSE', 'LICENSE'].map((file) =>
      readFileSync(join(root, file), 'utf8'),
    )
    expect(license).toBe(of_root!)
  })

  test('imports its own modules only, and asks for nothing that browsers lack', () => {
    const modules = readdirSync(join(installed, 'dist')).filter((file) => file.endsWith('.js'))
    const imported = modules.flatMap((file) =>
      [...readFileSync(join(installed, 'dist', file), 'utf8').matchAll(/\bfrom '([^']+)'/g)].map(
        ([, from]) => from!,
      ),
    )
    expect(imported.length).toBeGreaterThan(20)
    expect(imported.filter((from) => !/^\.\/[\w-]+\.js$/.test(from))).toEqual([])
  })
})

describe('A bundler', () => {
  const textOf = (file: string) => readFileSync(join(installed, 'dist', file), 'utf8')

  test('leaves the one import at run time alone, and meets no helper of the compiler', () => {
    const texts = readdirSync(join(installed, 'dist')).flatMap((file) =>
      file.endsWith('.js') ? [textOf(file)] : [],
    )
    const imports = texts.flatMap((text) => text.match(/\bimport\(.*/g) ?? [])
    expect(imports).toHaveLength(1)
    expect(imports[0]).toContain('/* webpackIgnore: true */')
    expect(imports[0]).toContain('/* @vite-ignore */')
    // Of rollup each one is a warning, and terser makes a wrong import of that for file names.
    expect(texts.filter((text) => /\bthis && this\.__/.test(text))).toEqual([])
    for (const helper of new Set(texts.flatMap((text) => text.match(/\b__\w+(?=\()/g) ?? [])))
      expect(texts.join('\n')).toContain(`function ${helper}(`)
  })

  test('of React Native meets no import at run time, which Metro refuses: a file without it stands there', () => {
    const { 'react-native': instead } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    const importing = readdirSync(join(installed, 'dist')).filter(
      (file) => file.endsWith('.js') && /\bimport\(/.test(textOf(file)),
    )
    expect(Object.keys(instead ?? {})).toEqual(importing.map((file) => `./dist/${file}`))
    const exported = (file: string) =>
      [...textOf(file).matchAll(/export .*\b(nodeCrypto)\b/g)].map(([, name]) => name)
    const files = Object.values(instead as Record<string, string>).map((path) => path.replace('./dist/', ''))
    expect(files.map(exported)).toEqual([['nodeCrypto']])
    expect(importing.map(exported)).toEqual([['nodeCrypto']])
  })

  test('that reads no exports, as Metro before 0.82, finds the same file by main', () => {
    const { main, exports } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    expect(main).toBe(exports['.'].default)
    expect(packed.files.map(({ path }) => `./${path}`)).toContain(main)
  })

  test('may make one small file of it that runs where a global crypto is missing', async () => {
    writeFileSync(
      join(project, 'app.mjs'),
      `import { Waystation } from 'waystation'
const fetch = async (_, { headers }) => Response.json({ id: 'log_1', action: headers['idempotency-key'] })
const { action } = await new Waystation({ url: 'http://service.test', fetch }).audit.append({ action: 'a' })
console.log(action.length)`,
    )
    const bundle = [
      process.execPath,
      'build',
      'app.mjs',
      '--target',
      'browser',
      '--minify',
      '--outfile',
      'out.mjs',
    ]
    await outputOf(bundle, project)
    expect(await outputOf(['node', '--import', without_crypto, 'out.mjs'], project)).toBe('36\n')
  }, 300_000)
})

describe('A strict TypeScript project', () => {
  const right = `
import {
  type AuditEntry, GiveUp, hasCode, RawJson, verifyCallback, Waystation, WaystationError, type WaystationOptions,
} from 'waystation'

declare const environment: Record<string, string | undefined>
export const options: WaystationOptions = { url: 'http://x', key: environment.KEY, agent_id: environment.AGENT_ID }
export const client = new Waystation({ ...options, fetch, timeout_ms: undefined })
export const signal = AbortSignal.timeout(1000)
declare const maybe: Record<
  'verbose' | 'wait' | 'wait_seconds' | 'if_version' | 'timeout_ms' | 'retries' | 'signal' | 'lock_seconds', undefined
>

export async function right(request: Request): Promise<void> {
  const entry = await client.kv.get<{ rows: number }>('state', 'run', { signal })
  const rows: number = entry.value.rows
  await client.kv.put('state', 'run', new RawJson('1e400'), { cas_version: entry.version, ttl_seconds: undefined })
  await client.kv.update<number>('state', 'n', (n) => (n ?? 0) + rows)
  const updated = await client.kv.update('state', 'n', (n = 0) => n + rows)
  const before: number | undefined = updated && 'value' in updated ? updated.value : undefined
  void before
  await client.kv.update('state', 'all', async ({ sum } = { sum: 0 }) => (sum > 9 ? undefined : { sum: sum + rows }))
  await client.kv.update<string[]>('state', 'names', (names = [], entry) => [...names, String(entry?.version)])
  await client.kv.update('state', 'any', (value) => (typeof value === 'number' ? value + 1 : 1), { tries: 3 })
  await client.kv.update('state', 'any', () => 1)
  const entries: AuditEntry[] = []
  for await (const found of client.audit.list({ workflow_id: 'w', limit: 10, signal })) entries.push(found)
  const { next_cursor } = await client.audit.list().page()
  client.audit.list({ cursor: next_cursor ?? undefined })
  await client.dlq.work(async (item, { signal }) => {
    const error: string = item.error
    if (signal.aborted) throw new GiveUp(error)
  }, { concurrency: 4, signal })
  const checked = await client.rateLimit.check('mail', { limit: 10, windowSeconds: 60 })
  if (!checked.allowed) { const seconds: number = checked.retryAfter; void seconds }
  for await (const message of client.inboxes.messages('inb_1', { follow: true })) {
    const type: string | undefined = message.headers['content-type']
    void type
  }
  const checkpoint = await client.checkpoints.waitFor('chk_1', maybe)
  await client.health.ready(maybe)
  await client.kv.get('state', 'run', maybe)
  await client.checkpoints.get('chk_1', maybe)
  await client.dlq.work(async () => {}, { ...maybe, on_error: async (error) => void error })
  switch (checkpoint.status) { case 'approved': case 'rejected': break; case 'pending': case 'expired': case 'cancelled': }
  const { body } = await verifyCallback<{ n: number }>(request, ['whsec_a', 'whsec_b'], { tolerance_seconds: 60 })
  const n: number = body.n
  void n
  try {
    await client.agents.create({ name: 'worker', description: undefined }, { idempotency_key: 'k' })
  } catch (error) {
    if (hasCode(error, 'AGENT_ID_TAKEN')) { const code: 'AGENT_ID_TAKEN' = error.code; void code }
    if (error instanceof WaystationError) { const id: string | null = error.request_id; void id }
  }
}
`
  const wrong = [
    'new Waystation({})',
    "new Waystation({ url: 'http://x', keys: 'k' })",
    "client.kv.get('state')",
    "client.kv.put('state', 'k')",
    "client.kv.put('state', 'k', 1, { ttl: 5 })",
    "client.kv.put('state', 'k', 1, { idempotency_key: 'x' })",
    "client.tenants.delete('ten_1')",
    "client.tenants.delete('ten_1', { confirm: 'yes' })",
    "client.tenants.create({ name: 'x', owner_email: 'y', plan: 7 })",
    'client.agents.create({})',
    "client.audit.append({ action: 'a', metadata: 'text' })",
    "client.audit.list({ status: 'failed' })",
    "client.dlq.create({ error: 'no payload' })",
    "client.dlq.list({ status: 'pending' })",
    "client.dlq.claim('dlq_1', { lock_token: 'x' })",
    "client.dlq.work(() => {}, { concurrency: '4' })",
    "client.schedules.create({ callback_url: '/', callback_payload: 1 })",
    "client.schedules.update('sch_1', { status: 'fired' })",
    "client.checkpoints.create({ title: 't', callback_url: '/', timeout_action: 'approve' })",
    "client.rateLimit.check('k', { limit: 1 })",
    "client.rateLimit.check('k', { limit: 1, window_seconds: 60 })",
    "client.rateLimit.check('k', { limit: 1, windowSeconds: 1 }).then((r) => r.retryAfter.toFixed())",
    "client.kv.update('state', 'n', (n = 0) => n.toUpperCase())",
    "client.kv.update('state', 'n', (n = 0) => `${n}`)",
    "client.kv.update<number>('state', 'n', (n) => `${n}`)",
    "client.kv.update('state', 'n', (n = 0) => n + 1, { ttl: 5 })",
    "client.kv.get<string>('state', 'k').then(({ value }) => value.toFixed())",
    "client.kv.get('state', 'k').then(({ value }) => value.rows)",
    'client.dlq.claimOldest().then((item) => item.id)',
    "hasCode(new Error(), 'NO_SUCH_CODE')",
    "verifyCallback(new Request('http://x'))",
  ]
  /** Tells the compiler that the next line is wrong. Put together, because our own code must not contain it. */
  const expected_error = ['// @ts', 'expect', 'error'].join('-')

  async function compile(
    name: string,
    text: string,
    lib = ['es2022', 'dom', 'dom.asynciterable'],
  ): Promise<Finished> {
    const place = join(project, name)
    mkdirSync(place)
    writeFileSync(join(place, 'consumer.ts'), text)
    const options = {
      ...{ target: 'es2022', module: 'nodenext', moduleResolution: 'nodenext', lib },
      ...{ types: [], strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
      ...{ skipLibCheck: false, noEmit: true },
    }
    writeFileSync(
      join(place, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files: ['consumer.ts'] }),
    )
    return run([join(binaries, 'tsc'), '-p', place], place)
  }

  test('takes every right use, and no wrong one', async () => {
    const text = `${right}\n${wrong.map((use) => `${expected_error}\nvoid (${use})\n`).join('')}`
    expect(await compile('uses', text)).toEqual({ exit_code: 0, stdout: '', stderr: '' })
  }, 300_000)

  test('would be told of a use that is not wrong', async () => {
    const { exit_code, stdout } = await compile(
      'control',
      `${right}\n${expected_error}\nvoid client.tick()\n`,
    )
    expect(exit_code).not.toBe(0)
    expect(stdout).toContain('TS2578')
  }, 300_000)

  test('needs of the environment only what the types of Node 18 have', async () => {
    // As there: no Crypto, and a RequestInit without cache.
    const text = `
declare global {
  interface AbortSignal { readonly aborted: boolean; readonly reason: unknown }
  interface Headers { get(name: string): string | null }
  interface Request { readonly headers: Headers; readonly bodyUsed: boolean }
  interface RequestInit { method?: string; body?: string; signal?: AbortSignal | null; redirect?: 'manual' }
  interface Response { readonly status: number; text(): Promise<string> }
}
import { verifyCallback, Waystation } from 'waystation'
export const client = new Waystation({ url: 'http://x' })
export const { event }: { event: string | null } = await verifyCallback({ headers: {}, body: '' }, 'whsec_a')
`
    const compiled = await compile('node', text, ['es2022'])
    expect(compiled).toEqual({ exit_code: 0, stdout: '', stderr: '' })
  }, 300_000)

  test('resolves as bundlers do, too', async () => {
    const place = join(project, 'bundled')
    mkdirSync(place)
    writeFileSync(join(place, 'consumer.ts'), right)
    const flags = ['--module', 'preserve', '--moduleResolution', 'bundler', '--target', 'es2022', '--strict']
    const lib = [
      '--lib',
      'es2022,dom,dom.asynciterable',
      '--types',
      '',
      '--exactOptionalPropertyTypes',
      '--noEmit',
    ]
    const compiled = await run([join(binaries, 'tsc'), ...flags, ...lib, 'consumer.ts'], place)
    expect(compiled).toEqual({ exit_code: 0, stdout: '', stderr: '' })
  }, 300_000)
})

forEachService('The installed SDK', (service) => {
  const script = `
import { verifyCallback, Waystation, WaystationError } from 'waystation'

const { URL_OF_SERVICE: url, AGENT_KEY: key } = process.env
const client = new Waystation({ url, key })
await client.kv.put('state', 'run', { rows: 42 })
const { value } = await client.kv.get('state', 'run')
const updated = await client.kv.update('state', 'n', (n = 0) => n + 1)
for (const action of ['a', 'b', 'c']) await client.audit.append({ action })
const actions = []
for await (const entry of client.audit.list({ limit: 2 })) actions.push(entry.action)
await client.dlq.create({ payload: 'mend me', error: 'boom' })
const work = await client.dlq.work(() => {}, { stop_when_empty: true })
const refused = await client.kv.get('state', 'absent').catch((error) => error)
const forged = await verifyCallback(
  { headers: { 'webhook-id': '1', 'webhook-timestamp': '1000', 'webhook-signature': 'v1,x' }, body: '{}' },
  'whsec_c2VjcmV0',
  { now: 1_000_000 },
).catch(({ reason }) => reason)
const code = refused instanceof WaystationError ? refused.code : String(refused)
console.log(JSON.stringify({ value, version: updated.version, actions, work, code, forged }))
`
  const expected = {
    value: { rows: 42 },
    version: 1,
    actions: ['c', 'b', 'a'],
    work: { resolved: 1, released: 0, failed: 0, lost: 0 },
    code: 'KEY_NOT_FOUND',
    forged: 'no_match',
  }

  test.each([
    ['Node', ['node']],
    ['a Node without global crypto, as 18 is', ['node', '--import', without_crypto]],
    ['Bun', [process.execPath]],
  ])(
    'works under %s',
    async (_, command) => {
      const { api_key } = await service.signUp()
      writeFileSync(join(project, 'smoke.mjs'), script)
      const environment = { URL_OF_SERVICE: service.url, AGENT_KEY: api_key }
      const printed = await outputOf([...command, 'smoke.mjs'], project, environment)
      expect(JSON.parse(printed)).toEqual(expected)
    },
    300_000,
  )

  test.each(['README.md', 'docs/sdk.md', 'sdk/README.md'])(
    'the five lines of %s run as printed',
    async (page) => {
      const { api_key } = await service.signUp()
      const [, lines] = /```ts\n(import [\s\S]*?)```/.exec(readFileSync(join(root, page), 'utf8'))!
      expect(lines!.trim().split('\n')).toHaveLength(5)
      expect(lines).toContain("'http://127.0.0.1:8420'")
      writeFileSync(join(project, 'first.mjs'), lines!.replace('http://127.0.0.1:8420', service.url))
      const printed = await outputOf(['node', 'first.mjs'], project, { AGENT_KEY: api_key })
      expect(printed).toContain("key: 'last-run',\n  value: { rows: 42 },\n  version: 1,")
    },
    300_000,
  )
})

test('npm pack leaves no file that git sees', () => {
  const made = ['sdk/dist/index.js', `waystation-${version}.tgz`, `sdk/waystation-${version}.tgz`]
  const { stdout } = Bun.spawnSync(['git', 'check-ignore', ...made], { cwd: join(import.meta.dir, '..') })
  expect(stdout.toString().trim().split('\n')).toEqual(made)
})
