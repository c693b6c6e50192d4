// The writes that wait for their transaction.

import type { Job } from './sqlite-job.ts'

/** Turns of the event loop for which a batch waits at most. */
const gathering_turns = 8

export class WriteQueue {
  #jobs: Job[] = []
  /** How many shared the last commit. */
  #last_batch = 0
  /** How many the next commit will have, if all who were answered ask again at once. */
  #expected = 0

  get is_empty(): boolean {
    return this.#jobs.length === 0
  }

  add(job: Job): void {
    this.#jobs.push(job)
  }

  /**
   * Resolves when a commit of what waits is due. Callers that were answered together ask again together: a commit and a
   * flush without them would make them wait, and split callers into groups that take turns. So a batch waits for another
   * turn while it grows, until it has as many as are expected.
   */
  async gather(): Promise<void> {
    let before = 0
    for (let turn = 0; turn < gathering_turns; turn++) {
      const { length } = this.#jobs
      if (length >= this.#expected || length === before) return
      before = length
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** The writes that were taken last were answered. */
  answered(): void {
    this.#expected = this.#last_batch + this.#jobs.length
  }

  /** Those of the last that were not begun: they come first again. */
  putBack(jobs: Job[]): void {
    this.#jobs = jobs.concat(this.#jobs)
    this.#last_batch -= jobs.length
  }

  /** All of them, in their order. */
  take(): Job[] {
    const jobs = this.#jobs
    this.#jobs = []
    this.#last_batch = jobs.length
    return jobs
  }
}
