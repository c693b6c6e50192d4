// Settings of MCP clients: each keeps the same two kinds of server in a file and a form of its own.

/** A server that is called over HTTP, or one that the client starts. */
export type McpServer = HttpServer | StdioServer

interface HttpServer {
  url: string
  headers: Readonly<Record<string, string>>
}

interface StdioServer {
  command: string
  args: readonly string[]
  env?: Readonly<Record<string, string>>
}

interface McpClient {
  /** Where it reads its servers, of a project and of a user. */
  files: string
  settings(server: McpServer): string
}

/** The form that most clients read: `mcpServers`. */
export const common = json('mcpServers', (server) => ('url' in server ? { type: 'http', ...server } : server))

export const mcp_clients: Readonly<Record<string, McpClient>> = {
  'claude-code': { files: '.mcp.json of a project, or ~/.claude.json', settings: common },
  codex: { files: '.codex/config.toml of a project, or ~/.codex/config.toml', settings: toml },
  cursor: { files: '.cursor/mcp.json of a project, or ~/.cursor/mcp.json', settings: common },
  gemini: {
    files: '.gemini/settings.json of a project, or ~/.gemini/settings.json',
    // Its `url` is of the transport before Streamable HTTP.
    settings: json('mcpServers', (server) =>
      'url' in server ? { httpUrl: server.url, headers: server.headers } : server,
    ),
  },
  vscode: {
    files: '.vscode/mcp.json of a project, or mcp.json of the user profile',
    settings: json('servers', (server) => ({ type: 'url' in server ? 'http' : 'stdio', ...server })),
  },
}

function json(member: string, formOf: (server: McpServer) => object) {
  return (server: McpServer) => JSON.stringify({ [member]: { waystation: formOf(server) } }, null, 2)
}

function toml(server: McpServer): string {
  const table = 'url' in server ? { url: server.url, http_headers: server.headers } : server
  const lines = Object.entries(table).map(([name, value]) => `${name} = ${tomlOf(value)}`)
  return ['[mcp_servers.waystation]', ...lines].join('\n')
}

/** A text as JSON writes it is one of TOML (TOML 1.0, "String"). */
function tomlOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(tomlOf).join(', ')}]`
  const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)} = ${tomlOf(item)}`)
  return `{ ${members.join(', ')} }`
}
