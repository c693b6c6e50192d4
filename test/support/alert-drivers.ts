// A driver of each alert rule: it brings the condition about in a running service, and looks on both sides of the threshold.

import { expect } from 'bun:test'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { hour_ms } from '../../src/base/clock.ts'
import { stalled_ms_min } from '../../src/db/sqlite-flush.ts'
import { lease_ms } from '../../src/jobs/job.ts'
import * as jobs from '../../src/jobs/store.ts'
import { exposition } from '../../src/metrics/text.ts'
import { schedule_job } from '../../src/schedules/jobs.ts'
import { Supervisor } from '../../src/workers/supervisor.ts'
import { connections, type Driven, gib } from './alert-driven.ts'
import { TestClock } from './clock.ts'
import type { TestDatabases } from './databases.ts'
import { until } from './patience.ts'
import { freePort } from './ports.ts'
import { dropPostgresDatabase, ownerUrlOf } from './postgres.ts'
import { startReceiver } from './receiver.ts'
import { startServer } from './server-process.ts'

type Engine = TestDatabases['engine']

export interface Driver {
  /** Those whose service can come into this condition. */
  engines: readonly Engine[]
  settings?: Record<string, string>
  /** Starts a service as a process of its own. */
  slow?: boolean
  /** Looks while all is well, with `silent`, before it looks with `holds`. */
  drive(driven: Driven): Promise<unknown>
}

const both: readonly Engine[] = ['sqlite', 'postgres']

/** A write that takes two seconds. */
const slowWrite = (driven: Driven) => driven.withoutCommits(async () => driven.service.clock.advance(2_000))

/** One slow write among a hundred, and then among twenty. */
async function slowWrites(driven: Driven): Promise<void> {
  await driven.minutes(1, async () => {
    for (let i = 0; i < 100; i++) await driven.put()
    await slowWrite(driven)
  })
  await driven.silent()
  await driven.minutes(2, () => slowWrite(driven))
  await driven.holds()
  await driven.minutes(6, () => driven.put())
  await driven.silent()
}

/** So many turns of the event loop are late by so much. */
async function lateTurns(driven: Driven, count: number, ms: number): Promise<void> {
  const turns = async () => {
    const scraped = await driven.scraped()
    const all = scraped.sum('waystation_event_loop_delay_seconds_count')!
    return all - scraped.sum('waystation_event_loop_delay_seconds_bucket', { le: '0.1' })!
  }
  for (let i = 0; i < count; i++) {
    const before = await turns()
    driven.service.clock.advance(ms)
    await until(async () => (await turns()) > before)
  }
}

function linesOfFailures({ service }: Driven): number {
  return service.logged.filter(({ message }) => message === 'request failed').length
}

/** So many looks at the event loop, in time. */
async function turns(driven: Driven, count: number): Promise<void> {
  const seen = async () => (await driven.scraped()).sum('waystation_event_loop_delay_seconds_count')!
  const before = await seen()
  await until(async () => (await seen()) >= before + count)
}

/** So many writes more than those that hold all connections; SQLite, which writes one at a time, holds the others up as well. */
async function whileWritesWait(driven: Driven, count: number, look: () => Promise<void>): Promise<void> {
  const { db } = driven.service.app
  const released = Promise.withResolvers<void>()
  const writes = Array.from({ length: count + connections }, (_, i) =>
    db.write({ key: `${i}` }, () => released.promise),
  )
  const ended = Promise.allSettled(writes) // those that wait for long are refused
  await look()
  released.resolve()
  await ended
}

