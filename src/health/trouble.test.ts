// A service whose disk is nearly full, or whose file is damaged, as its clients and its operator meet it.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { databaseFolder } from '../../test/support/folders.ts'
import { until } from '../../test/support/patience.ts'
import { type Answer, cron_secret, TestService, type TestTenant } from '../../test/support/service.ts'

const gib = 1_073_741_824
let folder: string
let file: string
let service: TestService
let tenant: TestTenant

beforeEach(async () => {
  folder = databaseFolder()
  file = join(folder, 'test.db')
  service = new TestService({ DISK_RESERVE: String(gib), SECRET_KEY: 'one that outlives the node' })
  service.space = { free: 2 * gib, total: 100 * gib }
  await service.start(`sqlite:${file}`)
  tenant = await service.signUp()
})

afterEach(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const ask = (method: string, path: string, body?: unknown) =>
  service.ask(method, path, { key: tenant.api_key, ...(body === undefined ? {} : { body }) })
const refusal = ({ status, body, headers }: Answer) => [
  status,
  body.error?.code,
  body.error?.details,
  headers.get('retry-after'),
]

describe('While the disk is nearly full', () => {
  test('what grows is 507 with Retry-After, everything else goes on, and /readyz says why it is 503', async () => {
    await ask('PUT', '/v1/kv/state/there', { value: 'abc' })
    const letter = (await ask('POST', '/v1/dlq', { payload: 1, error: 'e' })).body.id
    const inbox = (await ask('POST', '/api/webhook', {})).body.data
    const expired = (await ask('POST', '/api/webhook', { ttl: 60 })).body.data
    service.clock.advance(60_000)
    const counter = { key: 'k', limit: 5, windowSeconds: 60 }
    await ask('POST', '/api/rate-limit/check', counter)
    const question = { title: 't', prompt: 'p', callback_url: 'http://127.0.0.1:1/' }
    const { id } = (await ask('POST', '/v1/checkpoints', question)).body
    service.space!.free = 1_000_000
    await service.app.db.maintain()

    const nearly_full = [503, 'UNAVAILABLE', { reason: 'the disk is nearly full' }, '1']
    expect(refusal(await service.ask('GET', '/readyz'))).toEqual(nearly_full)
    const body = { name: crypto.randomUUID().slice(0, 20), owner_email: 'owner@example.com' }
    const refused = [
      await service.ask('POST', '/v1/tenants', { body }),
      await ask('PUT', '/v1/kv/state/new', { value: 1 }),
      await ask('PUT', '/v1/kv/state/there', { value: 'abcd' }),
      await ask('POST', '/v1/audit', { action: 'a' }),
      await ask('POST', '/v1/dlq', { payload: 1, error: 'e' }),
      await ask('POST', '/v1/checkpoints', question),
      await ask('POST', '/api/webhook', {}),
      await ask('POST', '/api/rate-limit/check', { ...counter, key: 'new' }),
      await service.ask('POST', `/hook/${inbox.token}`, { body: 'x' }),
    ]
    expect(refused.map(refusal)).toEqual(refused.map(() => [507, 'STORAGE_FULL', undefined, '1']))
    const stale = await ask('PUT', '/v1/kv/state/there', { value: 'abcd', cas_version: 9 })
    expect([stale.status, stale.body.error.code]).toEqual([409, 'VERSION_MISMATCH'])
    expect((await service.ask('POST', '/hook/unknown', { body: 'x' })).status).toBe(404)
    const gone = await service.ask('POST', `/hook/${expired.token}`, { body: 'x' })
    expect([gone.status, gone.body.error.code]).toEqual([410, 'INBOX_EXPIRED'])
    const done = [
      await ask('GET', '/v1/kv/state/there'),
      await ask('PUT', '/v1/kv/state/there', { value: 'xyz' }),
      await ask('POST', '/api/rate-limit/check', counter),
      await ask('POST', `/v1/dlq/${letter}/claim`, {}),
      await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key, body: {} }),
      await ask('DELETE', `/v1/dlq/${letter}`),
      await ask('DELETE', '/v1/kv/state/there'),
      await service.ask('POST', '/v1/tick', { key: cron_secret }),
    ]
    expect(done.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 204, 204, 200])

    service.space!.free = 2 * gib
    await service.app.db.maintain()
    expect((await service.ask('GET', '/readyz')).status).toBe(200)
    expect((await ask('PUT', '/v1/kv/state/new', { value: 1 })).status).toBe(200)
  })
})

