// One node's worker on a database of its own: its clock moves when told, its receivers answer when told, and the test
// knows when nothing is in flight any more. So nothing here sleeps, and nothing depends on how fast a machine is.

import { KeyedSemaphore } from '../../src/base/keyed-semaphore.ts'
import { MemoryBudget, memory_bytes_default } from '../../src/base/memory.ts'
import { Notifier } from '../../src/base/notifier.ts'
import { Remembered } from '../../src/base/remembered.ts'
import type { Failure, Outcome, Outgoing } from '../../src/callbacks/attempt.ts'
import type { AgentCaller } from '../../src/contract/caller.ts'
import type { Dependencies } from '../../src/contract/dependencies.ts'
import { keyCache } from '../../src/credentials/cache.ts'
import {
  type Awaitable,
  type Db,
  type Owner,
  type Params,
  type Reader,
  type Statement,
  type StoredCounter,
  type Tx,
  turnOf,
  unnamed,
  upkeep,
  type Value,
} from '../../src/db/db.ts'
import { counted_quotas, default_plans, features, job_kinds, redrives } from '../../src/features.ts'
import { type JobKind, kindsOf } from '../../src/jobs/kind.ts'
import * as store from '../../src/jobs/store.ts'
import { JobTimer } from '../../src/jobs/timer.ts'
import { JobWorker } from '../../src/jobs/worker.ts'
import { Maintenance } from '../../src/maintenance/tick.ts'
import * as quotas from '../../src/quotas/service.ts'
import { cursorKeyUnder, secretsUnder } from '../../src/secrets/service.ts'
import * as tenants from '../../src/tenants/service.ts'
import { usageCounts } from '../../src/usage/service.ts'
import { TestClock } from './clock.ts'
import type { TestDatabases } from './databases.ts'

const secret_key = 'the key of every node in tests'

type Listener = (name: string) => void

/** Knows whether anything that was asked of the database is still unanswered. */
export class QuietDb implements Db {
  readonly engine: Db['engine']
  readonly clock: Db['clock']
  #pending = 0
  /** Statements that are to fail, by name. */
  readonly failing = new Set<string>()
  /** Called before each of these fails. */
  onFailing: () => void = () => {}
  /** Called with the name of each single read before it runs; may throw. */
  onRead: Listener = () => {}

  constructor(private readonly db: Db) {
    this.engine = db.engine
    this.clock = db.clock
  }

  async one<Row>(statement: Statement<Row>, params: Params): Promise<Row | null> {
    return this.#counted(async () => {
      this.onRead(statement.name)
      return this.db.one(statement, params)
    })
  }

  async all<Row>(statement: Statement<Row>, params: Params): Promise<Row[]> {
    return this.#counted(async () => {
      this.onRead(statement.name)
      return this.db.all(statement, params)
    })
  }

  read<T>(owner: Owner | ((q: Reader) => Awaitable<T>), given?: (q: Reader) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#counted(() => this.db.read(turn, work))
  }

  storedBytes(tenant_id: string, counter: StoredCounter): number {
    return this.db.storedBytes(tenant_id, counter)
  }

  notify(text: string): Promise<void> {
    return this.db.notify(text)
  }

  maintain(): Promise<void> {
    return this.db.maintain()
  }

  faults(): Promise<string[]> {
    return this.db.faults()
  }

  trouble() {
    return this.db.trouble()
  }

  write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#counted(() =>
      this.db.write(turn, (tx) =>
        work(this.failing.size === 0 ? tx : new FailingTx(tx, this.failing, () => this.onFailing())),
      ),
    )
  }

  async #counted<T>(action: () => Promise<T>): Promise<T> {
    this.#pending += 1
    try {
      return await action()
    } finally {
      this.#pending -= 1
    }
  }

  /** Resolves when nothing is asked of the database, and nobody was about to ask. */
  async quiet(): Promise<void> {
    for (let turns = 0; turns < 3; turns = this.#pending === 0 ? turns + 1 : 0) await nextTurn()
  }

  durability() {
    return this.db.durability()
  }

  onStatement(listener: Listener | null): void {
    this.db.onStatement(listener)
  }

  close(): Promise<void> {
    return this.db.close()
  }
}

/** A transaction in which some statements fail. */
class FailingTx implements Tx {
  readonly now: number
  readonly disk_full: boolean
  readonly beside: number

  constructor(
    private readonly tx: Tx,
    private readonly failing: ReadonlySet<string>,
    private readonly onFailing: () => void,
  ) {
    this.now = tx.now
    this.disk_full = tx.disk_full
    this.beside = tx.beside
  }

  one<Row>(statement: Statement<Row>, params: Params) {
    this.#mayFail(statement)
    return this.tx.one(statement, params)
  }

  all<Row>(statement: Statement<Row>, params: Params) {
    this.#mayFail(statement)
    return this.tx.all(statement, params)
  }

  run(statement: Statement, params: Params) {
    this.#mayFail(statement)
    return this.tx.run(statement, params)
  }

