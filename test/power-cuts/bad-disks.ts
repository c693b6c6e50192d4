// A real process on a disk that fails, and on one that does not answer.

import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../support/server-process.ts'
import { cut, record } from './replay.ts'

/** Of each thread, which is how strace counts. */
const failing_from = 60
const cuts = 60

/** From some flush on all of them fail: what was acknowledged until then is there, and the process has ended. */
export async function faultsOfFailing(seed: number): Promise<string[]> {
  const disk = [`fdatasync:error=EIO:when=${failing_from}+`]
  const recorded = await record({ clients: 8, turns: 200, seed, disk })
  const { lost } = await cut(recorded, { cuts, seed })
  if (recorded.answers === 0) lost.push('nothing was answered before')
  if (recorded.exit_code !== 1) lost.push(`the process ended with ${recorded.exit_code}, not 1`)
  return lost
}

/** So slow that flushes run off the event loop. */
const slow_ms = 5
const hanging_ms = 60_000
/** Past the five seconds after which the service says so. */
const hanging_at_least_ms = 5_500
const puts = 50

/** Until the disk answers again writes are refused, reads continue, and /readyz says so. */
export async function faultsOfHanging(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-hang-'))
  const control = join(folder, 'flush_ms')
  const flushTakes = (ms: number) => {
    writeFileSync(`${control}.new`, String(ms))
    renameSync(`${control}.new`, control)
  }
  flushTakes(slow_ms)
  const library = join(folder, 'disk.so')
  const compiled = Bun.spawnSync([
    ...['cc', '-shared', '-fPIC', '-o', library, join(import.meta.dir, 'disk.c'), '-ldl'],
  ])
  if (!compiled.success) return [`cc: ${compiled.stderr}`]
  const server = await startServer({
    DATABASE_URL: `sqlite:${join(folder, 'w.db')}`,
    DATA_DIR: folder,
    TICK: 'external',
    LD_PRELOAD: library,
    FLUSH_MS: control,
  })
  try {
    return await faultsWhile(server.url, flushTakes)
  } finally {
    flushTakes(0)
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function faultsWhile(url: string, flushTakes: (ms: number) => void): Promise<string[]> {
  const ask = async (method: string, path: string, key = '', body?: object) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    // biome-ignore lint/suspicious/noExplicitAny: each line below knows the shape of its answer
    return { status: response.status, body: (await response.json()) as any }
  }
  const tenant = { name: 'hangs', owner_email: 'owner@example.com' }
  const { admin_key } = (await ask('POST', '/v1/tenants', '', tenant)).body
  const { api_key } = (await ask('POST', '/v1/agents', admin_key, { name: 'writer' })).body
  const put = (value: number) => ask('PUT', '/v1/kv/state/key', api_key, { value })
  const get = async () => (await ask('GET', '/v1/kv/state/key', api_key)).body.value
  const ready = async () => (await ask('GET', '/readyz')).status

  for (let value = 1; value <= puts; value++) await put(value)
  flushTakes(hanging_ms)
  let is_answered = false
  const hanging = put(puts + 1).finally(() => {
    is_answered = true
  })
  await Bun.sleep(hanging_at_least_ms)
  const refused = await put(-1)
  const found = [is_answered, await ready(), refused.status, refused.body.error?.code, await get()]
  flushTakes(0)
  found.push((await hanging).status, await get(), await ready(), (await put(0)).status)
  const wanted = [false, 503, 503, 'UNAVAILABLE', puts, 200, puts + 1, 200, 200]
  return found.join() === wanted.join() ? [] : [`found ${found.join()}, not ${wanted.join()}`]
}
