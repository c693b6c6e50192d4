// The other tenant: its steady requests, from a process of its own.

import { join } from 'node:path'
import { type Child, kill, startChild } from './children.ts'
import type { ProbeSpec, Taken } from './probe-process.ts'

export class Probe {
  #child: Child
  #waiting: ((taken: Taken) => void) | null = null

  private constructor(spec: ProbeSpec) {
    this.#child = startChild([process.execPath, join(import.meta.dir, 'probe-process.ts')], {
      onMessage: (message) => {
        this.#waiting?.(message as Taken)
        this.#waiting = null
      },
    })
    this.#child.send(spec)
  }

  static start(spec: ProbeSpec): Probe {
    return new Probe(spec)
  }

  /** The measurements since the last call; a request under way counts with its age. */
  take(): Promise<Taken> {
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.#child.send('take')
    })
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }
}
