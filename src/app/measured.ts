// The metrics of a service, put together: what is raised, what is read when they are collected, and the listener.

import { backupFigures } from '../backup/figures.ts'
import type { Config } from '../config.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import type { Figure } from '../metrics/figure.ts'
import { listenForMetrics, type MetricsListener } from '../metrics/listener.ts'
import { type Measures, serviceFigures } from '../metrics/service.ts'
import { naming } from './start.ts'

export interface Measured {
  config: Config
  db: Db
  measures: Measures
  dependencies: Dependencies
  worker: { running: number }
  onError(error: unknown): void
}

export class Metrics {
  readonly #measured: Measured
  readonly #started_at: number
  #listener: MetricsListener | null = null
  #requests = () => 0

  constructor(measured: Measured) {
    this.#measured = measured
    this.#started_at = measured.db.clock.now()
  }

  /** Where they are served; null before the start, and where another process collects for this one. */
  get url(): string | null {
    return this.#listener?.url ?? null
  }

  /** `listens`: false where another process collects for this one. */
  start(server: { readonly pendingRequests: number }, listens: boolean): void {
    const { config, onError } = this.#measured
    this.#requests = () => server.pendingRequests
    if (!listens) return
    this.#listener = naming('METRICS', () => listenForMetrics(config.metrics!, () => this.collect(), onError))
  }

  /** The figures of this process, now. */
  async collect(): Promise<Figure[]> {
    const { config, db, measures, dependencies, worker } = this.#measured
    const figures = await serviceFigures({
      ...{ measures, db, dependencies, started_at: this.#started_at },
      secures_rows: config.row_level_security !== 'off',
      ...{ jobs_running: worker.running, requests_running: this.#requests() },
    })
    return [...figures, ...backupFigures(config.backups, db.clock.now())]
  }

  stop(): void {
    this.#listener?.stop()
  }
}
