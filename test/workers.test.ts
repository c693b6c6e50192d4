// A service of several processes behind one port, as its operator runs it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { forEachDatabase, onPostgres } from './support/databases.ts'
import { keepAliveLoad } from './support/keep-alive.ts'
import { Scraped } from './support/metrics.ts'
import { until } from './support/patience.ts'
import { count_lock_waits, dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { refusedStart, type ServerProcess, spawnServer, startServer } from './support/server-process.ts'

/** How often a service under load is ended, and by how many workers it is served. */
const stops = Number(process.env.WORKER_STOPS ?? 2)
const workers = Number(process.env.WORKER_COUNT ?? 2)
const clients = 32
/** A guard against an endless wait, not a measure. */
const stop_ms_max = 300_000
const sign_ups_max = 30

/** Each on a connection of its own, so that the system chooses the worker. */
function signUp(url: string): Promise<Response> {
  return fetch(`${url}/v1/tenants`, {
    method: 'POST',
    headers: { connection: 'close' },
    body: JSON.stringify({ name: `t-${crypto.randomUUID().slice(0, 13)}`, owner_email: 'o@example.com' }),
  })
}

onPostgres('WORKERS=2', () => {
  let database_url: string
  let data_dir: string
  beforeAll(async () => {
    database_url = await newPostgresDatabase()
    data_dir = mkdtempSync(join(tmpdir(), 'waystation-workers-'))
  })
  afterAll(async () => {
    rmSync(data_dir, { recursive: true, force: true })
    await dropPostgresDatabase(database_url)
  })
  const settings = () => ({ DATABASE_URL: database_url, DATA_DIR: data_dir, DATABASE_CONNECTIONS: '4' })
  const start = (environment: Record<string, string> = {}) =>
    startServer({ ...settings(), WORKERS: String(workers), ...environment })

  /** The processes of a service beside the one that was started. */
  function workersOf({ pid }: { pid: number }): number[] {
    return readdirSync('/proc')
      .map(Number)
      .filter((other) => Number.isInteger(other) && parentOf(other) === pid)
  }

  function parentOf(pid: number): number | null {
    try {
      return Number(
        readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) \S /s, '')
          .split(' ')[0],
      )
    } catch {
      return null // it has ended
    }
  }

  test('the metrics are the sums of all workers, on one listener of the first process', async () => {
    const service = await start({ METRICS: '127.0.0.1:0' })
    const url = /^ {2}metrics +(\S+)$/m.exec(service.banner)![1]!
    const scraped = async () => new Scraped(await (await fetch(url)).text())
    const asked = { route: '/livez', status: '200' }
    const count = 40
    for (let i = 0; i < count; i++) await fetch(`${service.url}/livez`, { headers: { connection: 'close' } }) // the system chooses the worker
    const first = await scraped()
    expect(first.sum('waystation_http_requests_total', asked)).toBe(count)
    expect(first.sum('waystation_workers')).toBe(workers)
    expect(first.sum('waystation_database_pool_connections')).toBe(workers * 4)
    process.kill(workersOf(service)[0]!, 'SIGKILL')
    await until(async () => {
      const now = await scraped()
      return now.sum('waystation_worker_restarts_total') === 1 && now.sum('waystation_workers') === workers
    })
    expect((await scraped()).sum('waystation_http_requests_total', asked)).toBe(count)
    expect(await service.stop()).toBe(0)
    expect(fetch(url)).rejects.toThrow()
  })

  describe('one after the other', () => {
    let service: ServerProcess
    beforeAll(async () => {
      service = await start()
    })

    test('the banner says how many there are and what they take; each has its secrets from the same folder', async () => {
      expect(service.banner).toContain(
        `\n  workers     ${workers} processes behind one port, with ${workers * 4} connections to PostgreSQL\n`,
      )
      expect(workersOf(service)).toHaveLength(workers)
      expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
      expect(readdirSync(data_dir).toSorted()).toEqual(['cron_secret', 'secret_key'])
    })

    test.each([{ WORKERS: '2' }, {}] as Record<string, string>[])(
      'a second service on its port is refused with one line, with %j',
      async (environment) => {
        const { port } = new URL(service.url)
        const refused = await refusedStart({ ...settings(), ...environment, PORT: port })
        expect([refused.exit_code, refused.stdout]).toEqual([1, ''])
        expect(refused.stderr).toMatch(new RegExp(`^waystation: PORT: .*\\b${port}\\b.*\\n$`))
        expect((await fetch(`${service.url}/livez`)).status).toBe(200)
      },
    )

    test('a worker that is killed is started again, and the others go on', async () => {
      const [first, ...others] = workersOf(service)
      process.kill(first!, 'SIGKILL')
      await until(() => workersOf(service).filter((pid) => pid !== first).length === workers)
      expect(workersOf(service)).toEqual(expect.arrayContaining(others))
      expect((await fetch(`${service.url}/livez`)).status).toBe(200)
    })

    test('a signal to every process at once ends all of them in order', async () => {
      for (const pid of workersOf(service)) process.kill(pid, 'SIGTERM')
      expect(await service.stop()).toBe(0)
    })
  })

  test('the last line of a worker that a fault of the code ends has its number', async () => {
    const script = join(data_dir, 'fault.ts')
    writeFileSync(
      script,
      `process.on('SIGUSR2', () => { throw new Error('a fault') })
       const { main } = await import(${JSON.stringify(join(import.meta.dir, '../src/serve.ts'))})
       await main([])`,
    )
    const service = spawnServer({ ...settings(), WORKERS: '2' }, [process.execPath, script])
    const log = new Response(service.stderr).text()
    const { value } = await service.stdout.getReader().read()
    expect(new TextDecoder().decode(value)).toContain('is ready')
    const faulty = workersOf(service)
    for (const pid of faulty) process.kill(pid, 'SIGUSR2')
    await until(() => faulty.every((pid) => parentOf(pid) === null))
    service.kill('SIGTERM')
    expect(await service.exited).toBe(0)
    const lines = (await log)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const last = lines.filter(({ msg }) => msg === 'uncaught exception')
    expect(last.map(({ worker }) => worker).toSorted()).toEqual([1, 2])
  })

  test('it is refused on the port of a service of one process', async () => {
    const alone = await startServer(settings())
    const { port } = new URL(alone.url)
    const refused = await refusedStart({ ...settings(), WORKERS: '2', PORT: port })
    expect(refused.stderr).toMatch(new RegExp(`^waystation: PORT: .*\\b${port}\\b.*\\n$`))
    expect(await alone.stop()).toBe(0)
  })

  test('when the supervisor is killed, its workers end', async () => {
    const service = await start()
    const pids = workersOf(service)
    await service.kill()
    await until(() => pids.every((pid) => parentOf(pid) === null))
  })

  test('client addresses are counted for all together: of many sign-ups at once exactly 30 are made', async () => {
    const service = await start({ TRUST_PROXY: '192.0.2.1' })
    const answers = await Promise.all(Array.from({ length: 2 * sign_ups_max }, () => signUp(service.url)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(sign_ups_max)
    expect(statuses.filter((status) => status === 429)).toHaveLength(sign_ups_max)
    expect(Number(answers.find(({ status }) => status === 429)!.headers.get('retry-after'))).toBeGreaterThan(
      3_000,
    )
    expect(await service.stop()).toBe(0)
  })

  test('a sign-up that fails is not counted', async () => {
    const service = await start({ TRUST_PROXY: '192.0.2.1' })
    const body = JSON.stringify({ name: 'taken', owner_email: 'o@example.com' })
    const again = () => fetch(`${service.url}/v1/tenants`, { method: 'POST', body })
    const statuses = new Set<number>()
    for (let i = 0; i < 2 * sign_ups_max; i++) statuses.add((await again()).status)
    expect([...statuses]).toEqual([201, 409])
    expect(await service.stop()).toBe(0)
  })

  test(
    `SIGTERM under load, ${stops} times: no request is cut off`,
    async () => {
      for (let stop = 1; stop <= stops; stop++)
        await endedUnderLoad(() => start({ DEFAULT_PLAN: 'unlimited' }))
    },
    stops * stop_ms_max,
  )
})

onPostgres('A start that waits while another node migrates', () => {
  test.each([{}, { WORKERS: '2' }] as Record<string, string>[])(
    'ends in order at SIGTERM, with %j',
    async (more) => {
      const database_url = await newPostgresDatabase()
      const data_dir = mkdtempSync(join(tmpdir(), 'waystation-workers-'))
      const other = new SQL({ url: database_url, max: 1 })
      const node = await other.reserve()
      await node`select pg_advisory_lock(8420)`
      const starting = spawnServer({ DATABASE_URL: database_url, DATA_DIR: data_dir, ...more })
      await until(async () => (await node.unsafe(count_lock_waits))[0].n > 0)
      starting.kill('SIGTERM')
      expect([await starting.exited, starting.signalCode]).toEqual([0, null])
      await node.release()
      await other.close()
      rmSync(data_dir, { recursive: true, force: true })
      await dropPostgresDatabase(database_url)
    },
  )
})

forEachDatabase('One process', (databases) => {
  test('SIGTERM under load: no request is cut off', async () => {
    const data_dir = mkdtempSync(join(tmpdir(), 'waystation-workers-'))
    const settings = { DATABASE_URL: await databases.newUrl(), DATA_DIR: data_dir, DEFAULT_PLAN: 'unlimited' }
    await endedUnderLoad(() => startServer(settings))
    rmSync(data_dir, { recursive: true, force: true })
  })
})

/** Ends a service while clients send on connections that they keep. */
async function endedUnderLoad(start: () => Promise<ServerProcess>): Promise<void> {
  const service = await start()
  const { host } = new URL(service.url)
  const { admin_key } = (await (await signUp(service.url)).json()) as { admin_key: string }
  const agent = await fetch(`${service.url}/v1/agents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin_key}` },
    body: JSON.stringify({ name: 'one' }),
  })
  const { api_key } = (await agent.json()) as { api_key: string }
  const head = (method: string, path: string) =>
    `${method} /v1/kv/load${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${api_key}\r\n`
  const load = keepAliveLoad(service.url, clients, (client) => {
    if (client % 4 === 0) return `${head('GET', '')}\r\n`
    return `${head('PUT', `/${client}`)}Content-Length: 11\r\n\r\n{"value":1}`
  })
  await until(() => load.answered > 50 * clients)
  const { answered } = load
  expect(await service.stop()).toBe(0)
  await load.ended
  expect([load.cut_off, [...load.refused]]).toEqual([[], []])
  expect(load.answered).toBeGreaterThan(answered)
}
