// The figures of all workers of a service, summed. A worker that does not answer in time counts with what it said last,
// and what one that ended had counted stays in the sums: a counter never falls while the service runs. With none that serves, or
// one that does not answer, the service is not ready: its workers say so themselves no more.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { counter, type Figure, gauge, value } from '../metrics/figure.ts'
import { readyFigure } from '../metrics/ready.ts'
import { processFigures } from '../metrics/resources.ts'
import { summing } from '../metrics/text.ts'
import type { ToWorker } from './messages.ts'

const collect_ms_max = limit(
  'workers.collect_ms',
  3_000,
  'milliseconds',
  'How long the supervisor waits for the metrics of a worker. Past it the last metrics that the worker gave are used.',
)

interface AskedWorker {
  number: number
  child: { send(message: ToWorker): void }
}

interface Asked {
  number: number
  answered(): void
}

export class WorkerFigures {
  /** By the number of the worker. */
  readonly #last = new Map<number, readonly Figure[]>()
  /** Counters and histograms of workers that have ended. */
  #ended: (readonly Figure[])[] = []
  readonly #asked = new Map<number, Asked>()
  #last_id = 0

  /** Workers that ended and were started again; each start that the system refuses counts as well. */
  restarts = 0

  /** `started_at`: when this process did. */
  constructor(
    private readonly started_at: Millis,
    private readonly answer_ms_max = collect_ms_max,
  ) {}

  /** Asks these workers, and returns the sums of all, this process included. */
  async collect(workers: readonly AskedWorker[]): Promise<Figure[]> {
    const in_time = await Promise.all(workers.map((worker) => this.#ask(worker)))
    const is_silent = workers.length === 0 || in_time.includes(false)
    const sum = await summing()
    this.#ended = [sum(this.#ended)]
    return [
      ...sum([
        ...this.#last.values(),
        ...this.#ended,
        [...processFigures(this.started_at), ...(is_silent ? [readyFigure(false)] : [])],
      ]),
      gauge('waystation_workers', 'Processes that serve behind one port.', value(workers.length)),
      counter(
        'waystation_worker_restarts_total',
        'Processes that ended and were started again, and starts that the system refused.',
        value(this.restarts),
      ),
    ]
  }

  /** False when it has not answered in time. */
  #ask({ number, child }: AskedWorker): Promise<boolean> {
    this.#last_id += 1
    const id = this.#last_id
    return new Promise((resolve) => {
      const settle = (in_time: boolean) => {
        clearTimeout(timer)
        this.#asked.delete(id)
        resolve(in_time)
      }
      const timer = setTimeout(() => settle(false), this.answer_ms_max)
      this.#asked.set(id, { number, answered: () => settle(true) })
      child.send({ type: 'collect', id })
    })
  }

  /** A worker has answered. */
  receive(id: number, figures: readonly Figure[]): void {
    const asked = this.#asked.get(id)
    if (!asked) return
    this.#last.set(asked.number, figures)
    asked.answered()
  }

  /** The worker of this number has ended; another may get the number. */
  end(number: number): void {
    for (const asked of [...this.#asked.values()]) if (asked.number === number) asked.answered()
    const counted = (this.#last.get(number) ?? []).filter(({ type }) => type !== 'gauge')
    this.#last.delete(number)
    this.#ended.push(counted)
  }
}
