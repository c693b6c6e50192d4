// Shows on this machine, by strace, that an answer leaves only after the fsync that covers it.
//
//   node_modules/.bin/bun scripts/fsync-order.ts                   must find every answer in order
//   node_modules/.bin/bun scripts/fsync-order.ts --plant-early     must find answers that left too early
//
// With --in-loop or --off-loop every flush runs in or off the event loop; without, the service decides.
//
// Every write carries a token of its own. In the trace of the server's system calls the token is first seen in a
// write to the write-ahead log, then an fdatasync (or fsync) of that file must have begun and returned, and only
// then may the token be seen in a write to a socket. Linux, and strace, which is not part of `npm ci`.

import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type ServerProcess, startServer } from '../test/support/server-process.ts'

const sequential = 1_000
const concurrent = 500
const at_once = 50
/** Longer than a page of SQLite's, so that no token is cut off. */
const shown_bytes = 6_000
/** How long a flush takes when the service is to be found answering before it. */
const planted_delay_us = 5_000
const calls =
  'write,writev,pwrite64,pwritev,pwritev2,send,sendto,sendmsg,sendmmsg,fsync,fdatasync,sync_file_range'

const plant = process.argv.includes('--plant-early')

if (process.argv.includes('--serve')) await serve()
else process.exit(await main())

async function main(): Promise<number> {
  if (!Bun.which('strace')) {
    console.error('strace is not on this machine: install it (apt-get install strace) and run this again')
    return 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'waystation-fsync-'))
  try {
    const trace = join(folder, 'trace')
    const server = await startServer(
      { DATABASE_URL: `sqlite:${join(folder, 'w.db')}`, DATA_DIR: folder, TICK: 'external' },
      // -D: the tracer is the grandchild, so that the signal to stop reaches the server.
      [
        'strace',
        '-D',
        '-f',
        '-y',
        '-s',
        String(shown_bytes),
        '-e',
        `trace=${calls}`,
        ...(plant ? ['-e', `inject=fdatasync,fsync:delay_enter=${planted_delay_us}`] : []),
        '-o',
        trace,
        ...command(),
      ],
    )
    const tokens = await load(server)
    await server.stop()
    await ended(trace, server.pid)
    return report(await judge(trace, tokens))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function command(): string[] {
  if (plant) {
    const planted = join(import.meta.dir, '../test/power-cuts/planted.ts')
    return [process.execPath, planted, 'answers before the flush']
  }
  const options = process.argv.slice(2)
  const entry =
    options.length > 0 ? [import.meta.path, '--serve', ...options] : [join(import.meta.dir, '../src/main.ts')]
  return [process.execPath, ...entry]
}

/** The service with one of the two flushes of the log. */
async function serve(): Promise<void> {
  const flush = process.argv.includes('--in-loop') ? 'inLoop: fdatasyncSync' : 'offLoop: promisify(fdatasync)'
  Bun.plugin({
    name: 'one flush',
    setup(build) {
      build.onLoad({ filter: /sqlite-flush\.ts$/ }, ({ path }) => {
        const own = readFileSync(path, 'utf8')
        const contents = own.replace(
          '{ inLoop: fdatasyncSync, offLoop: promisify(fdatasync) }',
          `{ ${flush} }`,
        )
        if (contents === own) throw new Error('the flush could not be replaced')
        return { contents, loader: 'ts' }
      })
    },
  })
  process.argv.splice(2)
  const { serveFromEnvironment } = await import('../src/serve.ts')
  await serveFromEnvironment()
}

/** Sends the writes; returns the token of each. */
async function load({ url }: ServerProcess): Promise<string[]> {
  const json = { 'content-type': 'application/json' }
  const create = async (path: string, body: object, key = '') => {
    const headers = key ? { ...json, authorization: `Bearer ${key}` } : json
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await response.json()) as { admin_key: string; api_key: string }
  }
  const { admin_key } = await create('/v1/tenants', { name: 'fsync-order', owner_email: 'owner@example.com' })
  const { api_key } = await create('/v1/agents', { name: 'writer' }, admin_key)
  const headers = { ...json, authorization: `Bearer ${api_key}` }
  // The planted service answers before the key is shown to readers.
  while (!(await fetch(`${url}/v1/agents/writer`, { headers })).ok) await Bun.sleep(10)

  const tokens: string[] = []
  const write = async () => {
    const n = tokens.length
    const token = `w${String(n).padStart(7, '0')}z`
    tokens.push(token)
    const response = await (n % 2 === 0
      ? fetch(`${url}/v1/kv/order/${token}`, { method: 'PUT', headers, body: `{"value": ${n}}` })
      : fetch(`${url}/v1/audit`, { method: 'POST', headers, body: `{"action": "${token}"}` }))
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    await response.text()
  }
  for (let i = 0; i < sequential; i++) await write()
  for (let i = 0; i < concurrent; i += at_once) await Promise.all(Array.from({ length: at_once }, write))
  return tokens
}