export const drivers: Readonly<Record<string, Driver>> = {
  WaystationDown: {
    engines: both,
    async drive(driven) {
      await driven.silent()
      await driven.service.stop()
      await driven.holds()
    },
  },
  WaystationNotReady: {
    engines: both,
    async drive(driven) {
      await driven.silent()
      const { database_url } = driven.service
      if (database_url.startsWith('sqlite:')) await driven.freeDisk(1)
      else await dropPostgresDatabase(database_url)
      driven.pass(1_000) // what /readyz has seen holds for a second
      await driven.holds()
    },
  },
  WaystationDatabaseTrouble: {
    engines: ['sqlite'],
    async drive(driven) {
      const { service, flush } = driven
      await driven.silent()
      await driven.freeDisk(gib - 1)
      await driven.holds()
      await driven.freeDisk(10 * gib)
      await driven.silent()
      flush.hold()
      const put = driven.put()
      await flush.begun(1)
      service.clock.advance(stalled_ms_min - 1)
      await driven.silent()
      service.clock.advance(1)
      await driven.holds()
      flush.release()
      await put
      await driven.silent()
      await damage(driven)
      await driven.holds()
    },
  },
  WaystationDiskFilling: {
    engines: ['sqlite'],
    async drive(driven) {
      const losing = async (hours: number, bytes: number) => {
        for (let hour = 0; hour < hours; hour++) {
          await driven.freeDisk(driven.service.space!.free - bytes)
          driven.prometheus.now += 3_600
          await driven.prometheus.scrape()
        }
      }
      await driven.freeDisk(2 * gib)
      await driven.silent()
      await driven.freeDisk(2 * gib - 1)
      await driven.holds()
      driven.prometheus.now += 6 * 3_600
      await driven.freeDisk(60 * gib)
      await losing(6, 1.5 * gib) // 15 GiB in a day, none in two
      await driven.silent()
      await losing(6, 2.25 * gib) // none in a day, 10 GiB in half of one
      await driven.holds()
    },
  },
  WaystationErrors: {
    engines: both,
    async drive(driven) {
      const requests = (well: number, failing: number) => async () => {
        for (let i = 0; i < well; i++) await driven.get()
        await driven.without('kv_entries', async () => {
          for (let i = 0; i < failing; i++) expect((await driven.get()).status).toBe(500)
        })
      }
      await driven.minutes(3, requests(100, 1))
      await driven.silent()
      await driven.minutes(2, requests(20, 3))
      await driven.holds()
      expect(linesOfFailures(driven)).toBe(9) // as docs/metrics.md says, of each 500
      await driven.minutes(6, requests(20, 0))
      await driven.silent()
    },
  },
  WaystationShedding: {
    engines: both,
    async drive(driven) {
      const { overload } = driven.service
      const refused = (count: number) => async () => {
        overload.delayed(300, 0)
        overload.delayed(300, 2_000)
        const answers = await Promise.all(Array.from({ length: count }, () => driven.get()))
        for (const { status } of answers) expect(status).toBe(503)
        overload.delayed(0, 2_050)
      }
      await driven.minutes(2, refused(50))
      await driven.silent()
      await driven.minutes(3, refused(90))
      await driven.holds()
      expect(linesOfFailures(driven)).toBe(0) // and of no 503
    },
  },
  WaystationSlow: { engines: both, drive: slowWrites },
  WaystationFlushSlow: { engines: ['sqlite'], drive: slowWrites },
  WaystationEventLoopBlocked: {
    engines: both,
    async drive(driven) {
      await driven.minutes(1, () => lateTurns(driven, 20, 200))
      await driven.silent()
      await driven.minutes(1, () => lateTurns(driven, 20, 1_000))
      await driven.holds()
      await driven.minutes(6)
      await driven.silent()
      // It stands still for more than half of the time, and few of its turns are late.
      await driven.minutes(1, async () => {
        await turns(driven, 30)
        await lateTurns(driven, 1, 2_000)
      })
      await driven.holds()
    },
  },
  WaystationConnectionsExhausted: {
    engines: ['postgres'],
    async drive(driven) {
      await driven.silent()
      driven.prometheus.now += 60
      await whileWritesWait(driven, 1, () => driven.silent()) // not for five minutes yet
      driven.prometheus.now += 300
      await whileWritesWait(driven, 1, () => driven.holds())
      driven.prometheus.now += 60
      await driven.silent()
    },
  },
  WaystationWritesWaiting: {
    engines: both,
    async drive(driven) {
      const waits_too = driven.service.database_url.startsWith('sqlite:') ? connections : 0
      // A few fewer: the service's own statements wait as well.
      await whileWritesWait(driven, 990 - waits_too, () => driven.silent())
      await whileWritesWait(driven, 1_001 - waits_too, () => driven.holds())
      await driven.silent()
    },
  },
  WaystationJobsLate: {
    engines: both,
    async drive(driven) {
      await driven.schedule()
      driven.pass(60_000)
      await driven.silent()
      driven.pass(1_000)
      await driven.holds()
      await driven.tick()
      await driven.silent()
    },
  },
  WaystationAttemptsFailing: {
    engines: both,
    async drive(driven) {
      const receiver = await startReceiver()
      const attempts = (well: number, failing: number) => async () => {
        for (let i = 0; i < well; i++) await driven.schedule(receiver.url)
        for (let i = 0; i < failing; i++) await driven.schedule()
        await driven.tick()
      }
      await driven.minutes(3, attempts(1, 1))
      await driven.silent()
      await driven.minutes(1, attempts(1, 2))
      await driven.holds()
      await receiver.stop()
    },
  },
  WaystationLeasesExpired: {
    engines: both,
    async drive(driven) {
      const { service, tenant } = driven
      await driven.schedule()
      await driven.tick()
      await driven.silent()
      const id = await driven.schedule()
      await service.app.db.write((tx) =>
        jobs.lease(tx, tenant.tenant_id, schedule_job, [id], tx.now + lease_ms),
      )
      driven.pass(lease_ms)
      await driven.tick()
      await driven.holds()
    },
  },
  WaystationSweepStopped: {
    engines: both,
    async drive(driven) {
      await driven.minutes(20, () => driven.tick())
      await driven.silent()
      await driven.minutes(16)
      await driven.holds()
      await driven.minutes(1, () => driven.tick())
      await driven.silent()
      await driven.without('kv_entries', () => driven.minutes(16, () => driven.tick()))
      await driven.holds() // each step of it fails
    },
  },
  WaystationBackgroundFailing: {
    engines: both,
    async drive(driven) {
      const failures = async () => (await driven.scraped()).sum('waystation_background_errors_total')!
      await driven.without('jobs', async () => {
        while ((await failures()) < 5) await driven.tick()
        expect(await failures()).toBe(5)
        await driven.minutes(1)
        await driven.silent()
        await driven.minutes(1, () => driven.tick())
        await driven.holds()
      })
      await driven.minutes(10)
      await driven.silent()
    },
  },
  WaystationWorkerRestarted: {
    engines: ['sqlite'],
    async drive(driven) {
      const { supervisor, ends } = supervised()
      driven.target = async () => (await exposition(await supervisor.collect(), null)).text
      await supervisor.start()
      await driven.minutes(1)
      await driven.silent()
      ends[0]!(1)
      await until(() => ends.length === 2)
      await driven.minutes(1)
      await driven.holds()
      await supervisor.stop()
    },
  },
  WaystationFilesRunningOut: {
    engines: ['sqlite'],
    slow: true,
    async drive(driven) {
      const port = await freePort()
      const [files_max, url] = [256, `http://127.0.0.1:${port}/metrics`]
      const program = `ulimit -n ${files_max} && exec ${process.execPath} src/main.ts`
      const environment = { DATA_DIR: join(driven.folder, 'data'), METRICS: `127.0.0.1:${port}` }
      const server = await startServer(environment, ['bash', '-c', program])
      driven.target = async () => (await fetch(url)).text()
      const connections: Awaited<ReturnType<typeof connectTo>>[] = []
      const opens = async (share: number) => {
        const open = async () => (await driven.scraped()).sum('process_open_fds')!
        while ((await open()) <= share * files_max) connections.push(await connectTo(server.url))
      }
      await opens(0.6)
      await driven.silent()
      await opens(0.8)
      await driven.holds()
      for (const connection of connections) connection.end()
      await server.stop()
    },
  },
  WaystationBackupLate: {
    engines: both,
    async drive(driven) {
      const first = await driven.backUp()
      driven.pass(9 * hour_ms)
      await driven.silent()
      driven.pass(1_000)
      await driven.holds()
      const second = await driven.backUp()
      await driven.silent()
      rmSync(`${second}.sha256`)
      await driven.holds()
      rmSync(second)
      rmSync(first)
      await driven.holds() // there is none
      await driven.backUp()
      await driven.silent()
    },
  },
  WaystationRowSecurityOff: {
    engines: ['postgres'],
    // A table that is in use when the service starts, and free at a later look. Behind a pooler the server gives the role.
    async drive(driven) {
      const { service } = driven
      const database_url = ownerUrlOf(service.database_url)
      await driven.silent()
      await service.app.stop()
      const all = new SQL({ url: database_url, max: 1 })
      await all`drop policy waystation_of_tenant on agents`
      const reader = await all.reserve()
      await reader.unsafe('begin; select 1 from agents limit 1').simple()
      await service.start(database_url)
      await driven.holds()
      await reader.unsafe('rollback')
      await reader.release()
      await all.close()
      await service.app.late_rows!.secure()
      await driven.silent()
    },
  },
}

