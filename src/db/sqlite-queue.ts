// The writes that wait for their transaction.

import type { Job } from './sqlite-job.ts'

/** Turns of the event loop for which a batch waits at most. */
const gathering_turns = 8

export class WriteQueue {
  #jobs: Job[] = []
  /** How many shared the last commit. */
  #last_batch = 0

  get is_empty(): boolean {
    return this.#jobs.length === 0
  }

  add(job: Job): void {
    this.#jobs.push(job)
  }

  /**
   * Resolves when a commit of what waits is due. Callers that were answered together ask again together: a commit and a
   * flush for the first of them alone would make the others wait. So a batch that is smaller than the last one waits for
   * another turn while it grows.
   */
  async gather(): Promise<void> {
    let before = 0
    for (let turn = 0; turn < gathering_turns; turn++) {
      const { length } = this.#jobs
      if (length >= this.#last_batch || length === before) return
      before = length
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** All of them, in their order. */
  take(): Job[] {
    const jobs = this.#jobs
    this.#jobs = []
    this.#last_batch = jobs.length
    return jobs
  }
}
