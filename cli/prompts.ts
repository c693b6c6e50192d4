// Questions on a terminal. Their library comes late, so that nothing else pays for loading it.

import type { Cli } from './cli.ts'
import { CliError, exit, usageError } from './failures.ts'

/** Not shown while it is typed. */
export async function promptedSecret(cli: Cli, message: string): Promise<string> {
  requireTerminal(cli, 'Give it on standard input.')
  const { isCancel, password } = await import('@clack/prompts')
  return answered(await password({ message, output: process.stderr }), isCancel)
}

export async function promptedLine(cli: Cli, message: string, otherwise: string): Promise<string> {
  requireTerminal(cli, otherwise)
  const { isCancel, text } = await import('@clack/prompts')
  return answered(await text({ message, output: process.stderr }), isCancel)
}

function requireTerminal({ io }: Cli, otherwise: string): void {
  if (!io.stdin.isTTY || !io.stderr.isTTY) throw usageError('There is no terminal to ask on.', otherwise)
}

function answered(answer: unknown, isCancel: (answer: unknown) => boolean): string {
  if (isCancel(answer)) throw new CliError('INTERRUPTED', 'Cancelled.', exit.interrupted, 'Nothing was done.')
  return String(answer ?? '')
}
