// The supervisor of a service of several processes: starts them, starts them again when they crash, counts client
// addresses for all of them, and ends them together.

import { type AddressLimits, addressLimits } from '../app/admission.ts'
import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Log } from '../http/answers.ts'
import type { Counted } from '../http/limits.ts'
import type { Figure } from '../metrics/figure.ts'
import { WorkerFigures } from './figures.ts'
import type { FromWorker, LimitName, Ready, WorkerProcess } from './messages.ts'

const restart_ms_min = limit(
  'workers.restart_ms',
  200,
  'milliseconds',
  'How long a worker that crashed waits for its first restart; each further crash doubles it.',
)
const restart_ms_max = limit(
  'workers.restart_ms_max',
  10_000,
  'milliseconds',
  'The longest wait for the restart of a worker that crashes again and again.',
)
/** A worker that has served this long begins again with the shortest wait. */
const healthy_ms = 60_000
const releasable_max = limit(
  'workers.releasable',
  10_000,
  'entries',
  'Requests that were counted and may still be taken back, of each limit per client address.',
)
/** The steps of a stop and their margin: see src/app/stop.ts. */
const stop_ms_max = limit(
  'workers.stop_ms',
  20_000,
  'milliseconds',
  'How long a worker may take to stop. Past it the worker is killed.',
)

/** Starts the worker of this number. */
export type Start = (number: number, onMessage: (message: FromWorker) => void) => WorkerProcess

interface Slot {
  number: number
  child: WorkerProcess
  crashes: number
  /** It has said that it listens; before, it has taken no request that its end could cut off. */
  serves: boolean
}

export interface SupervisorOptions {
  workers: number
  start: Start
  clock: Clock
  log: Log
}

export class Supervisor {
  readonly #slots = new Map<number, Slot>()
  readonly #limits: AddressLimits
  readonly #releasable: Record<LimitName, Map<string, Counted>> = {
    sign_ups: new Map(),
    failed_keys: new Map(),
  }
  readonly #figures: WorkerFigures
  #stopping = false

  constructor(private readonly options: SupervisorOptions) {
    this.#limits = addressLimits(options.clock)
    this.#figures = new WorkerFigures(options.clock.now())
  }

  /**
   * Resolves when all have served, `is_polled` when it is true of each: the log says so of one. Resolves with null
   * when it is stopped before. Throws when one ends before it serves: its own line says why.
   */
  async start(): Promise<Ready | null> {
    const numbers = Array.from({ length: this.options.workers }, (_, i) => i + 1)
    try {
      const ready = await Promise.all(numbers.map((number) => this.#first(number)))
      if (this.#stopping) return null
      return { address: ready[0]!.address, is_polled: ready.every(({ is_polled }) => is_polled) }
    } catch (error) {
      if (this.#stopping) return null
      await this.stop()
      throw error
    }
  }

  async #first(number: number): Promise<Ready> {
    const { ready, exited } = this.#run(number, 0)
    const failed = exited.then((code) => {
      throw new Error(`worker ${number} ended with ${code} at its start`)
    })
    return Promise.race([ready, failed])
  }

  /** `crashes`: how often in a row this worker has ended before. */
  #run(number: number, crashes: number): { ready: Promise<Ready>; exited: Promise<number> } {
    const began_ms = this.options.clock.monotonic()
    const { promise: ready, resolve } = Promise.withResolvers<Ready>()
    const child = this.options.start(number, (message) => {
      if (message.type === 'ready') {
        slot.serves = true
        resolve(message)
      } else if (message.type === 'figures') this.#figures.receive(message.id, message.figures)
      else this.#count(number, child, message)
    })
    const slot: Slot = { number, child, crashes, serves: false }
    this.#slots.set(number, slot)
    void child.exited.then((code) => {
      this.#slots.delete(number)
      this.#figures.end(number)
      const is_start = crashes === 0 && !slot.serves
      if (this.#stopping || is_start) return
      const served_ms = this.options.clock.monotonic() - began_ms
      this.#figures.restarts += 1
      void this.#restart(number, code, served_ms >= healthy_ms ? 0 : crashes)
    })
    return { ready, exited: child.exited }
  }

  /** The system may refuse a process for a while: no memory, too many processes, a program that is just replaced. */
  async #restart(number: number, code: number, crashes: number): Promise<void> {
    const { log } = this.options
    const wait_ms = restartMs(crashes)
    log.error({ worker: number, code, restart_in_ms: wait_ms }, 'a worker ended')
    await Bun.sleep(wait_ms)
    for (let starts = crashes + 1; !this.#stopping; starts++) {
      try {
        return void this.#run(number, starts)
      } catch (error) {
        this.#figures.restarts += 1
        const restart_in_ms = restartMs(starts)
        log.error({ worker: number, error: String(error), restart_in_ms }, 'a worker could not be started')
        await Bun.sleep(restart_in_ms)
      }
    }
  }

  #count(number: number, child: WorkerProcess, message: Extract<FromWorker, { limit: LimitName }>): void {
    const limit = this.#limits[message.limit]
    const releasable = this.#releasable[message.limit]
    const key = `${number}/${message.id}`
    if (message.type === 'release') {
      const counted = releasable.get(key)
      releasable.delete(key)
      if (counted) limit.release(counted)
      return
    }
    const counted = limit.acquire(message.address)
    if (counted) {
      if (releasable.size >= releasable_max) releasable.delete(releasable.keys().next().value!)
      releasable.set(key, counted)
    }
    const retry_after_seconds = counted ? null : limit.retryAfter(message.address)
    child.send({ type: 'counted', id: message.id, retry_after_seconds })
  }

  /** The metrics of all workers, summed, and those of this process. */
  collect(): Promise<Figure[]> {
    return this.#figures.collect([...this.#slots.values()].filter(({ serves }) => serves))
  }

  /** Resolves when all have ended; true when each did so by itself and in order. */
  async stop(): Promise<boolean> {
    this.#stopping = true
    const ended = [...this.#slots.values()].map(async ({ child, serves }) => {
      child.send({ type: 'drain' })
      let killed = false
      const timer = setTimeout(() => {
        killed = true
        child.kill()
      }, stop_ms_max)
      const code = await child.exited
      clearTimeout(timer)
      return !killed && (code === 0 || !serves)
    })
    return (await Promise.all(ended)).every((in_order) => in_order)
  }

  /** Ends all at once. */
  kill(): void {
    for (const { child } of this.#slots.values()) child.kill()
  }
}

/** The wait before the next start of a worker that has ended this often in a row before. */
function restartMs(crashes: number): number {
  return Math.min(restart_ms_min * 2 ** crashes, restart_ms_max)
}
