// The program: its options, and its commands. Those of the operations are generated; one by hand is a file in commands/
// and a line here.

import { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { runnable } from './calls.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { admin } from './commands/admin.ts'
import { agentRotateKey } from './commands/agent.ts'
import { checkpointCreate, checkpointWait } from './commands/checkpoint.ts'
import { completion } from './commands/completion.ts'
import { dlqClaim, dlqDiscardMany, dlqRedriveMany } from './commands/dlq.ts'
import { effectClaim, effectWait } from './commands/effect.ts'
import { eventsList, eventsTail, wait } from './commands/events.ts'
import { inboxMessages, inboxSearch, inboxTail } from './commands/inbox.ts'
import { kvGet, namespaceGet } from './commands/kv.ts'
import { login, logout, profiles, profilesUse } from './commands/login.ts'
import { mcp, mcpConfig } from './commands/mcp.ts'
import { rateCheck } from './commands/rate.ts'
import { serve } from './commands/serve.ts'
import { health, openapi } from './commands/service.ts'
import { tenantDelete, tenantRotateKey, tenantUsage } from './commands/tenant.ts'
import { verify } from './commands/verify.ts'
import { workflowShow } from './commands/workflow.ts'
import { usageError } from './failures.ts'
import { generated } from './generated.ts'
import { timeoutSeconds, wholeNumber } from './input.ts'
import type { Override } from './spec.ts'
import { addCommand } from './tree.ts'

/** By the operation whose command they are: more than one call, or more than its answer. */
const overrides: Readonly<Record<string, Override>> = {
  deleteTenant: tenantDelete,
  rotateTenantKey: tenantRotateKey,
  rotateAgentKey: agentRotateKey,
  getUsage: tenantUsage,
  createCheckpoint: checkpointCreate,
  claimEffect: effectClaim,
  getValue: kvGet,
  getNamespaceKey: namespaceGet,
  claimItem: dlqClaim,
  getWorkflow: workflowShow,
  redriveItems: dlqRedriveMany,
  discardItems: dlqDiscardMany,
  listMessages: inboxMessages,
  listEvents: eventsList,
  waitForEvent: wait,
  searchMessages: inboxSearch,
  checkRateLimit: rateCheck,
  readyz: health,
  openapi,
}

const commands = [
  ...[serve, admin, login, logout, profiles, profilesUse],
  ...generated.map((spec) => runnable(spec, overrides[spec.operation])),
  ...[checkpointWait, effectWait, inboxTail, eventsTail, verify, mcp, mcpConfig, completion],
]

const after = `
Keys come from a profile (waystation login) or the environment, never from the command line:
  WAYSTATION_PROFILE   the profile to use instead of the current one
  WAYSTATION_URL       the address to use instead of a profile
  WAYSTATION_KEY       the key that goes with it

WAYSTATION_WORKFLOW is the workflow that every call belongs to.

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
    .option('--json', 'print one JSON value (or one per line, where help says so), and errors as JSON')
    .option('--profile <profile>', 'use this profile')
    .option('--url <url>', 'use this address, without a profile')
    .option('--timeout <seconds>', 'how long each try may take', timeoutSeconds, 30)
    .option('--retries <n>', 'tries after the first; default 2, or 20 for commands that wait', retries)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => {
        cli.help += cli.out.hint(text)
      },
      // Errors are printed in one place, in one form; only a help after a missing command is left.
      writeErr: (text) => cli.out.json || cli.io.stderr.write(cli.out.hint(text)),
      outputError: () => {},
      getOutHelpWidth: () => cli.io.stdout.columns || 100,
      getErrHelpWidth: () => cli.io.stderr.columns || 100,
    })
    .exitOverride()
    .addHelpText('after', after)
    .hook('preAction', () => cli.begin(program.opts<GlobalOptions>()))
  for (const command of commands) addCommand(program, cli, command)
  return program
}

function retries(text: string): number {
  const given = wholeNumber(text)
  if (given <= 20) return given
  throw usageError('--retries must be 20 at most.')
}
