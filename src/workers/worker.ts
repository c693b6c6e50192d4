// A worker: one of several processes of a service, as it sees its supervisor.

import { limit } from '../base/limit.ts'
import type { Admission, Limiter, Limiters } from '../http/limits.ts'
import type { Figure } from '../metrics/figure.ts'
import type { FromWorker, LimitName, Ready, ToWorker } from './messages.ts'

const answer_ms_max = limit(
  'workers.count_ms',
  1_000,
  'milliseconds',
  'How long a worker waits until its supervisor has counted a client address. Past it the request is admitted.',
)
const refused_max = limit(
  'workers.refused_addresses',
  10_000,
  'entries',
  'Client addresses that a worker remembers as refused for their wrong keys, so that it need not ask for them again.',
)

/** The part of the process that a worker uses. */
export interface Channel {
  send(message: FromWorker): void
  onMessage(listener: (message: ToWorker) => void): void
  /** The supervisor has ended. */
  onClosed(listener: () => void): void
}

interface Asked {
  resolve(admission: Admission): void
  limit: LimitName
  timer: Timer
}

export class SupervisedWorker {
  readonly limiters: Limiters
  readonly #asked = new Map<number, Asked>()
  #last_id = 0
  #collect: () => Promise<readonly Figure[]> = async () => []

  /** `now_ms` never runs backwards. `onDrain` may be called more than once. */
  constructor(
    private readonly channel: Channel,
    private readonly now_ms: () => number,
    onDrain: () => void,
  ) {
    this.limiters = {
      sign_ups: (address) => this.#ask('sign_ups', address),
      failed_keys: this.#remembering('failed_keys'),
    }
    channel.onMessage((message) => {
      if (message.type === 'drain') onDrain()
      else if (message.type === 'collect') void this.#sendFigures(message.id)
      else this.#counted(message)
    })
    channel.onClosed(onDrain)
  }

  /** `collect`: the metrics of this process; null when nothing is counted. */
  ready(ready: Ready, collect: (() => Promise<readonly Figure[]>) | null = null): void {
    if (collect) this.#collect = collect
    this.channel.send({ type: 'ready', ...ready })
  }

  /** The supervisor goes on without an answer. */
  async #sendFigures(id: number): Promise<void> {
    const figures = await this.#collect().catch(() => null)
    if (figures) this.channel.send({ type: 'figures', id, figures })
  }

  /**
   * Asks the supervisor, unless it refused this address a moment ago. Wrong keys stay counted until their window ends;
   * a sign-up that was counted may fail, and leaves room for another at once.
   */
  #remembering(limit: LimitName): Limiter {
    const refused = new Map<string, number>()
    return async (address) => {
      const until_ms = refused.get(address) ?? 0
      const left_ms = until_ms - this.now_ms()
      if (left_ms > 0) return { retry_after_seconds: Math.ceil(left_ms / 1_000) }
      const admission = await this.#ask(limit, address)
      if ('retry_after_seconds' in admission) {
        refused.delete(address)
        if (refused.size >= refused_max) refused.delete(refused.keys().next().value!)
        refused.set(address, this.now_ms() + (admission.retry_after_seconds - 1) * 1_000)
      }
      return admission
    }
  }

  #ask(limit: LimitName, address: string): Promise<Admission> {
    this.#last_id += 1
    const id = this.#last_id
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#asked.delete(id)
        resolve({ release: () => {} })
      }, answer_ms_max)
      this.#asked.set(id, { resolve, limit, timer })
      this.channel.send({ type: 'count', id, limit, address })
    })
  }

  #counted({ id, retry_after_seconds }: Extract<ToWorker, { type: 'counted' }>): void {
    const asked = this.#asked.get(id)
    if (!asked) return
    this.#asked.delete(id)
    clearTimeout(asked.timer)
    const release = () => this.channel.send({ type: 'release', id, limit: asked.limit })
    asked.resolve(retry_after_seconds === null ? { release } : { retry_after_seconds })
  }
}
