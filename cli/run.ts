// One command, from its words to its exit code.

import { type Command, CommanderError } from 'commander'
import { Cli } from './cli.ts'
import { runAdmin } from './commands/admin.ts'
import {
  exit,
  type Failure,
  failureOf,
  ofRead,
  unwritten,
  withCommand,
  withKey,
  withMade,
} from './failures.ts'
import type { Io } from './io.ts'
import { programOf } from './program.ts'
import { withProxy } from './proxies.ts'

export async function run(args: string[], io: Io): Promise<number> {
  // --json counts for errors, too, even when the words are not a command.
  const end_of_options = args.indexOf('--')
  const options = end_of_options === -1 ? args : args.slice(0, end_of_options)
  const cli = new Cli(io, options.includes('--json'))
  io.onInterrupt(() => {
    if (cli.made) cli.out.failure(withMade(interrupted, cli.made))
  })
  io.onUnwritten((why) => cli.out.failure(explained(unwritten(why), cli)))
  const program = programOf(cli)
  const admin_words = wordsOfAdmin(program, args)
  if (admin_words) return runAdmin(admin_words)
  try {
    await program.parseAsync(args, { from: 'user' })
    return cli.exit_code
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) {
        cli.out.document(cli.help.trimEnd())
        return exit.ok
      }
      if (error.code === 'commander.help' && !cli.out.json) return exit.usage // that help was printed
    }
    const found = withCommand(failureOf(error, cli.called_url), commandIn(program, options))
    const failure = withProxy(explained(found, cli), io.env, cli.called_url)
    cli.out.failure(failure)
    return failure.exit_code
  }
}

/**
 * The words behind `admin`, whose options are its own: of those before it, it has --json. Null for another command, and for
 * `admin --help`.
 */
function wordsOfAdmin(program: Command, args: string[]): string[] | null {
  const taking = takingOf(program)
  const before: string[] = []
  for (let i = 0; i < args.length; i++) {
    const word = args[i]!
    if (word === 'admin') return args[i + 1] === '--help' ? null : [...before, ...args.slice(i + 1)]
    if (word === '--json') before.push(word)
    else if (taking.includes(word)) i += 1
    else if (!taking.some((long) => word.startsWith(`${long}=`))) return null
  }
  return null
}

/** The options of every command whose value is the next word. */
function takingOf({ options }: Command): string[] {
  return options.flatMap(({ long, required }) => (required && long ? [long] : []))
}

const interrupted: Failure = {
  code: 'INTERRUPTED',
  message: 'Interrupted.',
  exit_code: exit.interrupted,
  next: '',
}

/** With what the command has done, or may have done. */
function explained(failure: Failure, cli: Cli): Failure {
  if (cli.made) return withMade(failure, cli.made)
  if (!cli.may_have_changed) return ofRead(failure)
  return withKey(failure, cli.counts_from_now ? undefined : cli.key_sent)
}

/** The words of the command that is meant, as far as they name one. The value of an option before it may be called as one is. */
function commandIn(program: Command, words: string[]): string[] {
  const taking = takingOf(program)
  const found: string[] = []
  let command = program
  for (const [i, word] of words.entries()) {
    if (taking.includes(word) || taking.includes(words[i - 1] ?? '')) continue
    const next = command.commands.find((each) => each.name() === word || each.aliases().includes(word))
    if (next) {
      found.push(next.name())
      command = next
    } else if (found.length > 0) {
      break
    }
  }
  return found
}