  afterCommit(effect: () => void): void {
    this.tx.afterCommit(effect)
  }

  stores(tenant_id: string, bytes: number): void {
    this.tx.stores(tenant_id, bytes)
  }

  stored(tenant_id: string, counted: StoredCounter): number {
    return this.tx.stored(tenant_id, counted)
  }

  #mayFail({ name }: Statement<unknown>): void {
    if (!this.failing.has(name)) return
    this.onFailing()
    throw new Error(`${name} fails`)
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A request that the worker has sent and that nobody has answered yet. */
export interface Sent {
  url: string
  headers: Record<string, string>
  body: string
}

type Verdict = number | Failure

/** Stands in for the network. Holds every request until the test answers it, unless told what to answer at once. */
export class Network {
  /** Every request so far, in the order of their sending. */
  readonly sent: Sent[] = []
  readonly #held = new Map<Sent, (outcome: Outcome) => void>()
  /** What each answer says of the time that it took. */
  duration_ms = 7
  /** What to answer at once; null holds the request. */
  answer: (request: Sent) => Verdict | null = () => null

  send({ url, headers, body }: Outgoing): Promise<Outcome> {
    const request = { url, headers, body: Buffer.from(body).toString() }
    this.sent.push(request)
    const verdict = this.answer(request)
    if (verdict !== null) return Promise.resolve(outcomeOf(verdict, this.duration_ms))
    return new Promise((resolve) => this.#held.set(request, resolve))
  }

  /** Requests in flight. */
  get held(): Sent[] {
    return [...this.#held.keys()]
  }

  /** Answers a request that is held: with a status, or with a failure. */
  settle(request: Sent, verdict: Verdict): void {
    this.#held.get(request)!(outcomeOf(verdict, this.duration_ms))
    this.#held.delete(request)
  }
}

function outcomeOf(verdict: Verdict, duration_ms: number): Outcome {
  if (typeof verdict !== 'number') return { ok: false, status: null, error: verdict, duration_ms }
  const ok = verdict >= 200 && verdict < 300
  return { ok, status: verdict, error: ok ? null : 'status', duration_ms }
}

export interface JobRow {
  source_id: string
  kind: string
  event_id: string
  destination: string
  next_at: number
  lease_until: number
  fence: number
  attempts: number
  first_attempt_at: number | null
  paused: number
}

export const known_kinds = kindsOf(job_kinds)

/** A kind of job, by its name. */
export function kindOf(name: string): JobKind {
  return job_kinds.find((kind) => kind.name === name)!
}

/** What a node does by itself. */
export class TestNode {
  constructor(
    readonly worker: JobWorker,
    readonly timer: JobTimer,
    readonly maintenance: Maintenance,
  ) {}

  start(): void {
    this.maintenance.start()
  }

  /** As its route answers. */
  async tick(): Promise<object> {
    const { counts, ...rest } = await this.maintenance.tick()
    const groups = features
      .flatMap(({ counters = {}, sweep }) => [counters, sweep?.counters ?? {}])
      .flatMap((counters) => Object.entries(counters))
    const answer: Record<string, Record<string, number>> = {}
    for (const [group, names] of groups) {
      answer[group] ??= {}
      for (const name of names) answer[group][name] = counts[`${group}.${name}`] ?? 0
    }
    return { ...answer, ...rest }
  }

  stop(): Promise<void> {
    return this.maintenance.stop()
  }
}

/** A database with what workers need: their dependencies, their clock, and a network that the test answers for. */
export class Bench {
  readonly network = new Network()
  readonly woken: number[] = []
  /** How often a node was told to pause or resume jobs. */
  pauses = 0
  readonly errors: unknown[] = []
  readonly #workers: JobWorker[] = []

  private constructor(
    readonly db: QuietDb,
    readonly clock: TestClock,
    readonly dependencies: Dependencies,
  ) {}

  static async open(databases: TestDatabases): Promise<Bench> {
    const { db, clock } = await databases.open(new TestClock())
    const bench: Bench = new Bench(new QuietDb(db), clock, {
      clock,
      plans: default_plans,
      keys: {
        secrets: secretsUnder(secret_key),
        cache: keyCache(clock),
        cursor: cursorKeyUnder(secret_key),
      },
      counts: {
        calls: quotas.monthlyCalls(db, clock),
        usage: usageCounts(db),
        quotas: counted_quotas,
      },
      urls: { public_url: () => 'http://127.0.0.1:8420', callbackRefusal: async () => null },
      shared: {
        notifier: new Notifier(),
        semaphore: new KeyedSemaphore(clock),
        memory: new MemoryBudget(clock, memory_bytes_default),
        tokens: new Remembered(10),
      },
      jobs: {
        wake: (due_at) => bench.woken.push(due_at),
        pauseOrResume: () => {
          bench.pauses += 1
        },
        tick: async () => ({ counts: {}, tenants_purged: 0, duration_ms: 0 }),
      },
      redrives,
      service: {
        signup_open: true,
        default_plan: 'free',
        plans_open: ['free'],
        plans_local: [],
        readiness: async () => ({
          reason: null,
          version: '',
          engine: db.engine,
          schema_version: 0,
          durability: {},
        }),
        openapi_text: () => '',
      },
    })
    return bench
  }

  /** The worker of one more node. */
  worker({ internal = true }: { internal?: boolean } = {}): JobWorker {
    const { db, clock, dependencies } = this
    const worker = new JobWorker({
      ...{ db, clock, dependencies, internal, kinds: job_kinds },
      send: (_, request) => this.network.send(request),
      onStragglers: (tenant_ids) => tenants.pauseStragglers(db, dependencies, tenant_ids),
      onError: (error) => this.errors.push(error),
    })
    this.#workers.push(worker)
    return worker
  }

  /** One more node with all that it does by itself. */
  node({ internal = true }: { internal?: boolean } = {}): TestNode {
    const { db, clock } = this
    const onError = (error: unknown) => this.errors.push(error)
    const worker = this.worker({ internal })
    const pauseOrResumeStep = (after_tenant_id: string) => tenants.pauseOrResumeStep(db, after_tenant_id)
    const timer = new JobTimer({ db, clock, worker, internal, pauseOrResumeStep, onError })
    const maintenance = new Maintenance({
      db,
      clock,
      worker,
      timer,
      internal,
      onError,
      features,
      onPurged: () => {},
      onUndeclared(counter) {
        throw new Error(`no feature declares the counter ${counter}`)
      },
    })
    return new TestNode(worker, timer, maintenance)
  }

  /** Starts what is due; resolves when all that could be started is held by the network or has ended. */
  async dispatch(worker: JobWorker): Promise<void> {
    await worker.dispatch()
    await this.db.quiet()
  }

  /** Leases one job, as a node does that dies afterwards. */
  lease({ tenant_id, kind, source_id }: { tenant_id: string; kind: string; source_id: string }, ms: number) {
    return this.db.write((tx) => store.lease(tx, tenant_id, kindOf(kind), [source_id], tx.now + ms))
  }

  /** Answers requests in flight; resolves when what follows from that has happened as well. */
  async settle(verdict: Verdict, requests = this.network.held): Promise<void> {
    for (const request of requests) this.network.settle(request, verdict)
    await this.db.quiet()
  }

  /** Answers all that is in flight and all that follows, until nothing is left. */
  async drain(verdict: Verdict = 204): Promise<void> {
    while (this.network.held.length > 0) await this.settle(verdict)
  }

  /** Between two tests: ends what is in flight, and removes all jobs. */
  async clear(): Promise<void> {
    this.db.failing.clear()
    this.db.onFailing = () => {}
    this.db.onRead = () => {}
    this.network.answer = () => null
    this.network.duration_ms = 7
    let stopping = true
    const stopped = Promise.all(this.#workers.splice(0).map((worker) => worker.stop())).then(() => {
      stopping = false
    })
    while (stopping) {
      await this.drain()
      await this.db.quiet()
    }
    await stopped
    await this.write('delete from jobs')
    this.pauses = 0
    for (const kept of [this.network.sent, this.errors, this.woken]) kept.length = 0
  }

  /** A new active tenant, as one of its agents. */
  async tenant(plan = 'enterprise'): Promise<AgentCaller> {
    const name = `t-${crypto.randomUUID().slice(0, 13)}`
    const { tenant } = await this.db.write((tx) =>
      tenants.create(tx, this.dependencies, { name, owner_email: 'owner@example.com', plan }),
    )
    return { kind: 'agent', tenant_id: tenant.tenant_id, plan, status: 'active', agent_id: 'agent-one' }
  }

  async jobs(tenant_id: string): Promise<JobRow[]> {
    return this.rows<JobRow>(
      `select source_id, kind, event_id, destination, next_at, lease_until, fence, attempts, first_attempt_at, paused
         from jobs where tenant_id = :tenant_id order by source_id, kind`,
      { tenant_id },
    )
  }

  /** A statement of the test's own; answers how many rows it changed. */
  write(text: string, params: Record<string, Value> = {}): Promise<number> {
    // As upkeep, which may take its time: some write tens of thousands of rows.
    return this.db.write(upkeep, async (tx) => tx.run(unnamed('test.write', text), params))
  }

  /** The rows of a select of the test's own. */
  rows<Row>(text: string, params: Record<string, Value> = {}): Promise<Row[]> {
    return rowsOf<Row>(this.db, text, params)
  }
}

const selects = new Map<string, Statement<unknown>>()

export async function rowsOf<Row>(
  db: Reader,
  text: string,
  params: Record<string, Value> = {},
): Promise<Row[]> {
  const statement = selects.get(text) ?? unnamed<unknown>('test.select', text)
  selects.set(text, statement)
  return db.all(statement as Statement<Row>, params)
}
