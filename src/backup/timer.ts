// Backups that the service writes by itself, each by a process of its own: neither requests nor memory of the service notice.

import { rmSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { type Clock, hour_ms, type Millis, minute_ms } from '../base/clock.ts'
import { makeFolder } from '../base/folder.ts'
import { completeIn, nameOf, namesIn, nextAt, removable } from './kept.ts'

export interface BackupTimerOptions {
  every_ms: Millis
  keep: number
  folder: string
  clock: Clock
  log: { info(fields: object, message: string): void; error(fields: object, message: string): void }
  /** Writes a backup and resolves with what it had to say; rejects with that when it could not. */
  write(file: string): Promise<string>
}

/** After one that failed the next try comes this soon. */
const retry_ms = 5 * minute_ms
/** A timer of the system takes 24.8 days at most. */
const looks_every_ms = hour_ms

export class BackupTimer {
  #timer: Timer | undefined
  #stopped = false
  /** By the clock that is never set; null when the last one was written. */
  #retry_at: Millis | null = null

  constructor(private readonly options: BackupTimerOptions) {}

  start(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => void this.#run(), Math.min(this.#waitMs(), looks_every_ms))
    this.#timer.unref()
  }

  /** One under way is left alone. When a signal to both ends it with the service, its end is not logged. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #names(): string[] {
    return namesIn(this.options.folder)
  }

  #waitMs(): Millis {
    const { every_ms, clock, folder } = this.options
    const due_ms = nextAt(completeIn(folder), every_ms, clock.now()) - clock.now()
    const again_ms = this.#retry_at === null ? 0 : this.#retry_at - clock.monotonic()
    return Math.max(0, due_ms, again_ms)
  }

  async #run(): Promise<void> {
    const { folder, keep, clock, log, write } = this.options
    if (this.#waitMs() > 0) return this.start()
    const began = clock.now()
    const file = join(folder, nameOf(began))
    try {
      makeFolder(folder, 0o700)
      this.#remove(removable(this.#names(), Number.POSITIVE_INFINITY, began))
      const said = await write(file)
      this.#retry_at = null
      const duration_ms = clock.now() - began
      log.info({ file, duration_ms, ...(said === '' ? {} : { said }) }, 'backup written')
      this.#remove(removable(this.#names(), keep, clock.now()))
    } catch (error) {
      if (this.#stopped) return
      this.#retry_at = clock.monotonic() + retry_ms
      log.error({ file, error: (error as Error).message }, 'THE BACKUP FAILED: the next try is in 5 minutes')
    }
    this.start()
  }

  #remove(names: readonly string[]): void {
    for (const name of names) rmSync(join(this.options.folder, name), { force: true })
  }
}

/** Requests come first. */
const niceness = 10

/**
 * `admin backup` with the settings of this process. Resolves when the backup is there, with its lines beside the output. One whose
 * priority could not be lowered is still written, and says so.
 */
export async function writeInProcess(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
  own: readonly string[],
  lower = setPriority,
): Promise<string> {
  const child = Bun.spawn([...own, 'backup', file, '--make-room'], {
    env: { ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const not_lowered = failureOf(() => lower(child.pid, niceness))
  const said = (await new Response(child.stderr).text()).trim()
  if ((await child.exited) !== 0)
    throw new Error(said || `it ended with ${child.exitCode ?? child.signalCode}`)
  const lines = [said, not_lowered === null ? '' : `its priority could not be lowered: ${not_lowered}`]
  return lines.filter((line) => line !== '').join('\n')
}

/** Null when the priority was set, or when the process had ended before. */
function failureOf(setsPriority: () => void): string | null {
  try {
    setsPriority()
    return null
  } catch (error) {
    const { info, message } = error as Error & { info?: { code?: string } }
    return info?.code === 'ESRCH' ? null : message
  }
}
