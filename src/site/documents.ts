// The pages in docs/, as text. Imported at the first request for one: the start of the service does not wait for them.

import backup from '../../docs/backup.md' with { type: 'text' }
import callbacks from '../../docs/callbacks.md' with { type: 'text' }
import citus from '../../docs/citus.md' with { type: 'text' }
import cli from '../../docs/cli.md' with { type: 'text' }
import concepts from '../../docs/concepts.md' with { type: 'text' }
import configuration from '../../docs/configuration.md' with { type: 'text' }
import consoleAndApproval from '../../docs/console.md' with { type: 'text' }
import decisions from '../../docs/decisions.md' with { type: 'text' }
import deploy from '../../docs/deploy.md' with { type: 'text' }
import durability from '../../docs/durability.md' with { type: 'text' }
import errors from '../../docs/errors.md' with { type: 'text' }
import examples from '../../docs/examples.md' with { type: 'text' }
import freeze from '../../docs/freeze.md' with { type: 'text' }
import glossary from '../../docs/glossary.md' with { type: 'text' }
import http from '../../docs/http.md' with { type: 'text' }
import keys from '../../docs/keys.md' with { type: 'text' }
import limits from '../../docs/limits.md' with { type: 'text' }
import mcp from '../../docs/mcp.md' with { type: 'text' }
import metrics from '../../docs/metrics.md' with { type: 'text' }
import overload from '../../docs/overload.md' with { type: 'text' }
import performance_page from '../../docs/performance.md' with { type: 'text' }
import postgres from '../../docs/postgres.md' with { type: 'text' }
import python from '../../docs/python.md' with { type: 'text' }
import index from '../../docs/README.md' with { type: 'text' }
import phone from '../../docs/recipes/phone.md' with { type: 'text' }
import rate_limit from '../../docs/recipes/rate-limit.md' with { type: 'text' }
import retry from '../../docs/recipes/retry.md' with { type: 'text' }
import ten_workers from '../../docs/recipes/ten-workers.md' with { type: 'text' }
import webhook from '../../docs/recipes/webhook.md' with { type: 'text' }
import row_level_security from '../../docs/row-level-security.md' with { type: 'text' }
import runbook from '../../docs/runbook.md' with { type: 'text' }
import sdk from '../../docs/sdk.md' with { type: 'text' }
import self_hosting from '../../docs/self-hosting.md' with { type: 'text' }
import traces from '../../docs/traces.md' with { type: 'text' }
import tutorial from '../../docs/tutorial.md' with { type: 'text' }
import { docs_pages } from '../features.ts'

/** Those that belong to no feature, by the name of the file. */
const common: Readonly<Record<string, string>> = {
  'README.md': index,
  'tutorial.md': tutorial,
  'concepts.md': concepts,
  'keys.md': keys,
  'examples.md': examples,
  'recipes/retry.md': retry,
  'recipes/phone.md': phone,
  'recipes/rate-limit.md': rate_limit,
  'recipes/webhook.md': webhook,
  'recipes/ten-workers.md': ten_workers,
  'backup.md': backup,
  'runbook.md': runbook,
  'callbacks.md': callbacks,
  'configuration.md': configuration,
  'decisions.md': decisions,
  'deploy.md': deploy,
  'durability.md': durability,
  'errors.md': errors,
  'freeze.md': freeze,
  'glossary.md': glossary,
  'http.md': http,
  'limits.md': limits,
  'overload.md': overload,
  'performance.md': performance_page,
  'postgres.md': postgres,
  'row-level-security.md': row_level_security,
  'citus.md': citus,
  'sdk.md': sdk,
  'python.md': python,
  'mcp.md': mcp,
  'cli.md': cli,
  'console.md': consoleAndApproval,
  'self-hosting.md': self_hosting,
  'metrics.md': metrics,
  'traces.md': traces,
}

/** Every page by the name of its file. `README.md` is the index: its sections and links say what comes where. */
export async function documents(): Promise<Readonly<Record<string, string>>> {
  const loaded = docs_pages.map(async ({ file, load }) => [file, (await load()).default])
  return { ...common, ...Object.fromEntries(await Promise.all(loaded)) }
}
