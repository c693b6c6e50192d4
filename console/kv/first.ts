// The key-value store before the first value.

import { agentCurl } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'Nothing is stored',
  purpose:
    'Agents keep their state here and share it: where an import stopped, what was sent already. Versions keep ten workers from overwriting each other.',
  command: () => agentCurl('PUT', '/v1/kv/state/last-run', { json: '{"value": {"rows": 42}}' }),
  page: 'kv',
}
