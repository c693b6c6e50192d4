// The process as the CLI sees it: environment, streams, clock. Tests give their own.

import type { Fetch } from '../sdk/src/index.ts'

export interface Sink {
  write(text: string): unknown
  isTTY?: boolean | undefined
  columns?: number | undefined
}

export interface Source extends AsyncIterable<Uint8Array | string> {
  isTTY?: boolean | undefined
}

export interface Io {
  env: Readonly<Record<string, string | undefined>>
  /** The words that started the command: `npx waystation`. */
  command: string
  /** The words that start it from any folder. */
  program: readonly string[]
  /** As process.platform says. */
  platform: string
  home: string
  stdin: Source
  stdout: Sink
  stderr: Sink
  /** Wall clock, ms. */
  now(): number
  fetch?: Fetch | undefined
  /** From now on the command itself says what signals do. */
  leaveSignals(): void
  /** Takes what Ctrl-C has to say before the process ends. */
  onInterrupt(tell: () => void): void
  /** Takes what is to be said when the output cannot be written; `why` is the code of the system, such as ENOSPC. */
  onUnwritten(tell: (why: string) => void): void
  /** The exit code that the command has decided on: it holds also when its output can no longer be read. */
  decided(exit_code: number): void
}
