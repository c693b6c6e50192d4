// The writes that wait for their transaction.

import { nextTurn } from '../base/next-turn.ts'
import type { Job } from './sqlite-job.ts'

/** Turns of the event loop for which a batch waits at most. */
const gathering_turns = 8

export class WriteQueue {
  #jobs: Job[] = []
  /** The next commit is shared out: something urgent waits, or the last was full. Otherwise all that wait fit into it. */
  #in_turns = false
  /** How many shared the last commit. */
  #last_batch = 0
  /** How many the next commit will have, if all who were answered ask again at once. */
  #expected = 0

  get is_empty(): boolean {
    return this.#jobs.length === 0
  }

  add(job: Job): void {
    this.#jobs.push(job)
    if (job.urgent) this.#in_turns = true
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
      await nextTurn()
    }
  }

  /** The writes that were taken last were answered. */
  answered(): void {
    this.#expected = this.#last_batch + this.#jobs.length
  }

  /** Those of the last that were not begun: the commit was full. They come before what has come since, in their turns. */
  putBack(jobs: Job[]): void {
    this.#in_turns = true
    this.#jobs = jobs.concat(this.#jobs)
    this.#last_batch -= jobs.length
  }

  /** All of them: in their order, or in turns, where the last may have to wait for another commit. */
  take(): Job[] {
    const jobs = this.#in_turns ? inTurns(this.#jobs) : this.#jobs
    this.#in_turns = false
    this.#jobs = []
    this.#last_batch = jobs.length
    return jobs
  }
}

/** Urgent ones have every second place, from the first on. */
function inTurns(jobs: readonly Job[]): Job[] {
  const urgent = inRotation(jobs.filter((job) => job.urgent))
  const others = inRotation(jobs.filter((job) => !job.urgent))
  const ordered: Job[] = []
  for (let place = 0; ordered.length < jobs.length; place++) {
    if (place < urgent.length) ordered.push(urgent[place]!)
    if (place < others.length) ordered.push(others[place]!)
  }
  return ordered
}

/**
 * One of each owner, and then one again of each that has more, so that those of one owner stay in their order. What is
 * left of jobs in rotation begins with those whose turn is next.
 */
function inRotation(jobs: readonly Job[]): Job[] {
  const lines = Map.groupBy(jobs, (job) => job.key)
  const ordered: Job[] = []
  let round = [...lines.values()]
  for (let place = 0; round.length > 0; place++) {
    for (const line of round) ordered.push(line[place]!)
    round = round.filter(({ length }) => length > place + 1)
  }
  return ordered
}
