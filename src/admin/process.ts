// The terminal of this process, for the operator's command.

import { createInterface } from 'node:readline'
import { writeWhole } from '../base/output.ts'
import { runAdmin } from './run.ts'

/** Returns the exit code. `command`: how it was called. */
export function adminOfProcess(words: readonly string[], command: string): Promise<number> {
  process.umask(0o077) // no other user may read a backup
  return runAdmin(words, {
    env: process.env,
    command,
    is_terminal: process.stdout.isTTY === true,
    print: printed,
    complain: (text) => console.error(text),
    ask: (question, hidden) => (process.stdin.isTTY ? asked(question, hidden) : Promise.resolve(null)),
  })
}

/** Throws unless all was taken: a key that nobody saw must not look like one that was handed over. */
function printed(text: string): void {
  try {
    writeWhole(1, `${text}\n`)
  } catch (error) {
    const { message } = error as Error
    throw new Error(`the output cannot be written, so what it had to show is lost: ${message}`)
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
      resolve(answer) // before the close, which answers nothing
      lines.close()
      if (hidden) process.stderr.write('\n')
    })
    lines.once('close', () => resolve(''))
  })
}
