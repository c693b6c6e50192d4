// The pages in docs/, as text. Imported at the first request for one: the start of the service does not wait for them.

import agents from '../../docs/agents.md' with { type: 'text' }
import approval_keys from '../../docs/approval-keys.md' with { type: 'text' }
import audit from '../../docs/audit.md' with { type: 'text' }
import callbacks from '../../docs/callbacks.md' with { type: 'text' }
import checkpoints from '../../docs/checkpoints.md' with { type: 'text' }
import cli from '../../docs/cli.md' with { type: 'text' }
import configuration from '../../docs/configuration.md' with { type: 'text' }
import consoleAndApproval from '../../docs/console.md' with { type: 'text' }
import decisions from '../../docs/decisions.md' with { type: 'text' }
import dlq from '../../docs/dlq.md' with { type: 'text' }
import durability from '../../docs/durability.md' with { type: 'text' }
import errors from '../../docs/errors.md' with { type: 'text' }
import glossary from '../../docs/glossary.md' with { type: 'text' }
import http from '../../docs/http.md' with { type: 'text' }
import idempotency from '../../docs/idempotency.md' with { type: 'text' }
import inbox from '../../docs/inbox.md' with { type: 'text' }
import kv from '../../docs/kv.md' with { type: 'text' }
import limits from '../../docs/limits.md' with { type: 'text' }
import mcp from '../../docs/mcp.md' with { type: 'text' }
import postgres from '../../docs/postgres.md' with { type: 'text' }
import index from '../../docs/README.md' with { type: 'text' }
import rate_limit from '../../docs/rate-limit.md' with { type: 'text' }
import schedules from '../../docs/schedules.md' with { type: 'text' }
import sdk from '../../docs/sdk.md' with { type: 'text' }
import self_hosting from '../../docs/self-hosting.md' with { type: 'text' }
import tenants from '../../docs/tenants.md' with { type: 'text' }
import tick from '../../docs/tick.md' with { type: 'text' }

/** By the name of the file. `README.md` is the index: its sections and links say what comes where. */
export const documents: Readonly<Record<string, string>> = {
  'README.md': index,
  'agents.md': agents,
  'approval-keys.md': approval_keys,
  'audit.md': audit,
  'callbacks.md': callbacks,
  'checkpoints.md': checkpoints,
  'configuration.md': configuration,
  'decisions.md': decisions,
  'dlq.md': dlq,
  'durability.md': durability,
  'errors.md': errors,
  'glossary.md': glossary,
  'http.md': http,
  'idempotency.md': idempotency,
  'inbox.md': inbox,
  'kv.md': kv,
  'limits.md': limits,
  'postgres.md': postgres,
  'rate-limit.md': rate_limit,
  'schedules.md': schedules,
  'sdk.md': sdk,
  'mcp.md': mcp,
  'cli.md': cli,
  'console.md': consoleAndApproval,
  'self-hosting.md': self_hosting,
  'tenants.md': tenants,
  'tick.md': tick,
}
