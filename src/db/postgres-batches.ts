// Batches of writes: what arrives while a batch of its line is under way is the next batch. A write that makes its batch
// fail runs alone, as the others of that batch do, and for a moment so do those that follow it.

import type { ReservedSQL } from 'bun'
import { limit } from '../base/limit.ts'
import { isPatient, runEffects, type Turn } from './db.ts'
import {
  BatchFailed,
  type Ended,
  LineLocked,
  type Member,
  Session,
  type Surroundings,
} from './postgres-batch.ts'
import { Line, type LinePlace, placeOf } from './postgres-lines.ts'
import { waiting_max } from './postgres-permits.ts'
import { WriteRoom } from './sqlite-room.ts'

const alone_ms = limit(
  'postgres.alone_after_failure',
  1_000,
  'milliseconds',
  'How long the writes of a tenant have transactions of their own after one made its batch fail, so that few writes of others fail with it. Doubled each time that this happens again within that time.',
)
const alone_ms_max = limit(
  'postgres.alone_after_failures',
  60_000,
  'milliseconds',
  'The longest time for which the writes of a tenant have transactions of their own.',
)
const unlocked_ms = limit(
  'postgres.alone_after_lock',
  5_000,
  'milliseconds',
  'How long the writes of a line have transactions of their own after its lock could not be taken, as while another node hangs.',
)
const shared_ms = limit(
  'postgres.batches_shared',
  1_000,
  'milliseconds',
  'For how long after the writes of two tenants one of them gets no more than postgres.batch_writes_of_tenant in a batch.',
)
const remembered_max = limit(
  'postgres.alone_remembered',
  10_000,
  'entries',
  'Tenants that are remembered because their writes made a batch fail; past it the oldest are forgotten.',
)

export interface Host {
  readonly around: Surroundings
  /** Waits for a connection in fair order. */
  connected<T>(key: string, action: (connection: ReservedSQL) => Promise<T>): Promise<T>
  /** True when others wait for a connection that would get one of a batch. */
  hasReady(): boolean
  /** Runs a write in a transaction of its own. */
  alone(member: Member): Promise<unknown>
}

export class Batches {
  /** By name. */
  readonly #lines = new Map<string, Line>()
  readonly #room = new WriteRoom(waiting_max)
  #last_key: string | null = null
  /** Until then more than one tenant writes. */
  #shared_until = Number.NEGATIVE_INFINITY
  /** Tenants, and lines, with the time until which their writes run alone and how long that is, the oldest first. */
  readonly #alone = new Map<string, { until: number; ms: number }>()

  constructor(
    private readonly host: Host,
    private readonly passing_max: number,
  ) {}

  /** Writes that wait for a batch. */
  get waiting(): number {
    return this.#room.waiting
  }

  /** Runs a write in a transaction of its own when it need not wait for a batch; null when it waits for one. */
  pass<T>({ key, batch }: Turn, run: () => Promise<T>): Promise<T> | null {
    if (batch === undefined) return run()
    this.#noteWriter(key)
    const place = this.#placeOf(batch.line)
    if (this.#isAlone(batch.line) || this.#isAlone(place.name)) return run()
    const line = this.#lineAt(place)
    return line.mayPass(this.passing_max) ? this.#passIn(line, run) : null
  }

  #noteWriter(key: string): void {
    if (key === this.#last_key) return
    if (this.#last_key !== null) this.#shared_until = this.#monotonic() + shared_ms
    this.#last_key = key
  }

  #placeOf(tenant: string): LinePlace {
    return placeOf(tenant, this.host.around.traffic.dialect)
  }

  #lineAt(place: LinePlace): Line {
    return this.#lines.getOrInsertComputed(place.name, () => new Line(place))
  }

  #passIn<T>(line: Line, run: () => Promise<T>): Promise<T> {
    const passed = line.pass(run)
    if (this.host.around.traffic.dialect === 'postgres') return passed
    return passed.finally(() => this.#forgetIdle(line))
  }