test('While the disk is nearly full an answer is kept for no Idempotency-Key: a replay is 507, a redrive goes on', async () => {
  const inbox = (await ask('POST', '/api/webhook', { forwardUrl: 'http://127.0.0.1:1/' })).body.data
  await service.ask('POST', `/hook/${inbox.token}`, { body: 'x' })
  const read = async () => (await ask('GET', `/api/webhook/${inbox.id}`)).body.data.messages[0]
  await until(async () => (await read()).forward.status === 'failed')
  const letter = (await ask('POST', '/v1/dlq', { payload: 1, error: 'e' })).body.id
  const keyed = (path: string) =>
    service.ask('POST', path, { key: tenant.api_key, headers: { 'idempotency-key': 'once' } })
  const replay = `/api/webhook/${inbox.id}/messages/${(await read()).id}/replay`
  service.space!.free = 1_000_000
  await service.app.db.maintain()
  expect(refusal(await keyed(replay))).toEqual([507, 'STORAGE_FULL', undefined, '1'])
  expect((await keyed(`/v1/dlq/${letter}/redrive`)).status).toBe(200)
  expect((await keyed(`/v1/dlq/${letter}/redrive`)).headers.get('idempotent-replayed')).toBeNull()
  service.space!.free = 2 * gib
  await service.app.db.maintain()
  expect((await keyed(replay)).status).toBe(200)
  expect((await keyed(replay)).headers.get('idempotent-replayed')).toBe('true')
})

test('A disk that is nearly full, and one that has room again, are a line of the log each', async () => {
  const full = 'the disk is nearly full: what needs room is refused until there is some'
  const over = 'the disk has room again: everything is accepted'
  const said = () => service.logged.filter(({ message }) => [full, over].includes(message))
  service.space!.free = 1_000_000
  await until(() => said().length === 1)
  for (let i = 0; i < 3; i++) expect((await ask('PUT', '/v1/kv/state/new', { value: 1 })).status).toBe(507)
  service.clock.advance(90_000)
  service.space!.free = 2 * gib
  await until(() => said().length === 2)
  expect(said()).toEqual([
    { level: 'error', fields: { reason: 'the disk is nearly full' }, message: full },
    { level: 'info', fields: { lasted_ms: 90_000 }, message: over },
  ])
})

describe('A service on a damaged file', () => {
  test('starts, is not ready, answers what can be read, writes nothing, and says so in the log once', async () => {
    for (let i = 0; i < 300; i++) await ask('PUT', `/v1/kv/ns/k${i}`, { value: 'v'.repeat(3_000) })
    await service.app.stop()
    const bytes = readFileSync(file)
    const middle = Math.floor(bytes.length / 4_096 / 2)
    for (let page = middle; page < middle + 40; page++) bytes.fill(0xa5, page * 4_096, page * 4_096 + 64)
    writeFileSync(file, bytes)
    await service.start(`sqlite:${file}`)

    const damaged = [503, 'UNAVAILABLE', { reason: 'the database file is damaged' }, '1']
    expect(refusal(await service.ask('GET', '/readyz'))).toEqual(damaged)
    expect((await service.ask('GET', '/livez')).status).toBe(200)
    const unavailable = [503, 'UNAVAILABLE', undefined, '1']
    expect(refusal(await ask('PUT', '/v1/kv/ns/new', { value: 1 }))).toEqual(unavailable)
    expect(refusal(await ask('DELETE', '/v1/kv/ns/k1'))).toEqual(unavailable)
    const reads: number[] = []
    for (let i = 0; i < 300; i++) reads.push((await ask('GET', `/v1/kv/ns/k${i}`)).status)
    expect([...new Set(reads)].toSorted()).toEqual([200, 503])
    expect(reads.filter((status) => status === 200).length).toBeGreaterThan(100)
    const said = service.logged.filter(({ level }) => level === 'error')
    expect(said.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^THE DATABASE FILE IS DAMAGED/),
    ])
  })
})

