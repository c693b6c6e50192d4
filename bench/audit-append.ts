import type { HotPath } from './hot-path.ts'
import type { Client } from './service.ts'

/** Many at once, so that neighbours in a batch of writes lie far apart in the index on workflow_id. */
const workflows_count = 1_000

export const auditAppend: HotPath = {
  name: 'audit-append',
  summary: 'append an entry with metadata to one of 1,000 workflows, bodies of 150 bytes',
  nginx_multiple_max: 6,
  request: (n) => ({ method: 'POST', path: '/v1/audit', body: bodyOfEntry(n % workflows_count) }),
  preload: async () => {},
  kept: keptEntries,
}

function bodyOfEntry(n: number): string {
  const workflow = String(n).padStart(4, '0')
  return `{"action":"tool.called","workflow_id":"wf-${workflow}","metadata":{"tool":"search","query":"weather in Lisbon","tokens":1234,"duration_ms":412,"cached":false}}`
}

/** `seq` has no gaps. */
export async function keptEntries(client: Client): Promise<number> {
  const { items } = await client.read<{ items: { seq: number }[] }>('/v1/audit?limit=1')
  return items[0]?.seq ?? 0
}
