// The first call of a new agent: in a terminal, in TypeScript, over MCP. Each is filled in and runs as it stands.

import { base } from '../api/address.ts'
import { quoted } from '../text/curl.ts'

export interface Snippet {
  lead: string
  text: string
}

const path = '/v1/kv/state/hello'

/** The key consists of letters, digits and underscores, and an agent's id of letters, digits and hyphens. */
export function snippetsOf(agent_id: string, key: string): Record<'curl' | 'typescript' | 'mcp', Snippet> {
  const url = `${location.origin}${base}`
  return {
    curl: {
      lead: 'Stores a value and reads it back.',
      text: `BASE=${quoted(url)}
AGENT_KEY=${quoted(key)}

curl -s -X PUT "$BASE${path}" \\
  -H "authorization: Bearer $AGENT_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"value": {"from": "${agent_id}"}}'

curl -s "$BASE${path}" -H "authorization: Bearer $AGENT_KEY"`,
    },
    typescript: {
      lead: 'The same with the SDK. “npm pack ./sdk” in the checkout makes the package to install.',
      text: `import { Waystation } from 'waystation'

const client = new Waystation({
  url: ${literal(url)},
  key: '${key}', // better from the environment
})
await client.kv.put('state', 'hello', { from: '${agent_id}' })
console.log(await client.kv.get('state', 'hello'))`,
    },
    mcp: {
      lead: 'The configuration of an MCP client. The agent then finds its tools by itself.',
      text: JSON.stringify(
        {
          mcpServers: {
            waystation: { type: 'http', url: `${url}/mcp`, headers: { Authorization: `Bearer ${key}` } },
          },
        },
        null,
        2,
      ),
    },
  }
}

function literal(text: string): string {
  return text.includes("'") ? JSON.stringify(text) : `'${text}'`
}
