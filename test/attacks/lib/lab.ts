// The tools of an attack: services, tenants, probes and loads of one engine, all of which end with it.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { databaseFolder } from '../../support/folders.ts'
import { administer, type Cluster, startCluster } from '../../support/postgres.ts'
import { boundsOf, type Engine, holds, type Limits, type Line, type Spread, spreadOf } from './figures.ts'
import { Receiver } from './late.ts'
import { runLoad, shown } from './load.ts'
import type { LoadResult, LoadSpec } from './load-process.ts'
import { Probe } from './probe.ts'
import { type Service, type ServiceOptions, spawnService, startService, Tenant } from './service.ts'
import { attacker_address, good_address, requestBytes, Wire } from './wire.ts'

export interface Attack {
  /** The name of the file. */
  name: string
  /** One sentence: what the attacker does. */
  about: string
  engines: readonly Engine[]
  /** An attack that takes longer on one engine is ended, and has failed. */
  seconds_max: number
  /** Why this machine cannot run it, or null. */
  missing?: () => string | null
  run(lab: Lab): Promise<void>
}

/** A tenant that behaves, with its probe. */
export interface Good {
  tenant: Tenant
  probe: Probe
  before: Spread
  service: Service
}

interface GoodOptions {
  interval_ms?: number
  /** Instead of a read of a key. */
  request?: { method: string; path: string; body?: string }
}

type StartOptions = Partial<Omit<ServiceOptions, 'root'>>
type Load = Omit<LoadSpec, 'port' | 'from'> & { from?: string; served?: Served }

/** How often the attacker must be served: one that is refused shows nothing. */
interface Served {
  status: number
  /** Where it is 0, and where the load hears no answers, each request is made once before instead. */
  least: number
}

const quiet_ms = 1_500
const settle_ms = 250
/** The least time over which the latencies beside an attack are taken. */
const measured_ms_min = 5_000
const settle_tries_max = 20
const settled_ms_max = 50

export class Lab {
  readonly lines: Line[] = []
  #closing: (() => Promise<unknown>)[] = []
  #cluster: Cluster | null = null
  #ended = false

  constructor(
    readonly attack: string,
    readonly engine: Engine,
    /** The checkout that is attacked. */
    readonly root: string,
    readonly cluster: () => Promise<Cluster>,
    readonly onLine: (line: Line) => void,
  ) {}

  /** A new folder for data, gone at the end. */
  folder(): string {
    const folder = databaseFolder()
    this.onEnd(async () => rmSync(folder, { recursive: true, force: true }))
    return folder
  }

  /** Where a service keeps its data: a new folder, and a new database of the engine. */
  async place(): Promise<{ folder: string; database_url: string }> {
    const folder = this.folder()
    if (this.engine === 'sqlite') return { folder, database_url: `sqlite:${join(folder, 'waystation.db')}` }
    const { base_url } = await this.postgres()
    const name = `attack_${crypto.randomUUID().replaceAll('-', '')}`
    await administer(base_url, `create database ${name}`)
    this.onEnd(() => administer(base_url, `drop database if exists ${name} with (force)`))
    return { folder, database_url: `${base_url}/${name}` }
  }

