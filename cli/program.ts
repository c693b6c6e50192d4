// The tree of commands. A new one is a file in commands/ and a line here.

import { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import type { Cli, GlobalOptions } from './cli.ts'
import { addAgent } from './commands/agent.ts'
import { addAudit } from './commands/audit.ts'
import { addApproval, addCheckpoint, addDecisions } from './commands/checkpoint.ts'
import { addCompletion } from './commands/completion.ts'
import { addDlq } from './commands/dlq.ts'
import { addInbox } from './commands/inbox.ts'
import { addKey } from './commands/key.ts'
import { addKv } from './commands/kv.ts'
import { addLogin } from './commands/login.ts'
import { addMcp } from './commands/mcp.ts'
import { addNamespace } from './commands/namespace.ts'
import { addRate } from './commands/rate.ts'
import { addSchedule } from './commands/schedule.ts'
import { addServe } from './commands/serve.ts'
import { addService } from './commands/service.ts'
import { addTenant } from './commands/tenant.ts'
import { usageError } from './failures.ts'
import { timeoutSeconds, wholeNumber } from './input.ts'

const commands = [
  addServe,
  addLogin,
  addTenant,
  addAgent,
  addKey,
  addKv,
  addNamespace,
  addAudit,
  addDlq,
  addSchedule,
  addCheckpoint,
  addApproval,
  addDecisions,
  addInbox,
  addRate,
  addMcp,
  addService,
  addCompletion,
]

const after = `
Keys come from a profile (waystation login) or the environment, never from the command line:
  WAYSTATION_PROFILE   the profile to use instead of the current one
  WAYSTATION_URL       the address, and no profile
  WAYSTATION_KEY       the key that goes with it

Exit codes:
  0 done  1 unexpected  2 wrong usage or refused input  3 no permission  4 not found  5 conflict
  6 over a limit, or blocked  7 no answer in time  8 not approved  130 Ctrl-C

Examples:
  waystation serve
  waystation tenant create acme --email you@example.com --save admin
  waystation agent create worker-1 --save worker
  waystation kv put state last-run '{"rows": 42}'
  waystation kv get state last-run`

export function programOf(cli: Cli): Command {
  const program = new Command('waystation')
    .description('The backend that software agents lack, and its client')
    .version(packageJson.version, '-v, --version', 'print the version')
    .option('--json', 'print one JSON value (one a line where that is said), and errors as JSON')
    .option('--profile <name>', 'use this profile')
    .option('--url <url>', 'ask at this address, without a profile')
    .option('--timeout <seconds>', 'how long each try may take', timeoutSeconds, 30)
    .option('--retries <n>', 'tries after the first; default 2, and 20 for what waits', retries)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => {
        cli.help += text
      },
      // Errors are told in one place, in one form; what is left is a help that nobody asked for.
      writeErr: (text) => cli.out.json || cli.world.stderr.write(text),
      outputError: () => {},
      getOutHelpWidth: () => cli.world.stdout.columns || 100,
      getErrHelpWidth: () => cli.world.stderr.columns || 100,
    })
    .exitOverride()
    .addHelpText('after', after)
    .hook('preAction', (_, command) => {
      cli.begin(program.opts<GlobalOptions>())
      checkNames(command)
    })
  for (const add of commands) add(program, cli)
  return program
}

function retries(text: string): number {
  const given = wholeNumber(text)
  if (given <= 20) return given
  throw usageError('--retries is 20 at most.')
}

/** What becomes part of a path must be something there: the service cannot tell a dot segment from another path. */
function checkNames(command: Command): void {
  for (const [i, argument] of command.registeredArguments.entries()) {
    const text = command.args[i]
    if (text === undefined || !/(^id|_id|^namespace|^key)$/.test(argument.name())) continue
    if (text === '' || /^(\.|%2e){1,2}$/i.test(text))
      throw usageError(`${argument.name()} must not be '${text}'.`)
  }
}
