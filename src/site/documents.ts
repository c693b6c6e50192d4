// The pages in docs/, as text. Imported at the first request for one: the start of the service does not wait for them.

import callbacks from '../../docs/callbacks.md' with { type: 'text' }
import cli from '../../docs/cli.md' with { type: 'text' }
import configuration from '../../docs/configuration.md' with { type: 'text' }
import consoleAndApproval from '../../docs/console.md' with { type: 'text' }
import decisions from '../../docs/decisions.md' with { type: 'text' }
import durability from '../../docs/durability.md' with { type: 'text' }
import errors from '../../docs/errors.md' with { type: 'text' }
import glossary from '../../docs/glossary.md' with { type: 'text' }
import http from '../../docs/http.md' with { type: 'text' }
import limits from '../../docs/limits.md' with { type: 'text' }
import mcp from '../../docs/mcp.md' with { type: 'text' }
import postgres from '../../docs/postgres.md' with { type: 'text' }
import index from '../../docs/README.md' with { type: 'text' }
import sdk from '../../docs/sdk.md' with { type: 'text' }
import self_hosting from '../../docs/self-hosting.md' with { type: 'text' }
import { docs_pages } from '../features.ts'

/** Those that belong to no feature, by the name of the file. */
const common: Readonly<Record<string, string>> = {
  'README.md': index,
  'callbacks.md': callbacks,
  'configuration.md': configuration,
  'decisions.md': decisions,
  'durability.md': durability,
  'errors.md': errors,
  'glossary.md': glossary,
  'http.md': http,
  'limits.md': limits,
  'postgres.md': postgres,
  'sdk.md': sdk,
  'mcp.md': mcp,
  'cli.md': cli,
  'console.md': consoleAndApproval,
  'self-hosting.md': self_hosting,
}

/** Every page by the name of its file. `README.md` is the index: its sections and links say what comes where. */
export async function documents(): Promise<Readonly<Record<string, string>>> {
  const loaded = docs_pages.map(async ({ file, load }) => [file, (await load()).default])
  return { ...common, ...Object.fromEntries(await Promise.all(loaded)) }
}
