// The MCP server over stdio as a command of its own: WAYSTATION_URL and WAYSTATION_KEY in the environment, --read-only.

import { serveStdio } from './stdio.ts'

const { WAYSTATION_URL: url = 'http://127.0.0.1:8420', WAYSTATION_KEY: key = '' } = process.env
const [option, ...others] = process.argv.slice(2)

if (key === '') quit('WAYSTATION_KEY is not set: it takes the key of an agent, svc_agt_…')
if (!URL.canParse(url)) quit(`WAYSTATION_URL: "${url}" is no URL`)
if (others.length > 0 || (option !== undefined && option !== '--read-only')) {
  quit('usage: mcp [--read-only]')
}
await serveStdio({ url, key, read_only: option === '--read-only' })

function quit(why: string): never {
  console.error(`waystation mcp: ${why}`)
  process.exit(2)
}