describe('A service of which a file is removed or replaced while it runs', () => {
  const removed = (name: string) => `the file ${name} was removed or replaced while the service had it open`
  const said = () =>
    service.logged.filter(({ message }) => message.startsWith('A FILE OF THE DATABASE WAS REMOVED'))

  const ways: [what: string, name: string, lose: (path: string) => void][] = [
    ['removed', 'test.db', (path) => rmSync(path)],
    ['removed', 'test.db-wal', (path) => rmSync(path)],
    ['removed', 'test.db-shm', (path) => rmSync(path)],
    ['removed', 'test.db.lock', (path) => rmSync(path)],
    ['replaced', 'test.db', (path) => replaceByCopy(path)],
    ['removed with its folder', 'test.db', (path) => rmSync(join(path, '..'), { recursive: true })],
  ]
  test.each(ways)('%s: %s: it writes nothing more, reads, and says so once', async (_, name, lose) => {
    await ask('PUT', '/v1/kv/ns/there', { value: 1 })
    await service.app.db.maintain()
    expect((await service.ask('GET', '/readyz')).status).toBe(200)
    lose(join(folder, name))
    await until(() => said().length > 0)
    const unready = [503, 'UNAVAILABLE', { reason: removed(name) }, '1']
    expect(refusal(await service.ask('GET', '/readyz'))).toEqual(unready)
    const refused = [
      await ask('PUT', '/v1/kv/ns/there', { value: 2 }),
      await ask('DELETE', '/v1/kv/ns/there'),
    ]
    expect(refused.map(refusal)).toEqual(Array(2).fill([503, 'UNAVAILABLE', undefined, '1']))
    expect((await ask('GET', '/v1/kv/ns/there')).body.value).toBe(1)
    await service.app.db.maintain()
    expect(said().map(({ fields }) => fields)).toEqual([{ reason: removed(name) }])
  })

  test('on Linux: what it had acknowledged is in its open files', async () => {
    if (process.platform !== 'linux') return
    for (let i = 0; i < 100; i++) await ask('PUT', `/v1/kv/ns/k${i}`, { value: i })
    const open = new Map(
      readdirSync('/proc/self/fd').flatMap((fd) => {
        const path = linkOf(`/proc/self/fd/${fd}`)
        return path === file || path === `${file}-wal` ? [[path, `/proc/self/fd/${fd}`] as const] : []
      }),
    )
    rmSync(folder, { recursive: true })
    await until(() => said().length > 0)
    const copy = databaseFolder()
    try {
      for (const [path, link] of open) copyFileSync(link, join(copy, path.slice(folder.length)))
      const rescued = new TestService({ SECRET_KEY: 'one that outlives the node' })
      await rescued.start(`sqlite:${join(copy, 'test.db')}`)
      const { body } = await rescued.ask('GET', '/v1/kv/ns/k99', { key: tenant.api_key })
      await rescued.stop()
      expect(body.value).toBe(99)
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  })

  test('none of that is seen in files that grow, or in a file beside them', async () => {
    for (let i = 0; i < 50; i++) await ask('PUT', `/v1/kv/ns/k${i}`, { value: 'v'.repeat(10_000) })
    writeFileSync(join(folder, 'other'), '')
    rmSync(join(folder, 'other'))
    await service.app.db.maintain()
    expect([service.app.db.trouble(), existsSync(`${file}-wal`)]).toEqual([null, true])
  })
})

function replaceByCopy(path: string): void {
  copyFileSync(path, `${path}.copy`)
  renameSync(`${path}.copy`, path)
}

/** Null for what is closed meanwhile. */
function linkOf(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}