  /** Tenants are many: a line that is a tenant's is kept while it is used. */
  #forgetIdle(line: Line): void {
    if (this.host.around.traffic.dialect === 'citus' && line.isIdle) this.#lines.delete(line.place.name)
  }

  #isAlone(key: string): boolean {
    if (this.#alone.size === 0) return false
    const known = this.#alone.get(key)
    return known !== undefined && this.#monotonic() < known.until
  }

  /** False when too many wait. */
  enter(member: Member): boolean {
    const { key, group, batch } = member.turn
    if (!this.#room.enter(key, group, isPatient(member.turn))) return false
    const line = this.#lineAt(this.#placeOf(batch!.line))
    line.add(member)
    this.#startSoon(line)
    return true
  }

  /** Its caller waits no more. False when it is part of a batch already. */
  leave(member: Member): boolean {
    const { turn } = member
    const waited = this.#lines.get(this.#placeOf(turn.batch!.line).name)?.remove(member) ?? false
    if (waited) this.#room.leave(turn.key, turn.group)
    return waited
  }

  /** Within this turn of the event loop, so that what arrives with it comes along. */
  #startSoon(line: Line): void {
    if (line.busy) return
    line.busy = true
    setImmediate(() => this.#run(line))
  }

  async #run(line: Line): Promise<void> {
    while (!line.isEmpty && !line.isQuiet(this.passing_max)) {
      await this.host
        .connected(line.place.name, (connection) => this.#runOn(connection, line))
        .catch((error) => this.#refuse(line, error))
    }
    line.busy = false
    while (!line.isEmpty)
      for (const member of this.#takeFrom(line)) void this.#passIn(line, () => this.#settleAlone(member))
    this.#forgetIdle(line)
  }

  /** No connection was to be had: those that wait are told so. */
  #refuse(line: Line, error: unknown): void {
    for (const member of this.#takeFrom(line)) member.reject(error)
  }

  #takeFrom(line: Line): Member[] {
    const members = line.take(this.#monotonic() < this.#shared_until)
    for (const { turn } of members) this.#room.leave(turn.key, turn.group)
    return members
  }

  /**
   * Batch after batch, until none waits or others wait for a connection. As many as the keys that wait need go on in any
   * case: in the queue for connections all of them weigh as one.
   */
  async #runOn(connection: ReservedSQL, line: Line): Promise<void> {
    const { traffic } = this.host.around
    const session = new Session(connection, line.place.lock, this.host.around)
    let answered = Promise.resolve()
    let due = line.batches_due
    let is_lost = false
    do {
      due -= 1
      const members = this.#takeFrom(line)
      const began = this.#monotonic()
      try {
        const ready = await session.run(members)
        const goes_on = session.overlaps && this.#goesOn(line, due)
        answered = session.commit(ready, goes_on).then(
          () => {
            traffic.measures?.committed(members.length, this.#monotonic() - began)
            this.#settle(members, ready.ended)
          },
          (error) => {
            is_lost = !(error instanceof BatchFailed)
            this.#fail(members, line, error)
          },
        )
        if (!goes_on) await answered
      } catch (error) {
        this.#fail(members, line, error)
        if (!(error instanceof BatchFailed)) break
      }
    } while (!is_lost && this.#goesOn(line, due))
    await answered
  }

  #goesOn(line: Line, due: number): boolean {
    return !line.isEmpty && !line.isQuiet(this.passing_max) && (due > 0 || !this.host.hasReady())
  }

  #fail(members: readonly Member[], line: Line, error: unknown): void {
    if (!(error instanceof BatchFailed)) {
      for (const member of members) member.reject(error)
      return
    }
    for (const key of error.culprits) this.#runAlone(key, this.#msAlone(key, 2))
    if (error instanceof LineLocked) this.#runAlone(line.place.name, unlocked_ms)
    for (const member of members) void this.#settleAlone(member)
  }

  #settle(members: readonly Member[], ended: readonly Ended[]): void {
    for (const end of ended) if (end !== 'alone' && 'effects' in end) runEffects(end.effects)
    members.forEach((member, i) => {
      const end = ended[i]!
      if (end === 'alone') {
        const { line } = member.turn.batch!
        this.#runAlone(line, this.#msAlone(line, 1))
        void this.#settleAlone(member)
      } else if ('effects' in end) member.resolve(end.value)
      else member.reject(end.error)
    })
  }

  async #settleAlone(member: Member): Promise<void> {
    if (member.call.abandoned) return
    member.call.committing = false
    await this.host.alone(member).then(member.resolve, member.reject)
  }

  /** How long a tenant's writes run alone: `growth` times as long as the last time, unless that is longer ago than it was. */
  #msAlone(key: string, growth: 1 | 2): number {
    const known = this.#alone.get(key)
    const now = this.#monotonic()
    if (known === undefined || now >= known.until + known.ms) return alone_ms
    // While it runs alone it was part of a batch already.
    return now < known.until ? known.ms : Math.min(growth * known.ms, alone_ms_max)
  }

  #runAlone(key: string, ms: number): void {
    this.#alone.delete(key)
    this.#alone.set(key, { until: this.#monotonic() + ms, ms })
    if (this.#alone.size <= remembered_max) return
    this.#alone.delete(this.#alone.keys().next().value!)
  }

  #monotonic(): number {
    return this.host.around.clock.monotonic()
  }
}