/** Waits until the tracer has written its last line. */
async function ended(trace: string, pid: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if (existsSync(trace) && readFileSync(trace, 'latin1').includes(`${pid} +++ exited`)) return
    await Bun.sleep(100)
  }
  throw new Error('strace did not finish')
}

interface Verdict {
  answers: number
  syncs: number
  /** Token and what was wrong with its answer. */
  early: string[]
}

/** Reads the trace once, in the order in which the calls were made. */
async function judge(trace: string, tokens: string[]): Promise<Verdict> {
  const waiting = new Set(tokens)
  /** Line at which a token was first written to the log. */
  const written = new Map<string, number>()
  const synced = new Set<string>()
  /** By thread: a sync that has begun, and its line. */
  const syncing = new Map<string, number>()
  const verdict: Verdict = { answers: 0, syncs: 0, early: [] }
  let line_number = 0

  for await (const line of createInterface({ input: createReadStream(trace, 'latin1') })) {
    line_number += 1
    const [, thread, call] = /^(\d+) +(?:<\.\.\. )?(\w+)/.exec(line) ?? []
    if (!thread || !call) continue
    if (call === 'fdatasync' || call === 'fsync') {
      const on_log = /\.db-wal>/.test(line)
      if (on_log) syncing.set(thread, line_number)
      if (/ = 0( \(DELAYED\))?$/.test(line) && syncing.has(thread)) {
        const began = syncing.get(thread)!
        syncing.delete(thread)
        verdict.syncs += 1
        for (const [token, at] of written) if (at < began) covered(token)
      }
    } else if (/\.db-wal>/.test(line)) {
      for (const [token] of line.matchAll(/w\d{7}z/g))
        if (!synced.has(token) && !written.has(token)) written.set(token, line_number)
    } else if (/^\d+ +\w+\(\d+<(socket|TCP)/.test(line) && line.includes('HTTP/1.1 2')) {
      for (const token of new Set(line.match(/w\d{7}z/g))) if (waiting.delete(token)) answered(token)
    }
  }
  for (const token of waiting) verdict.early.push(`${token}: its answer is not in the trace`)
  return verdict

  function covered(token: string): void {
    written.delete(token)
    synced.add(token)
  }

  function answered(token: string): void {
    verdict.answers += 1
    if (synced.has(token)) return
    verdict.early.push(`${token}: ${written.has(token) ? 'written, not yet synced' : 'not even written'}`)
  }
}

function report({ answers, syncs, early }: Verdict): number {
  const all = sequential + concurrent
  console.log(`${all - early.length} of ${all} answers left after the fsync that covers them`)
  console.log(
    `${sequential} writes one after the other, ${concurrent} in groups of ${at_once}; ${syncs} fsyncs of the log`,
  )
  for (const fault of early.slice(0, 5)) console.log(`  ${fault}`)
  if (plant) {
    const found = early.length > 0 && answers === all
    console.log(`answers before the flush were planted, and ${found ? '' : 'NOT '}found`)
    return found ? 0 : 1
  }
  return early.length === 0 ? 0 : 1
}
