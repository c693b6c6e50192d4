// A service with a collector beside it, in which a driver brings the condition of an alert rule about.

import { expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { writeBackup } from '../../src/backup/backup.ts'
import { nameOf } from '../../src/backup/kept.ts'
import { unnamedAcrossTenants } from '../../src/db/db.ts'
import { HeldFlush } from './held-flush.ts'
import { Scraped } from './metrics.ts'
import { until } from './patience.ts'
import { freePort } from './ports.ts'
import { ownerUrlOf } from './postgres.ts'
import { Prometheus, type Rule } from './prometheus.ts'
import { cron_secret, TestService, type TestTenant } from './service.ts'

export const gib = 1_073_741_824
/** To PostgreSQL. */
export const connections = 4

export class Driven {
  readonly folder = mkdtempSync(join(tmpdir(), 'waystation-alerts-'))
  readonly backups = join(this.folder, 'backups')
  readonly flush = new HeldFlush()
  readonly service: TestService
  readonly prometheus: Prometheus
  /** Returns the text of a scrape. */
  target = async () => (await fetch(this.service.app.metrics!.url!)).text()
  tenant!: TestTenant
  /** Of each look, in its order: true when the condition held. */
  readonly looks: boolean[] = []

  constructor(
    private readonly rule: Rule,
    settings: Record<string, string> = {},
  ) {
    this.service = new TestService({
      ...{ METRICS: '127.0.0.1:0', DISK_RESERVE: String(gib), DATABASE_CONNECTIONS: String(connections) },
      ...{ BACKUP_EVERY: '6h', BACKUP_DIR: this.backups, ...settings },
    })
    this.service.over_http = true // metrics count what the server has in flight
    this.prometheus = new Prometheus(this.service.clock.now() / 1_000, () => this.target())
  }

  async start(database_url: string): Promise<this> {
    this.service.space = { free: 10 * gib, total: 100 * gib }
    if (database_url.startsWith('sqlite:')) this.service.sync = this.flush.sync
    await this.service.start(database_url)
    this.tenant = await this.service.signUp()
    await this.put()
    await this.prometheus.scrape()
    return this
  }

  async stop(): Promise<void> {
    await this.service.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  silent(): Promise<void> {
    return this.#look(false)
  }

  holds(): Promise<void> {
    return this.#look(true)
  }

  async #look(holds: boolean): Promise<void> {
    await this.prometheus.scrape()
    expect([this.rule.alert, this.prometheus.holds(this.rule)]).toEqual([this.rule.alert, holds])
    this.looks.push(holds)
  }

  /** A scrape after each. */
  async minutes(count: number, each: () => Promise<unknown> = async () => {}): Promise<void> {
    for (let i = 0; i < count; i++) {
      await each()
      this.prometheus.now += 60
      await this.prometheus.scrape()
    }
  }

  async scraped(): Promise<Scraped> {
    return new Scraped(await this.target())
  }

  tick() {
    return this.service.ask('POST', '/v1/tick', { key: cron_secret })
  }

  put() {
    const { service, tenant } = this
    return service.ask('PUT', '/v1/kv/state/one', { key: tenant.api_key, body: { value: 1 } })
  }

  get() {
    return this.service.ask('GET', '/v1/kv/state/one', { key: this.tenant.api_key })
  }

  /** Due at once. Returns its id. */
  async schedule(url?: string): Promise<string> {
    const { service, tenant } = this
    const callback_url = url ?? `http://127.0.0.1:${await freePort()}/`
    const fire_at = new Date(service.clock.now()).toISOString()
    const body = { fire_at, callback_url, callback_payload: {} }
    return (await service.ask('POST', '/v1/schedules', { key: tenant.api_key, body })).body.id
  }

  /** While the work runs this table is away. */
  async without(table: string, work: () => Promise<unknown>): Promise<void> {
    const { app, database_url } = this.service
    const owner = database_url.startsWith('sqlite:') ? null : new SQL(ownerUrlOf(database_url))
    const rename = (from: string, to: string) => {
      const statement = `alter table ${from} rename to ${to}`
      return owner
        ? owner.unsafe(statement)
        : app.db.write((tx) => tx.run(unnamedAcrossTenants('rename', statement), {}))
    }
    await rename(table, 'away')
    await work()
    await rename('away', table)
    await owner?.close()
  }

  async freeDisk(bytes: number): Promise<void> {
    this.service.space!.free = bytes
    await this.service.app.db.maintain()
  }

  /** As the service does by itself. */
  async backUp(): Promise<string> {
    const file = join(this.backups, nameOf(this.service.clock.now()))
    await writeBackup(this.service.database_url, file)
    return file
  }

  /** The time of the service and of the collector. */
  pass(ms: number): void {
    this.service.clock.advance(ms)
    this.prometheus.now += ms / 1_000
  }

  /** While the work runs, no write ends: SQLite's disk does not answer, or another has locked PostgreSQL's table. */
  async withoutCommits(work: () => Promise<unknown>): Promise<void> {
    const { flush, service } = this
    if (service.database_url.startsWith('sqlite:')) {
      flush.hold()
      const put = this.put()
      await flush.begun(1)
      await work()
      flush.release()
      await put
      return
    }
    const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const lock = service.app.db.write(async (tx) => {
      await tx.run(unnamedAcrossTenants('lock', 'lock table kv_entries in access exclusive mode'), {})
      locked.resolve()
      await released.promise
    })
    await locked.promise
    const put = this.put()
    await until(async () => (await this.scraped()).sum('waystation_http_requests_in_flight')! > 0)
    await work()
    released.resolve()
    await Promise.all([lock, put])
  }
}
