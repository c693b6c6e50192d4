// The terminal of this process, for the operator's command.

import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { runAdmin } from './run.ts'

/** Returns the exit code. `command`: how it was called. */
export function adminOfProcess(words: readonly string[], command: string): Promise<number> {
  process.umask(0o077) // no other user may read a backup
  return runAdmin(words, {
    env: process.env,
    command,
    is_terminal: process.stdout.isTTY === true,
    print: (text) => writeWhole(1, `${text}\n`),
    complain: (text) => console.error(text),
    ask: (question, hidden) => (process.stdin.isTTY ? asked(question, hidden) : Promise.resolve(null)),
  })
}

/** A full pipe is tried again this soon. */
const full_pipe_ms = 5

/** Throws unless the system has taken all of it: a key that nobody saw must not look like one that was handed over. */
function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(fd, bytes, written)
    } catch (error) {
      const { code, message } = error as Error & { code?: string }
      if (code !== 'EAGAIN')
        throw new Error(`the output cannot be written, so what it had to show is lost: ${message}`)
      Bun.sleepSync(full_pipe_ms)
    }
  }
}

function asked(question: string, hidden: boolean): Promise<string> {
  const lines = createInterface({
    input: process.stdin,
    output: hidden ? undefined : process.stderr,
    terminal: true,
  })
  if (hidden) process.stderr.write(question)
  return new Promise((resolve) => {
    lines.question(hidden ? '' : question, (answer) => {
      lines.close()
      if (hidden) process.stderr.write('\n')
      resolve(answer)
    })
    lines.once('close', () => resolve(''))
  })
}
