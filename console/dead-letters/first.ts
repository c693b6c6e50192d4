// Dead letters before the first.

import { agentCurl } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'Nothing has failed',
  purpose:
    'Work that failed for good comes here with its payload and its error, and waits until it is done again or given up. Schedules and approvals leave theirs by themselves; an agent leaves one of its own.',
  command: () =>
    agentCurl('POST', '/v1/dlq', { json: '{"payload": {"order": 7}, "error": "card declined"}' }),
  page: 'dlq',
}
