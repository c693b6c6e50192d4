// The audit log before its first entry.

import { agentCurl } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'There are no entries yet',
  purpose:
    'Agents note here what they did, so that you can say later who did what and when. Entries are numbered without gaps, and nobody can change or remove one.',
  command: () =>
    agentCurl('POST', '/v1/audit', { json: '{"action": "import.finished", "metadata": {"rows": 42}}' }),
  page: 'audit',
}
