// Subscriptions before the first.

import { curlWith } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'Nobody is notified yet',
  purpose:
    'A subscription sends what happens to a URL, to a channel of Slack or by mail. Begin with requests that wait for a decision, so that a person learns of them at once.',
  command: () =>
    curlWith('ADMIN_KEY', 'POST', '/v1/subscriptions', {
      json:
        '{"url": "https://hooks.slack.com/services/T0/B0/x", "format": "slack",\n' +
        '    "types": ["checkpoint.created"]}',
    }),
  key: 'ADMIN_KEY',
  page: 'subscriptions',
}
