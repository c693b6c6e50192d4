// Rate limits before the first check.

import { agentCurl } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'No window is running',
  purpose:
    'Agents ask here before they call somebody else, so that all of them together stay within a limit. A counter appears with its first check, until its window ends.',
  command: () =>
    agentCurl('POST', '/api/rate-limit/check', {
      json: '{"key": "crm.example.com", "limit": 100, "windowSeconds": 60}',
    }),
  page: 'rate-limit',
}