/** A service that is started again on a file some of whose pages are not what was written. */
async function damage({ service, tenant }: Driven): Promise<void> {
  const value = 'v'.repeat(3_000)
  for (let i = 0; i < 100; i++)
    await service.ask('PUT', `/v1/kv/ns/k${i}`, { key: tenant.api_key, body: { value } })
  await service.app.stop()
  const file = service.database_url.slice('sqlite:'.length)
  const bytes = readFileSync(file)
  // Pages of values: a file whose schema cannot be read is not opened.
  for (let page = 0, damaged = 0; damaged < 20; page++) {
    const content = bytes.subarray(page * 4_096, (page + 1) * 4_096)
    if (!content.includes(value.slice(0, 1_000))) continue
    content.fill(0xa5, 0, 64)
    damaged += 1
  }
  writeFileSync(file, bytes)
  await service.start(service.database_url)
}

/** A supervisor of one worker, and how each that it started is ended. */
function supervised() {
  const ends: ((code: number) => void)[] = []
  const supervisor = new Supervisor({
    workers: 1,
    clock: new TestClock(),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    start(_, onMessage) {
      const { promise: exited, resolve } = Promise.withResolvers<number>()
      ends.push(resolve)
      queueMicrotask(() => onMessage({ type: 'ready', address: 'http://worker', is_polled: false }))
      const send = (message: { type: string; id?: number }) => {
        if (message.type === 'drain') resolve(0)
        if (message.type === 'collect') onMessage({ type: 'figures', id: message.id!, figures: [] })
      }
      return { send, kill: () => resolve(137), exited }
    },
  })
  return { supervisor, ends }
}

function connectTo(url: string) {
  const { hostname, port } = new URL(url)
  return Bun.connect({ hostname, port: Number(port), socket: { data() {} } })
}
