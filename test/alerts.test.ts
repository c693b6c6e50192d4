// The alert rules of deploy/: each condition is brought about in a running service, and the series that the rule reads
// moves. Whether a rule fires on such a series is tested by promtool, which Prometheus brings along.

import { afterAll, describe, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { dashboardText } from '../scripts/dashboard.ts'
import { writeBackup } from '../src/backup/backup.ts'
import { nameOf } from '../src/backup/kept.ts'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { lease_ms } from '../src/jobs/job.ts'
import * as jobs from '../src/jobs/store.ts'
import { schedule_job } from '../src/schedules/jobs.ts'
import { Supervisor } from '../src/workers/supervisor.ts'
import { TestClock } from './support/clock.ts'
import { onPostgres } from './support/databases.ts'
import { promtool, type Scraped, scrape } from './support/metrics.ts'
import { freePort } from './support/ports.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { cron_secret, TestService, type TestTenant } from './support/service.ts'

interface Rule {
  alert: string
  expr: string
}

const gib = 1_073_741_824
const folder = 'deploy/prometheus'
const { groups } = Bun.YAML.parse(readFileSync(`${folder}/alerts.yml`, 'utf8')) as {
  groups: { rules: Rule[] }[]
}
const rules = groups.flatMap((group) => group.rules)
const folders: string[] = []
afterAll(() => {
  for (const made of folders) rmSync(made, { recursive: true, force: true })
})

class Driven {
  readonly folder = mkdtempSync(join(tmpdir(), 'waystation-alerts-'))
  readonly backups = join(this.folder, 'backups')
  readonly service = new TestService({
    ...{ METRICS: '127.0.0.1:0', DISK_RESERVE: String(gib) },
    ...{ BACKUP_EVERY: '6h', BACKUP_DIR: this.backups },
  })
  tenant!: TestTenant

  async start(): Promise<this> {
    folders.push(this.folder)
    this.service.space = { free: 10 * gib, total: 100 * gib }
    await this.service.start(`sqlite:${join(this.folder, 'test.db')}`)
    this.tenant = await this.service.signUp()
    return this
  }

  tick() {
    return this.service.ask('POST', '/v1/tick', { key: cron_secret })
  }

  async schedule(): Promise<string> {
    const callback_url = `http://127.0.0.1:${await freePort()}/`
    const fire_at = new Date(this.service.clock.now()).toISOString()
    const body = { fire_at, callback_url, callback_payload: {} }
    return (await this.service.ask('POST', '/v1/schedules', { key: this.tenant.api_key, body })).body.id
  }

  /** As the service does by itself; without it the series stays as it is. */
  backUp() {
    const { clock, database_url } = this.service
    return writeBackup(database_url, join(this.backups, nameOf(clock.now())))
  }

  async fillDisk(): Promise<void> {
    this.service.space!.free = 1_000_000
    await this.service.app.db.maintain()
  }
}

interface Condition {
  /** The series of the rule: a name, and labels that choose. */
  series: string
  labels?: Record<string, string>
  bringAbout(driven: Driven): Promise<unknown>
  /** Of the series before and after. */
  moves(before: number, after: number): boolean
}

const rises = (before: number, after: number) => after > before

/** A write that waits for the disk while two seconds pass. */
async function slowFlush(driven: Driven): Promise<Scraped> {
  const { service, tenant } = driven
  const flushing = Promise.withResolvers<void>()
  const returned = Promise.withResolvers<void>()
  held = () => {
    flushing.resolve()
    return returned.promise
  }
  const put = service.ask('PUT', '/v1/kv/state/slow', { key: tenant.api_key, body: { value: 1 } })
  await flushing.promise
  held = null
  service.clock.advance(2_000)
  const meanwhile = await scrape(service)
  returned.resolve()
  expect((await put).status).toBe(200)
  return meanwhile
}

/** Takes the place of the next flush. */
let held: (() => Promise<void>) | null = null
const sync = { offLoop: async () => held?.() }

const conditions: Record<string, Condition> = {
  WaystationNotReady: {
    series: 'waystation_ready',
    bringAbout: (driven) => driven.fillDisk(),
    moves: (before, after) => before === 1 && after === 0,
  },
  WaystationDatabaseTrouble: {
    series: 'waystation_database_trouble',
    labels: { kind: 'full' },
    bringAbout: (driven) => driven.fillDisk(),
    moves: (before, after) => before === 0 && after === 1,
  },
  WaystationDiskFilling: {
    series: 'waystation_disk_free_bytes',
    bringAbout: (driven) => driven.fillDisk(),
    moves: (before, after) => before === 10 * gib && after === 1_000_000,
  },
  WaystationErrors: {
    series: 'waystation_http_requests_total',
    labels: { status: '503' },
    async bringAbout(driven) {
      await driven.fillDisk()
      await driven.service.ask('GET', '/readyz')
    },
    moves: rises,
  },
  WaystationShedding: {
    series: 'waystation_requests_shed_total',
    labels: { reason: 'event_loop' },
    async bringAbout({ service, tenant }) {
      service.overload.delayed(300, 0)
      service.overload.delayed(300, 2_000)
      expect((await service.ask('GET', '/v1/kv/a/b', { key: tenant.api_key })).status).toBe(503)
    },
    moves: (before, after) => before === 0 && after === 1,
  },
  WaystationSlow: {
    series: 'waystation_http_request_duration_seconds_sum',
    labels: { method: 'PUT' },
    bringAbout: slowFlush,
    moves: (before, after) => before === 0 && after === 2,
  },
  WaystationFlushSlow: {
    series: 'waystation_fsync_seconds_bucket',
    labels: { le: '+Inf' },
    bringAbout: slowFlush,
    moves: rises,
  },
  WaystationWritesWaiting: {
    series: 'waystation_writes_waiting',
    bringAbout: slowFlush,
    moves: rises,
  },
  WaystationEventLoopBlocked: {
    series: 'waystation_event_loop_delay_seconds_sum',
    async bringAbout({ service }) {
      service.clock.advance(3_000)
      while ((await scrape(service)).sum('waystation_event_loop_delay_seconds_sum')! < 2) await Bun.sleep(10)
    },
    moves: rises,
  },
  WaystationJobsLate: {
    series: 'waystation_jobs_late_seconds',
    async bringAbout(driven) {
      await driven.schedule()
      driven.service.clock.advance(61_000)
    },
    moves: (before, after) => before === 0 && after === 61,
  },
  WaystationAttemptsFailing: {
    series: 'waystation_attempts_total',
    labels: { outcome: 'refused' },
    async bringAbout(driven) {
      await driven.schedule()
      await driven.tick()
    },
    moves: rises,
  },
  WaystationLeasesExpired: {
    series: 'waystation_leases_expired_total',
    labels: { kind: 'schedule' },
    async bringAbout(driven) {
      const id = await driven.schedule()
      const { service, tenant } = driven
      await service.app.db.write((tx) =>
        jobs.lease(tx, tenant.tenant_id, schedule_job, [id], tx.now + lease_ms),
      )
      service.clock.advance(lease_ms + 1)
      await driven.tick()
    },
    moves: (before, after) => before === 0 && after === 1,
  },
  WaystationSweepStopped: {
    series: 'waystation_sweep_seconds_count',
    bringAbout: (driven) => driven.tick(), // without it the count stays as it is
    moves: rises,
  },
  WaystationBackgroundFailing: {
    series: 'waystation_background_errors_total',
    async bringAbout(driven) {
      await driven.service.app.db.write((tx) =>
        tx.run(unnamedAcrossTenants('away', 'alter table jobs rename to away'), {}),
      )
      await driven.tick()
      await driven.service.app.db.write((tx) =>
        tx.run(unnamedAcrossTenants('back', 'alter table away rename to jobs'), {}),
      )
    },
    moves: rises,
  },
  WaystationFilesRunningOut: {
    series: 'process_open_fds',
    bringAbout: async () => {
      for (let i = 0; i < 40; i++) opened.push(openSync('package.json', 'r'))
    },
    moves: (before, after) => after >= before + 40,
  },
  WaystationBackupLate: {
    series: 'waystation_backup_last_success_timestamp_seconds',
    bringAbout: (driven) => driven.backUp(),
    moves: (before, after) => before === 0 && after === new TestClock().now() / 1_000,
  },
}

const opened: number[] = []
afterAll(() => opened.forEach(closeSync))

describe('The condition of an alert moves its series:', () => {
  const read_meanwhile = ['WaystationWritesWaiting']
  test.each(Object.entries(conditions))('%s', async (alert, { series, labels, bringAbout, moves }) => {
    const rule = rules.find((one) => one.alert === alert)!
    expect(rule.expr).toContain(series.replace(/_(bucket|sum|count)$/, ''))
    const driven = new Driven()
    if (bringAbout === slowFlush) driven.service.sync = sync
    await driven.start()
    const before = await scrape(driven.service)
    const meanwhile = await bringAbout(driven)
    const after = read_meanwhile.includes(alert) ? (meanwhile as Scraped) : await scrape(driven.service)
    const values = [before.sum(series, labels) ?? 0, after.sum(series, labels) ?? 0] as const
    expect([alert, ...values, moves(...values)]).toEqual([alert, ...values, true])
    await driven.service.stop()
  })

  test('WaystationDown: a process that has ended answers nothing', async () => {
    const driven = await new Driven().start()
    const url = driven.service.app.metrics!.url!
    expect((await fetch(url)).status).toBe(200)
    await driven.service.stop()
    expect(fetch(url)).rejects.toThrow()
  })

  test('WaystationWorkerRestarted', async () => {
    const ends: ((code: number) => void)[] = []
    const supervisor = new Supervisor({
      workers: 1,
      clock: new TestClock(),
      log: { debug() {}, info() {}, warn() {}, error() {} },
      start(_, onMessage) {
        const { promise: exited, resolve } = Promise.withResolvers<number>()
        ends.push(resolve)
        queueMicrotask(() => onMessage({ type: 'ready', address: 'http://worker' }))
        const send = (message: { type: string; id?: number }) => {
          if (message.type === 'drain') resolve(0)
          if (message.type === 'collect') onMessage({ type: 'figures', id: message.id!, figures: [] })
        }
        return { send, kill: () => resolve(137), exited }
      },
    })
    const restarts = async () =>
      (await supervisor.collect()).find(({ name }) => name === 'waystation_worker_restarts_total')!.values[0]!
        .value
    await supervisor.start()
    expect(await restarts()).toBe(0)
    ends[0]!(1)
    while (ends.length < 2) await Bun.sleep(5)
    expect(await restarts()).toBe(1)
    await supervisor.stop()
  })

  onPostgres('WaystationConnectionsExhausted', () => {
    test('statements wait while every connection is in use', async () => {
      const url = await newPostgresDatabase()
      const service = new TestService({ METRICS: '127.0.0.1:0', DATABASE_CONNECTIONS: '2' })
      await service.start(url)
      const waiting = async () =>
        (await scrape(service)).sum('waystation_database_pool_connections', { state: 'waiting' })
      expect(await waiting()).toBe(0)
      const released = Promise.withResolvers<void>()
      const writes = ['a', 'b', 'c', 'd'].map((key) => service.app.db.write({ key }, () => released.promise))
      expect(await waiting()).toBeGreaterThanOrEqual(2)
      released.resolve()
      await Promise.all(writes)
      await service.stop()
      await dropPostgresDatabase(url)
    })
  })

  onPostgres('WaystationRowSecurityOff', () => {
    test('a table in use keeps row-level security off, and the next look finds it free', async () => {
      const url = await newPostgresDatabase()
      const all = new SQL({ url, max: 1 })
      await all`drop policy waystation_of_tenant on agents`
      const reader = await all.reserve()
      await reader.unsafe('begin; select 1 from agents limit 1').simple()
      const service = new TestService({ METRICS: '127.0.0.1:0', DATABASE_CONNECTIONS: '2' })
      await service.start(url)
      const inForce = async () => (await scrape(service)).sum('waystation_row_level_security')
      expect(await inForce()).toBe(0)
      await reader.unsafe('rollback')
      await reader.release()
      await all.close()
      await service.app.late_rows!.secure()
      expect(await inForce()).toBe(1)
      await service.stop()
      await dropPostgresDatabase(url)
    })
  })

  test('each alert is among these', () => {
    const others = [
      ...['WaystationDown', 'WaystationWorkerRestarted', 'WaystationConnectionsExhausted'],
      'WaystationRowSecurityOff',
    ]
    expect([...Object.keys(conditions), ...others].toSorted()).toEqual(
      rules.map(({ alert }) => alert).toSorted(),
    )
  })
})

describe('The files of deploy/', () => {
  const dashboard = readFileSync('deploy/grafana/waystation.json', 'utf8')
  const page = readFileSync('docs/metrics.md', 'utf8')

  test('name only metrics that the service has', async () => {
    const driven = await new Driven().start()
    const { names } = await scrape(driven.service)
    await driven.service.stop()
    const known = new Set([...names, 'waystation_workers', 'waystation_worker_restarts_total'])
    const used = (text: string) =>
      [...new Set(text.match(/\b(?:waystation|process)_[a-z_]+/g))].map((name) =>
        known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
      )
    const of_rules = rules.flatMap(({ expr }) => used(expr))
    const of_dashboard = (JSON.parse(dashboard) as { panels: { targets?: { expr: string }[] }[] }).panels
      .flatMap(({ targets = [] }) => targets)
      .flatMap(({ expr }) => used(expr))
    expect([...of_rules, ...of_dashboard].filter((name) => !known.has(name))).toEqual([])
    expect(of_dashboard.length).toBeGreaterThan(15)
  })

  test('are up to date: `bun scripts/dashboard.ts` writes the dashboard', () => {
    expect(JSON.parse(dashboardText())).toEqual(JSON.parse(dashboard))
  })

  test('are described: each alert has its line in docs/metrics.md with its severity', () => {
    const shown = [...page.matchAll(/^\| `(Waystation\w+)` \| (page|ticket) \|/gm)].map(
      ([, ...cells]) => cells,
    )
    const text = readFileSync(`${folder}/alerts.yml`, 'utf8')
    const said = [...text.matchAll(/- alert: (\w+)[\s\S]*?severity: (\w+)/g)].map(([, ...cells]) => cells)
    expect(shown).toEqual(said)
  })

  test('are what promtool takes, and the unit tests of the rules pass', () => {
    if (promtool === null) return
    const checks = [
      ['check', 'rules', `${folder}/alerts.yml`],
      ['check', 'config', `${folder}/prometheus.yml`],
      ['test', 'rules', `${folder}/alerts.test.yml`],
    ]
    for (const check of checks) {
      const { exitCode, stdout, stderr } = Bun.spawnSync([promtool, ...check])
      expect([check.join(' '), exitCode, exitCode === 0 ? '' : `${stdout}${stderr}`]).toEqual([
        check.join(' '),
        0,
        '',
      ])
    }
  })
})
