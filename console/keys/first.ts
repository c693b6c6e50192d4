// Agents and approval keys before the first.

import { curlWith } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first_agent: FirstUse = {
  title: 'No agents yet',
  purpose:
    'An agent is a program that works for you, with a key of its own. Create one above, or in a terminal.',
  command: () => curlWith('ADMIN_KEY', 'POST', '/v1/agents', { json: '{"name": "worker-1"}' }),
  key: 'ADMIN_KEY',
  page: 'agents',
}

export const first_approval_key: FirstUse = {
  title: 'No approval keys',
  purpose:
    'One lets a person decide without this console: by a link on a phone, or from a tool of their own. Create one above, or in a terminal.',
  command: () => curlWith('ADMIN_KEY', 'POST', '/v1/approval-keys', { json: '{"label": "Dana, on call"}' }),
  key: 'ADMIN_KEY',
  page: 'approval-keys',
}
