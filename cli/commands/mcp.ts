// waystation mcp: the MCP server over standard input and output, for clients that start their servers.

import { usageError } from '../failures.ts'
import type { OwnCommand } from '../spec.ts'

export const mcp: OwnCommand = {
  usage: 'mcp',
  about: 'Serve MCP tools over standard input and output, with an agent key',
  examples: [
    'waystation mcp',
    'waystation --profile worker mcp --read-only',
    'WAYSTATION_URL=https://waystation.example.com WAYSTATION_KEY=svc_agt_… waystation mcp',
  ],
  options: [{ flag: '--read-only', about: 'offer only the tools that change nothing' }],
  async run(cli, { readOnly: read_only = false }) {
    const { url, key } = cli.connection
    if (key === undefined)
      throw usageError('There is no key.', 'Use a profile of an agent, or WAYSTATION_KEY.')
    const { serveStdio } = await import('../../mcp/stdio.ts')
    cli.io.leaveSignals()
    await serveStdio({ url, key, read_only })
  },
}
