// waystation mcp: the MCP server over standard input and output, for clients that start their servers.

import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { usageError } from '../failures.ts'
import { leaf } from '../tree.ts'

export function addMcp(program: Command, cli: Cli): void {
  leaf(program, 'mcp', 'Serve MCP tools over standard input and output, with an agent key', [
    'waystation mcp',
    'waystation --profile worker mcp --read-only',
    'WAYSTATION_URL=https://waystation.example.com WAYSTATION_KEY=svc_agt_… waystation mcp',
  ])
    .option('--read-only', 'offer only the tools that change nothing')
    .action(async (options: { readOnly?: boolean }) => {
      const { url, key } = cli.connection
      if (key === undefined)
        throw usageError('There is no key.', 'Use a profile of an agent, or WAYSTATION_KEY.')
      const { serveStdio } = await import('../../mcp/stdio.ts')
      cli.world.leaveSignals()
      await serveStdio({ url, key, read_only: options.readOnly ?? false })
    })
}
