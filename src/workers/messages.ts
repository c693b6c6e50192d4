// The messages between a supervisor and its workers, over the channel that the system made between them.

import type { AddressLimits } from '../app/admission.ts'
import type { Figure } from '../metrics/figure.ts'

export type LimitName = keyof AddressLimits

export interface Ready {
  address: string
  is_polled: boolean
}

export type FromWorker =
  /** It listens. `is_polled`: it does not hear other nodes, and looks for their changes. */
  | ({ type: 'ready' } & Ready)
  /** Asks to count one of this address. `id` is the worker's own. */
  | { type: 'count'; id: number; limit: LimitName; address: string }
  /** The request that was counted under this id had no effect. */
  | { type: 'release'; id: number; limit: LimitName }
  /** Its metrics, as they were asked for under this id. */
  | { type: 'figures'; id: number; figures: readonly Figure[] }

export type ToWorker =
  /** Null when it was counted. */
  | { type: 'counted'; id: number; retry_after_seconds: number | null }
  /** Asks for its metrics. */
  | { type: 'collect'; id: number }
  /** Stop. */
  | { type: 'drain' }

/** The variable by which a process knows that it is a worker: its number, from 1. */
export const worker_variable = 'WAYSTATION_WORKER'

/** A worker that was started. */
export interface WorkerProcess {
  send(message: ToWorker): void
  kill(): void
  exited: Promise<number>
}
