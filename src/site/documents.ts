// The pages in docs/, as text. Imported at the first request for one: the start of the service does not wait for them.

import { docs_pages } from '../features.ts'

/** Those that belong to no feature, by the name of the file. */
const common: Readonly<Record<string, () => Promise<{ default: string }>>> = {
  'README.md': () => import('../../docs/README.md', { with: { type: 'text' } }),
  'tutorial.md': () => import('../../docs/tutorial.md', { with: { type: 'text' } }),
  'concepts.md': () => import('../../docs/concepts.md', { with: { type: 'text' } }),
  'keys.md': () => import('../../docs/keys.md', { with: { type: 'text' } }),
  'examples.md': () => import('../../docs/examples.md', { with: { type: 'text' } }),
  'recipes/retry.md': () => import('../../docs/recipes/retry.md', { with: { type: 'text' } }),
  'recipes/phone.md': () => import('../../docs/recipes/phone.md', { with: { type: 'text' } }),
  'recipes/rate-limit.md': () => import('../../docs/recipes/rate-limit.md', { with: { type: 'text' } }),
  'recipes/webhook.md': () => import('../../docs/recipes/webhook.md', { with: { type: 'text' } }),
  'recipes/ten-workers.md': () => import('../../docs/recipes/ten-workers.md', { with: { type: 'text' } }),
  'backup.md': () => import('../../docs/backup.md', { with: { type: 'text' } }),
  'runbook.md': () => import('../../docs/runbook.md', { with: { type: 'text' } }),
  'callbacks.md': () => import('../../docs/callbacks.md', { with: { type: 'text' } }),
  'configuration.md': () => import('../../docs/configuration.md', { with: { type: 'text' } }),
  'decisions.md': () => import('../../docs/decisions.md', { with: { type: 'text' } }),
  'deploy.md': () => import('../../docs/deploy.md', { with: { type: 'text' } }),
  'durability.md': () => import('../../docs/durability.md', { with: { type: 'text' } }),
  'errors.md': () => import('../../docs/errors.md', { with: { type: 'text' } }),
  'freeze.md': () => import('../../docs/freeze.md', { with: { type: 'text' } }),
  'glossary.md': () => import('../../docs/glossary.md', { with: { type: 'text' } }),
  'http.md': () => import('../../docs/http.md', { with: { type: 'text' } }),
  'limits.md': () => import('../../docs/limits.md', { with: { type: 'text' } }),
  'overload.md': () => import('../../docs/overload.md', { with: { type: 'text' } }),
  'performance.md': () => import('../../docs/performance.md', { with: { type: 'text' } }),
  'postgres.md': () => import('../../docs/postgres.md', { with: { type: 'text' } }),
  'row-level-security.md': () => import('../../docs/row-level-security.md', { with: { type: 'text' } }),
  'citus.md': () => import('../../docs/citus.md', { with: { type: 'text' } }),
  'sdk.md': () => import('../../docs/sdk.md', { with: { type: 'text' } }),
  'python.md': () => import('../../docs/python.md', { with: { type: 'text' } }),
  'mcp.md': () => import('../../docs/mcp.md', { with: { type: 'text' } }),
  'cli.md': () => import('../../docs/cli.md', { with: { type: 'text' } }),
  'console.md': () => import('../../docs/console.md', { with: { type: 'text' } }),
  'self-hosting.md': () => import('../../docs/self-hosting.md', { with: { type: 'text' } }),
  'metrics.md': () => import('../../docs/metrics.md', { with: { type: 'text' } }),
  'traces.md': () => import('../../docs/traces.md', { with: { type: 'text' } }),
}

const of_features = docs_pages.map(({ file, load }) => [file, load] as const)
const loads = [...Object.entries(common), ...of_features]

/** Every page by the name of its file. `README.md` is the index: its sections and links say what comes where. */
export const documents: Readonly<Record<string, string>> = Object.fromEntries(
  await Promise.all(loads.map(async ([file, load]) => [file, (await load()).default])),
)
