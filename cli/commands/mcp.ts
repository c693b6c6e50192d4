// waystation mcp, mcp config: the MCP server over standard input and output, for clients that start their servers.

import type { Cli, Connection } from '../cli.ts'
import { CliError, exit, usageError } from '../failures.ts'
import { common, mcp_clients } from '../mcp-clients.ts'
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
    const { url, key, workflow_id } = connected(cli)
    const { message_bytes_max, serveStdio } = await import('../../mcp/stdio.ts')
    cli.io.leaveSignals()
    const workflow_header = workflow_id && headerBytes(workflow_id)
    if (await serveStdio({ url, key, workflow_header, read_only })) return
    const message = `A message from the client is longer than ${message_bytes_max / 1_048_576} MiB.`
    throw new CliError('PAYLOAD_TOO_LARGE', message, exit.usage, 'Start it again, and send less at once.')
  },
}

export const mcpConfig: OwnCommand = {
  usage: 'mcp config',
  about: 'Print what an MCP client needs to connect from any folder, with the key or the profile in use',
  examples: [
    'waystation mcp config --profile worker > .mcp.json',
    'waystation mcp config --stdio --read-only',
    'waystation mcp config --client vscode > .vscode/mcp.json',
  ],
  options: [
    {
      flag: '--client <client>',
      about: 'in the format of this client, not the one that most clients read',
      choices: Object.keys(mcp_clients),
    },
    { flag: '--stdio', about: 'start a server for the client instead of asking the service at /mcp' },
    { flag: '--read-only', about: 'offer only the tools that change nothing' },
  ],
  run(cli, { client, stdio = false, readOnly: read_only = false }) {
    const { url, key, profile, workflow_id } = connected(cli)
    if (!key.startsWith('svc_agt_')) {
      throw usageError('The tools need an agent key.', 'Use a profile of an agent: --profile <name>.')
    }
    const mode = read_only ? '?mode=read-only' : ''
    const headers = {
      Authorization: `Bearer ${key}`,
      ...(workflow_id && { 'X-Workflow-Id': headerBytes(workflow_id) }),
    }
    const over_http = { url: `${url}/mcp${mode}`, headers }
    const [command = '', ...args] = cli.io.program
    const words = [
      ...(profile === null ? [] : ['--profile', profile]),
      'mcp',
      ...(read_only ? ['--read-only'] : []),
    ]
    const env = {
      // A profile keeps the key out of the client's file.
      ...(profile === null && { WAYSTATION_URL: url, WAYSTATION_KEY: key }),
      ...(workflow_id && { WAYSTATION_WORKFLOW: workflow_id }),
    }
    const over_stdio = {
      ...{ command, args: [...args, ...words] },
      ...(Object.keys(env).length > 0 && { env }),
    }
    const { settings, files } = mcp_clients[client] ?? { settings: common, files: null }
    cli.out.text(settings(stdio ? over_stdio : over_http))
    if (files !== null) cli.out.note(`Put it in ${files}.`)
    if (!stdio || profile === null) cli.out.note('This holds the key: keep it out of repositories.')
  },
}

/** The bytes of its UTF-8, a character each, as clients take the value of a header. */
function headerBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}

interface Connected extends Connection {
  key: string
  workflow_id: string | undefined
}

/** Throws when there is no key, or when it or the workflow cannot be sent. */
function connected(cli: Cli): Connected {
  const { key, ...connection } = cli.connection
  if (key === undefined) throw usageError('There is no key.', 'Use a profile of an agent, or WAYSTATION_KEY.')
  cli.client()
  return { ...connection, key, workflow_id: cli.io.env.WAYSTATION_WORKFLOW || undefined }
}
