// One command, from its words to its exit code.

import { CommanderError } from 'commander'
import { Cli } from './cli.ts'
import { exit, failureOf } from './failures.ts'
import { Output } from './output.ts'
import { programOf } from './program.ts'
import type { World } from './world.ts'

export async function run(args: string[], world: World): Promise<number> {
  const cli = new Cli(world)
  try {
    await programOf(cli).parseAsync(args, { from: 'user' })
    return cli.exit_code
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exit.ok // --help, --version
      if (error.code === 'commander.help') return exit.usage // a group without its command: help was printed
    }
    const failure = failureOf(error, cli.asked_url)
    // A command that could not even be read may have asked for JSON all the same.
    const end_of_options = args.indexOf('--')
    const options = end_of_options === -1 ? args : args.slice(0, end_of_options)
    new Output(world, options.includes('--json')).failure(failure)
    return failure.exit_code
  }
}
