// One node's worker on a database of its own: its clock moves when told, its receivers answer when told, and the test
// knows when nothing is in flight any more. So nothing here sleeps, and nothing depends on how fast a machine is.

import { KeyedSemaphore } from '../../src/base/keyed-semaphore.ts'
import { MemoryBudget, memory_bytes_default } from '../../src/base/memory.ts'
import { Notifier } from '../../src/base/notifier.ts'
import { Remembered } from '../../src/base/remembered.ts'
import type { Failure, Outcome, Outgoing } from '../../src/callbacks/attempt.ts'
import type { AgentCaller } from '../../src/contract/caller.ts'
import type { Dependencies } from '../../src/contract/dependencies.ts'
import { service_cause } from '../../src/contract/event.ts'
import { Tails } from '../../src/contract/tails.ts'
import { keyCache } from '../../src/credentials/cache.ts'
import { type Reader, type Statement, unnamedAcrossTenants, upkeep, type Value } from '../../src/db/db.ts'
import {
  counted_quotas,
  deadlines,
  decides,
  default_plans,
  event_types,
  features,
  follows,
  job_kinds,
  redrives,
} from '../../src/features.ts'
import { type JobKind, kindsOf } from '../../src/jobs/kind.ts'
import type { JobMeasures } from '../../src/jobs/measures.ts'
import * as store from '../../src/jobs/store.ts'
import { JobTimer } from '../../src/jobs/timer.ts'
import { JobWorker } from '../../src/jobs/worker.ts'
import { JournalKeeper } from '../../src/journal/keeper.ts'
import { journalReader } from '../../src/journal/service.ts'
import { Maintenance } from '../../src/maintenance/tick.ts'
import * as quotas from '../../src/quotas/service.ts'
import { cursorKeyUnder, secretsUnder } from '../../src/secrets/service.ts'
import * as tenants from '../../src/tenants/service.ts'
import { usageCounts } from '../../src/usage/service.ts'
import { TestClock } from './clock.ts'
import type { TestDatabases } from './databases.ts'
import { QuietDb } from './quiet-db.ts'
import { requested } from './requested.ts'

const secret_key = 'the key of every node in tests'

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
  /** The time that each answer reports. */
  duration_ms = 7
  /** Returns the immediate answer; null holds the request. */
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

/** The parts of a node that run on their own. */
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

interface Given {
  internal?: boolean
  fence_step?: number
  measures?: JobMeasures
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
    const journal = new JournalKeeper({
      db,
      follows,
      internal: false,
      held: () => false,
      onError: (error) => bench.errors.push(error),
    })
    const notifier = new Notifier()
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
      urls: {
        public_url: () => 'http://127.0.0.1:8420',
        callbackRefusal: async () => null,
        isOwnInbox: async () => false,
      },
      shared: {
        notifier,
        tails: new Tails(journalReader(db, journal), notifier),
        semaphore: new KeyedSemaphore(clock),
        memory: new MemoryBudget(clock, memory_bytes_default),
        tokens: new Remembered(10),
      },
      journal,
      test_clock: null,
      event_types,
      jobs: {
        wake: (due_at) => bench.woken.push(due_at),
        pauseOrResume: () => {
          bench.pauses += 1
        },
        tick: async () => ({ counts: {}, tenants_purged: 0, duration_ms: 0 }),
      },
      redrives,
      decides,
      deadlines,
      service: {
        signup_open: true,
        default_plan: 'free',
        plans_open: ['free'],
        plans_local: [],
        sends_mail: false,
        quarantine: { since: null },
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
    journal.connect(bench.dependencies)
    return bench
  }

  /** The worker of one more node. */
  worker({ internal = true, fence_step = 1, measures }: Given = {}): JobWorker {
    const { db, clock, dependencies } = this
    const worker = new JobWorker({
      ...{ db, clock, dependencies, internal, kinds: job_kinds, fence_step, measures },
      send: (_, request) => this.network.send(request as Outgoing),
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
    const pauseOrResumeStep = (after_tenant_id: string) =>
      tenants.pauseOrResumeStep(db, this.dependencies, after_tenant_id)
    const timer = new JobTimer({ db, clock, worker, internal, pauseOrResumeStep, onError })
    const maintenance = new Maintenance({
      db,
      clock,
      worker,
      timer,
      journal: { tick: async () => {} },
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

  /** A new active tenant with an empty journal, as one of its agents. */
  async tenant(plan = 'enterprise'): Promise<AgentCaller> {
    const name = `t-${crypto.randomUUID().slice(0, 13)}`
    const { tenant } = await this.db.write((tx) =>
      tenants.create(tx, this.dependencies, { name, owner_email: 'owner@example.com', plan }, service_cause),
    )
    const { tenant_id } = tenant
    await this.write('delete from events where tenant_id = :tenant_id', { tenant_id })
    return { kind: 'agent', tenant_id, plan, status: 'active', agent_id: 'agent-one', ...requested }
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
    return this.db.write(upkeep, async (tx) => tx.run(unnamedAcrossTenants('test.write', text), params))
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
  const statement = selects.get(text) ?? unnamedAcrossTenants<unknown>('test.select', text)
  selects.set(text, statement)
  return db.all(statement as Statement<Row>, params)
}
