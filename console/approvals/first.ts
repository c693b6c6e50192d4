// Approvals before the first.

import { agentCurl } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'Nothing waits for you',
  purpose:
    'An agent asks here before it does what a person should decide: a payment, an email to customers, a deletion. You approve or reject, and the agent learns of it at once.',
  command: () =>
    agentCurl('POST', '/v1/checkpoints', {
      json:
        '{"title": "Pay invoice 7?",\n' +
        '    "prompt": "Hosting, 420 EUR, due on Friday.",\n' +
        '    "callback_url": null}',
    }),
  page: 'checkpoints',
}
