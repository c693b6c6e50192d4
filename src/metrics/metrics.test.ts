import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect as connectTo } from 'node:net'
import { connect } from '../../test/support/mcp.ts'
import { promtool, scrape } from '../../test/support/metrics.ts'
import { freePort } from '../../test/support/ports.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { cron_secret, forEachRacedService, TestService, type TestTenant } from '../../test/support/service.ts'
import { shed_reasons } from '../base/errors.ts'
import { lease_ms } from '../jobs/job.ts'
import * as jobs from '../jobs/store.ts'
import { schedule_job } from '../schedules/jobs.ts'
import { version } from '../version.ts'

/** The app alone writes no backup: BACKUP_EVERY only adds its metrics. */
const metrics = { METRICS: '127.0.0.1:0', BACKUP_EVERY: '1d' }

forEachRacedService(
  'Metrics',
  (service) => {
    service.over_http = true
    let tenant: TestTenant
    let receiver: Receiver
    beforeAll(async () => {
      tenant = await service.signUp()
      receiver = await startReceiver()
    })
    afterAll(() => receiver.stop())

    const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
    const asAgent = (method: string, path: string, body?: unknown) =>
      service.ask(method, path, { key: tenant.api_key, ...(body === undefined ? {} : { body }) })
    const schedule = async (url: string, in_ms = 0) => {
      const fire_at = new Date(service.clock.now() + in_ms).toISOString()
      const body = { fire_at, callback_url: url, callback_payload: {} }
      const made = await asAgent('POST', '/v1/schedules', body)
      expect(made.status).toBe(201)
      return made.body.id as string
    }

    describe('are served', () => {
      test('on a listener of their own, and not on the port of the API', async () => {
        const url = new URL(service.app.metrics!.url!)
        expect(url.port).not.toBe(new URL(service.url).port)
        expect((await service.ask('GET', '/metrics')).status).toBe(404)
        const other = await fetch(new URL('/v1/kv', url))
        expect([other.status, await other.text()]).toEqual([404, 'the metrics are at /metrics\n'])
        const posted = await fetch(url, { method: 'POST' })
        expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
        expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
      })

      test('to a collector that names no Host', async () => {
        const socket = connectTo(Number(new URL(service.app.metrics!.url!).port), '127.0.0.1')
        socket.write('GET /metrics HTTP/1.0\r\n\r\n')
        let text = ''
        for await (const chunk of socket) text += chunk
        expect([text.split('\r\n', 1)[0], text.includes('waystation_ready 1')]).toEqual([
          'HTTP/1.1 200 OK',
          true,
        ])
      })

      test('in the format of Prometheus, and as OpenMetrics where that is asked for', async () => {
        const plain = await fetch(service.app.metrics!.url!)
        expect(plain.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
        const open = await fetch(service.app.metrics!.url!, {
          headers: { accept: 'application/openmetrics-text; version=1.0.0' },
        })
        expect(open.headers.get('content-type')).toBe(
          'application/openmetrics-text; version=1.0.0; charset=utf-8',
        )
        expect(await open.text()).toEndWith('\n# EOF\n')
      })

      test('with each name in docs/metrics.md, and no other name there', async () => {
        const { names } = await scrape(service)
        const page = readFileSync('docs/metrics.md', 'utf8')
        const shown = [...page.matchAll(/^\| `((?:waystation|process)_\w+)/gm)].map(([, name]) => name!)
        const of_workers = ['waystation_workers', 'waystation_worker_restarts_total']
        expect(shown.toSorted()).toEqual([...names, ...of_workers].toSorted())
      })

      test('in a form that promtool takes', async () => {
        if (promtool === null) return
        const { text } = await scrape(service)
        const checked = Bun.spawnSync([promtool, 'check', 'metrics'], { stdin: Buffer.from(text) })
        expect([checked.exitCode, checked.stdout.toString() + checked.stderr.toString()]).toEqual([0, ''])
      })
    })

    describe('of requests', () => {
      const requests = async (labels: Record<string, string>) =>
        (await scrape(service)).sum('waystation_http_requests_total', labels) ?? 0

      test('count them by the pattern of their route and by status', async () => {
        const got = { method: 'GET', route: '/v1/kv/:namespace/:key' }
        const put = { method: 'PUT', route: '/v1/kv/:namespace/:key' }
        await asAgent('PUT', '/v1/kv/plans/secret-name', { value: 1 })
        for (let i = 0; i < 3; i++) await asAgent('GET', '/v1/kv/plans/secret-name')
        await asAgent('GET', '/v1/kv/plans/unknown')
        expect(await requests({ ...put, status: '200' })).toBe(1)
        expect(await requests({ ...got, status: '200' })).toBe(3)
        expect(await requests({ ...got, status: '404' })).toBe(1)
        const scraped = await scrape(service)
        expect(scraped.sum('waystation_http_request_duration_seconds_count', got)).toBe(4)
        expect(scraped.sum('waystation_http_request_duration_seconds_bucket', { ...got, le: '+Inf' })).toBe(4)
      })

      test('count those that are refused for lack of room by what is short, a call in process among them', async () => {
        const shed = async () => {
          const scraped = await scrape(service)
          return shed_reasons.map((reason) => scraped.sum('waystation_requests_shed_total', { reason }))
        }
        expect(await shed()).toEqual(shed_reasons.map(() => 0))
        const client = await connect('http', service.url, tenant.api_key)
        service.overload.delayed(300, 0)
        service.overload.delayed(300, 2_000)
        expect((await asAgent('GET', '/v1/kv/plans/unknown')).status).toBe(503)
        await client.call('kv_get', { namespace: 'plans', key: 'unknown' })
        service.overload.delayed(0, 2_050)
        await client.close()
        expect(await shed()).toEqual(shed_reasons.map((reason) => (reason === 'event_loop' ? 2 : 0)))
      })

      test('have no label that a tenant or a stranger can choose', async () => {
        const before = await requests({ route: 'unrouted' })
        for (const path of ['/wp-login.php', '/v1/nothing', '/v1/kv']) await asAgent('POST', path, {})
        await service.ask('PROPFIND', '/v1/kv/a/b', {})
        await service.ask('GET', '/livez', { headers: { host: 'evil.example.com' } })
        expect(await requests({ route: 'unrouted' })).toBe(before + 5)
        const { text } = await scrape(service)
        for (const chosen of ['secret-name', 'plans', 'wp-login', 'evil', tenant.tenant_id, tenant.name])
          expect(text).not.toContain(chosen)
      })

      test('count a call of MCP once, as the page that it is', async () => {
        const before = await requests({ route: '/v1/kv/:namespace/:key' })
        const client = await connect('http', service.url, tenant.api_key)
        await client.call('kv_get', { namespace: 'plans', key: 'secret-name' })
        await client.close()
        expect(await requests({ route: '/mcp', method: 'POST' })).toBeGreaterThan(0)
        expect(await requests({ route: '/v1/kv/:namespace/:key' })).toBe(before)
      })

      test('leave the time of those that wait out', async () => {
        const waited = { method: 'POST', route: '/v1/wait' }
        const body = { any: [{ type: 'schedule.fired' }], wait_seconds: 1 }
        expect((await asAgent('POST', '/v1/wait', body)).status).toBe(200)
        const scraped = await scrape(service)
        expect(scraped.sum('waystation_http_requests_total', waited)).toBe(1)
        expect(scraped.sum('waystation_http_request_duration_seconds_count', waited)).toBeNull()
      })

      test('leave the time of a call of MCP that waits out, and keep that of others', async () => {
        const of_calls = async () => {
          const scraped = await scrape(service)
          const labels = { method: 'POST', route: '/mcp' }
          return [
            scraped.sum('waystation_http_requests_total', labels) ?? 0,
            scraped.sum('waystation_http_request_duration_seconds_count', labels) ?? 0,
          ] as const
        }
        const client = await connect('http', service.url, tenant.api_key)
        const [requests, timed] = await of_calls()
        await client.call('kv_list', { namespace: 'plans' })
        await client.call('wait_for', { any: [{ type: 'schedule.fired' }], wait_seconds: 1 })
        expect(await of_calls()).toEqual([requests + 2, timed + 1])
        await client.close()
      })
    })

    describe('of jobs', () => {
      test('count those that are due, and how long the oldest has been', async () => {
        await schedule(receiver.url, 1_000)
        const early = await scrape(service)
        expect(early.sum('waystation_jobs_due', { kind: 'schedule' })).toBe(0)
        expect(early.sum('waystation_jobs_late_seconds')).toBe(0)
        service.clock.advance(91_000)
        const late = await scrape(service)
        expect(late.sum('waystation_jobs_due', { kind: 'schedule' })).toBe(1)
        expect(late.sum('waystation_jobs_due', { kind: 'forward' })).toBe(0)
        expect(late.sum('waystation_jobs_late_seconds')).toBe(90)
        await tick()
        const done = await scrape(service)
        expect(done.sum('waystation_jobs_due')).toBe(0)
        expect(done.sum('waystation_jobs_running')).toBe(0)
        const begun = { kind: 'schedule' }
        expect(done.sum('waystation_job_start_delay_seconds_sum', begun)).toBeGreaterThanOrEqual(90)
        expect(done.sum('waystation_job_start_delay_seconds_count', begun)).toBe(1)
      })

      test('count attempts by kind and outcome', async () => {
        const count = async (outcome: string) =>
          (await scrape(service)).sum('waystation_attempts_total', { kind: 'schedule', outcome }) ?? 0
        const before = {
          ok: await count('ok'),
          refused: await count('refused'),
          status: await count('status'),
        }
        receiver.answer = ({ target }) => ({ status: target === '/bad' ? 500 : 204 })
        await schedule(receiver.url)
        await schedule(`${receiver.url}/bad`)
        await schedule(`http://127.0.0.1:${await freePort()}/`)
        await tick()
        expect(await count('ok')).toBe(before.ok + 1)
        expect(await count('status')).toBe(before.status + 1)
        expect(await count('refused')).toBe(before.refused + 1)
        const attempts = (await scrape(service)).sum('waystation_attempts_total', { kind: 'schedule' })
        const timed = (await scrape(service)).sum('waystation_attempt_duration_seconds_count', {
          kind: 'schedule',
        })
        expect(timed).toBe(attempts)
        service.clock.advance(200_000)
        await tick()
        service.clock.advance(200_000)
        await tick()
      })

      test('count leases that ended because their node did not settle them', async () => {
        const expired = async () =>
          (await scrape(service)).sum('waystation_leases_expired_total', { kind: 'schedule' })
        expect(await expired()).toBe(0)
        const id = await schedule(receiver.url)
        await service.app.db.write((tx) =>
          jobs.lease(tx, tenant.tenant_id, schedule_job, [id], tx.now + lease_ms),
        )
        service.clock.advance(lease_ms + 1)
        await tick()
        expect(await expired()).toBe(1)
      })
    })

    describe('of the process and its database', () => {
      test('say version, engine and readiness', async () => {
        const scraped = await scrape(service)
        expect(scraped.sum('waystation_info', { version, engine: service.engine })).toBe(1)
        expect(scraped.sum('waystation_ready')).toBe(1)
        expect(scraped.sum('waystation_database_trouble')).toBe(0)
      })

      test('count commits, and the writes that share them', async () => {
        const before = await scrape(service)
        await asAgent('PUT', '/v1/kv/plans/commit', { value: 1 })
        const after = await scrape(service)
        const grown = (name: string) => after.sum(name)! - before.sum(name)!
        expect(grown('waystation_commit_batch_size_count')).toBeGreaterThan(0)
        expect(grown('waystation_commit_batch_size_sum')).toBeGreaterThan(0)
        expect(grown('waystation_commit_seconds_count')).toBe(grown('waystation_commit_batch_size_count'))
        const flushes = grown('waystation_fsync_seconds_count')
        if (service.engine === 'sqlite') expect(flushes).toBeGreaterThan(0)
        else expect(flushes).toBe(0)
      })

      test('show what is held in memory, on disk and in connections', async () => {
        await asAgent('GET', '/v1/kv/plans/secret-name')
        const scraped = await scrape(service)
        expect(scraped.sum('waystation_database_bytes')).toBeGreaterThan(100_000)
        expect(scraped.sum('waystation_cache_entries', { cache: 'keys' })).toBeGreaterThan(0)
        expect(scraped.sum('waystation_writes_waiting')).toBe(0)
        expect(scraped.sum('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
        expect(scraped.sum('process_cpu_seconds_total')).toBeGreaterThan(0)
        const on_disk = scraped.sum('waystation_disk_free_bytes')
        const pool = scraped.sum('waystation_database_pool_connections')
        if (service.engine === 'sqlite') expect([on_disk! > 0, pool]).toEqual([true, null])
        else expect([on_disk, pool]).toEqual([null, 12])
      })

      test('count steps of the sweep', async () => {
        const steps = async () => (await scrape(service)).sum('waystation_sweep_seconds_count')!
        const before = await steps()
        await tick()
        expect(await steps()).toBeGreaterThan(before)
      })

      test('show what waits for the database: on PostgreSQL also reads', async () => {
        const released = Promise.withResolvers<void>()
        const reads = Array.from({ length: 20 }, (_, i) =>
          service.app.db.read({ key: `${i}` }, () => released.promise),
        )
        const ended = Promise.allSettled(reads) // those that wait for long are refused
        const scraped = await scrape(service)
        released.resolve()
        await ended
        const waiting = scraped.sum('waystation_writes_waiting')
        if (service.engine === 'sqlite') expect(waiting).toBe(0)
        else expect(waiting).toBeWithin(8, 12) // of 12 connections, and statements of the scrape itself
        expect(scraped.text).toContain('on PostgreSQL also reads that wait for a connection')
        expect((await scrape(service)).sum('waystation_writes_waiting')).toBe(0)
      })

      test('show the delay of the event loop', async () => {
        const looks = async () => (await scrape(service)).sum('waystation_event_loop_delay_seconds_count')!
        const long = async () => {
          const scraped = await scrape(service)
          const all = scraped.sum('waystation_event_loop_delay_seconds_count')!
          return all - scraped.sum('waystation_event_loop_delay_seconds_bucket', { le: '0.5' })!
        }
        const earlier = await looks()
        while ((await looks()) === earlier) await Bun.sleep(10) // other tests have set the clock
        const before = await long()
        service.clock.advance(3_000)
        while ((await long()) === before) await Bun.sleep(10)
        expect(await long()).toBe(before + 49) // of 2.95 s and less, in steps of 50 ms
      })
    })
  },
  metrics,
)

test('Without METRICS nothing is counted and nothing listens', async () => {
  const service = await new TestService().start('sqlite::memory:')
  expect(service.app.metrics).toBeNull()
  await service.stop()
})

test('METRICS on a port that is in use ends the start with one line that names it', async () => {
  const taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const service = new TestService({ METRICS: `127.0.0.1:${taken.port}` })
  expect(service.start('sqlite::memory:')).rejects.toThrow(/^METRICS: /)
  await service.stop().catch(() => {})
  await taken.stop(true)
})
