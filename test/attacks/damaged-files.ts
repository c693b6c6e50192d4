import { chmodSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Attack, Lab } from './lib/lab.ts'
import { statusOf } from './lib/service.ts'

const keys = 300
const page_bytes = 4_096
const every_page = 10
const damage_bytes = 40
/** A page with more of the stored values than this belongs to the keys: tables that every start reads stay whole. */
const value_bytes_least = 1_000
const nobody = '65534'
const starts_ms_max = 6_000

export const damagedFiles: Attack = {
  name: 'damaged-files',
  about: 'starts the service on a database with flipped bytes, and on one that it may not write',
  engines: ['sqlite'],
  seconds_max: 60,
  async run(lab) {
    const place = await lab.place()
    const first = await lab.service(place)
    const tenant = await lab.tenant(first)
    for (let i = 0; i < keys; i++) await tenant.ask('PUT', `/v1/kv/ns/k${i}`, { value: 'v'.repeat(3_000) })
    for (let i = 0; i < keys; i++) {
      await tenant.ask('POST', '/v1/audit', { action: 'x', metadata: { a: 'b'.repeat(500) } })
    }
    await first.stop()
    await flippedBytes(lab, place.folder, tenant.headers)
    await readOnly(lab, place.folder)
  },
}

/** The service may refuse to start, or say that it is not ready once it has met the damage; it never serves as ready. */
async function flippedBytes(lab: Lab, original: string, headers: Record<string, string>): Promise<void> {
  const place = copied(lab, original)
  flip(join(place.folder, 'waystation.db'))
  const service = await started(lab, place)
  if (typeof service === 'string') {
    lab.check('a damaged database is refused', /damage|corrupt|malformed/i.test(service), service)
    return
  }
  let failed = 0
  for (let i = 0; i < keys; i++) {
    const answer = await fetch(`${service.url}/v1/kv/ns/k${i}`, { headers })
    await answer.text()
    if (answer.status >= 500) failed += 1
  }
  const ready = await statusOf(`${service.url}/readyz`)
  const note = `${failed} of ${keys} reads failed, /readyz ${ready}`
  lab.check('a damaged database is not ready', ready !== 200, note)
  const put = await fetch(`${service.url}/v1/kv/ns/new`, {
    ...{ method: 'PUT', headers: { ...headers, 'content-type': 'application/json' }, body: '{"value":1}' },
  }).catch(() => null) // the process may end instead
  await put?.text()
  const refused = put === null || put.status >= 500
  lab.check('a damaged database is not written', refused, `the put answers ${put?.status}`)
}

async function readOnly(lab: Lab, original: string): Promise<void> {
  const place = copied(lab, original)
  const files = readdirSync(place.folder)
  for (const file of files)
    chmodSync(join(place.folder, file), file.startsWith('waystation.db') ? 0o400 : 0o600)
  let wrap: string[] = []
  if (process.getuid?.() === 0) {
    if (!Bun.which('setpriv'))
      return void lab.skip('a database that may not be written', 'setpriv is not installed')
    Bun.spawnSync(['chown', '-R', nobody, place.folder])
    wrap = ['setpriv', '--reuid', nobody, '--regid', nobody, '--clear-groups']
  }
  const service = await started(lab, { ...place, wrap, env: { HOME: place.folder } })
  if (typeof service === 'string') {
    lab.check(
      'a database that may not be written is refused',
      /read|write|permission/i.test(service),
      service,
    )
    return
  }
  const ready = await statusOf(`${service.url}/readyz`)
  lab.check('a database that may not be written is refused', false, `it serves, /readyz ${ready}`)
}

/** The service, or what it said when it did not become ready. */
async function started(lab: Lab, options: Parameters<Lab['spawn']>[0]): Promise<{ url: string } | string> {
  const { child, said, printed } = await lab.spawn(options)
  const began = performance.now()
  while (performance.now() - began < starts_ms_max) {
    const url = /address +(\S+)/.exec(printed())?.[1]
    if (url) return { url }
    if (child.exitCode !== null) return said().trim()
    await Bun.sleep(20)
  }
  return `not ready after ${starts_ms_max} ms`
}

function copied(lab: Lab, original: string): { folder: string; database_url: string } {
  const folder = lab.folder()
  cpSync(original, folder, { recursive: true })
  return { folder, database_url: `sqlite:${join(folder, 'waystation.db')}` }
}

/** Bytes at the beginning of every tenth page of values, where SQLite keeps what is on it. */
function flip(file: string): void {
  const noise = Buffer.from(Array.from({ length: damage_bytes }, (_, i) => (i * 97 + 13) % 256))
  const bytes = readFileSync(file)
  let values = 0
  for (let at = page_bytes; at < bytes.length; at += page_bytes) {
    const page = bytes.subarray(at, at + page_bytes)
    const is_values = page.reduce((count, byte) => count + Number(byte === 118), 0) > value_bytes_least
    if (is_values && values++ % every_page === 0) noise.copy(page)
  }
  writeFileSync(file, bytes)
}
