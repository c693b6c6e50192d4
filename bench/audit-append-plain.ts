import { keptEntries } from './audit-append.ts'
import type { HotPath } from './hot-path.ts'

const body =
  '{"action":"tool.called","metadata":{"tool":"search","query":"weather in Lisbon","tokens":1234,"duration_ms":412,"cached":false,"attempt":1}}'

export const auditAppendPlain: HotPath = {
  name: 'audit-append-plain',
  summary: 'the same without a workflow_id: every index grows at its end only',
  nginx_multiple_max: null,
  request: () => ({ method: 'POST', path: '/v1/audit', body }),
  preload: async () => {},
  kept: keptEntries,
}