  /** The run's PostgreSQL; or one of this attack's own, which it may break. */
  async postgres(own = false): Promise<Cluster> {
    if (this.#cluster) return this.#cluster
    if (!own) return this.cluster()
    const cluster = await startCluster()
    this.#cluster = cluster
    this.onEnd(() => cluster.stop())
    return cluster
  }

  /** A service with default settings, on a new database unless the options name one. */
  async service(options: StartOptions = {}): Promise<Service> {
    const service = await startService(await this.#settings(options))
    this.onEnd(() => service.stop())
    return service
  }

  /** Starts one that may refuse; `printed` is what it told on stdout. */
  async spawn(options: StartOptions = {}) {
    const spawned = spawnService(await this.#settings(options))
    this.onEnd(async () => spawned.child.kill('SIGKILL'))
    return spawned
  }

  async #settings(options: StartOptions): Promise<ServiceOptions> {
    this.#mustGoOn()
    const place = options.folder && options.database_url ? null : await this.place()
    this.#mustGoOn()
    return { ...place, ...options, root: this.root } as ServiceOptions
  }

  tenant(service: { url: string }, plan = 'pro', name = 'tenant'): Promise<Tenant> {
    return Tenant.signUp(service.url, plan, name)
  }

  /** A tenant whose requests are measured from now on. Answers after a quiet while, which is what they cost alone. */
  async good(service: Service, { interval_ms = 20, request }: GoodOptions = {}): Promise<Good> {
    const tenant = await this.tenant(service, 'pro', 'good')
    await tenant.ask('PUT', '/v1/kv/ns/k', { value: 1 })
    const { method, path, body } = request ?? { method: 'GET', path: '/v1/kv/ns/k' }
    const spec = tenant.request(method, path, body)
    const probe = Probe.start({ ...spec, port: service.port, from: good_address, interval_ms })
    this.onEnd(() => probe.stop())
    await Bun.sleep(quiet_ms / 3)
    await probe.take() // the first requests open connections and fill caches
    await Bun.sleep(quiet_ms)
    return { tenant, probe, before: spreadOf((await probe.take()).latencies_ms), service }
  }

  /** Throws when the attacker was not served as often as it must be. */
  async load(service: { port: number }, { served, ...load }: Load): Promise<LoadResult> {
    this.#mustGoOn()
    const spec = { from: attacker_address, ...load, port: service.port }
    const heard = spec.manner === 'answers' || spec.manner === 'opens'
    if (served && (!heard || served.least === 0)) await requireServed(spec, served.status)
    const result = await runLoad(spec)
    if (served && heard) expectServed(result, served)
    return result
  }

  receiver(): Receiver {
    const receiver = Receiver.start()
    this.onEnd(() => receiver.stop())
    return receiver
  }

  /**
   * Measures what `action` does to the other tenant and to the memory, and judges it. The action's text is the note; a
   * spread is how late others' callbacks were.
   */
  async during(
    what: string,
    good: Good,
    action: () => Promise<string | { note: string; late?: Spread }>,
    limits: Limits = {},
  ): Promise<Line> {
    this.#mustGoOn()
    const { service, probe } = good
    await this.#settled(good)
    service.resetPeak()
    const { now_mb } = service.rss()
    let result: { note: string; late?: Spread; failed?: boolean }
    try {
      // With a few dozen samples a p99 would be the slowest of them, which has a bound of its own.
      const [told] = await Promise.all([action(), Bun.sleep(measured_ms_min)])
      result = typeof told === 'string' ? { note: told } : told
    } catch (error) {
      result = { note: `failed: ${(error as Error).message}`, failed: true }
    }
    const taken = await probe.take()
    const seen = {
      good: spreadOf(taken.latencies_ms),
      good_errors: taken.errors,
      late: result.late ?? null,
      rss_peak_mb: service.rss().peak_mb,
    }
    const ended = service.ended()
    const bounds = boundsOf(seen, limits)
    const notes = [
      result.note,
      ended === null ? '' : `the service ${ended}`,
      taken.told.length > 0 ? `good got: ${taken.told.join(', ')}` : '',
    ]
    return this.#line({
      what,
      ...seen,
      good_before: good.before,
      rss_before_mb: now_mb,
      bounds,
      verdict: bounds.every(holds) && ended === null && !result.failed ? 'ok' : 'FAILED',
      note: notes.filter((note) => note !== '').join('; '),
    })
  }

  /** Waits a while for the requests that the last measurement left under way, so that they do not count in this one. */
  async #settled({ probe, service }: Good): Promise<void> {
    for (let tries = 0; tries < settle_tries_max && service.ended() === null; tries++) {
      await probe.take()
      await Bun.sleep(settle_ms)
      const { latencies_ms, errors } = await probe.take()
      if (errors === 0 && spreadOf(latencies_ms).max <= settled_ms_max) return
    }
  }

  /** A measurement that is not a latency: figures, each with the most it may be, and perhaps the least. */
  bound(
    what: string,
    figures: Record<string, [value: number, most: number, least?: number]>,
    note = '',
  ): Line {
    const bounds = Object.entries(figures).map(([figure, [value, most, least]]) => ({
      ...{ figure, value, most },
      ...(least === undefined ? {} : { least }),
    }))
    return this.#line({
      ...{ what, bounds, note },
      verdict: bounds.every(holds) ? 'ok' : 'FAILED',
    })
  }

  /** Something that holds or not. */
  check(what: string, ok: boolean, note: string): Line {
    return this.#line({ what, verdict: ok ? 'ok' : 'FAILED', note })
  }

  skip(what: string, why: string): Line {
    return this.#line({ what, verdict: 'skipped', note: why })
  }

  #line(line: Pick<Line, 'what' | 'verdict' | 'note'> & Partial<Line>): Line {
    this.#mustGoOn()
    const whole: Line = {
      ...{
        attack: this.attack,
        engine: this.engine,
        good_before: null,
        good: null,
        good_errors: 0,
        late: null,
      },
      ...{ rss_before_mb: null, rss_peak_mb: null, bounds: [], ...line },
    }
    this.lines.push(whole)
    this.onLine(whole)
    return whole
  }

  /** Undone when the attack ends, the last first. What comes to be after that is undone at once. */
  onEnd(undo: () => Promise<unknown>): void {
    if (this.#ended) void undo().catch(() => {})
    else this.#closing.push(undo)
  }

  /** An attack that took too long still runs, and must not disturb the next one. */
  #mustGoOn(): void {
    if (this.#ended) throw new Error('the attack has ended')
  }

  async end(): Promise<void> {
    this.#ended = true
    for (const undo of this.#closing.reverse()) await undo().catch(() => {})
    this.#closing = []
  }
}

async function requireServed({ port, from, requests }: LoadSpec, status: number): Promise<void> {
  for (const { method, path, headers, body } of requests) {
    const wire = await Wire.connect(port, { from })
    const answer = await wire.ask(requestBytes(method, path, headers, body))
    wire.reset()
    if (answer.status !== status)
      throw new Error(`${method} ${path.slice(0, 80)} answered ${answer.status}, not ${status}`)
  }
}

function expectServed(result: LoadResult, { status, least }: Served): void {
  if ((result.answers[status] ?? 0) < least)
    throw new Error(`the attacker got fewer than ${least} answers of ${status}: ${shown(result)}`)
}
