// Inboxes before the first.

import { agentCurl } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'There is no inbox',
  purpose:
    'A public URL for an agent that has none. It keeps whatever is sent there, such as the webhooks of GitHub or Stripe, and the agent reads it or waits for it.',
  command: () => agentCurl('POST', '/api/webhook', { json: '{"label": "github"}' }),
  page: 'inbox',
}
