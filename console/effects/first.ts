// Effects and policies before the first.

import { agentCurl, curlWith } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'No effects yet',
  purpose:
    'An effect is something that must happen at most once: a refund, an email, a deletion. An agent claims it by type and key, does it, and reports what came of it. When nobody knows, a person decides here.',
  command: () =>
    agentCurl('POST', '/v1/effects', {
      json: '{"type": "refund", "key": "order-7",\n' + '    "payload": {"order": 7, "amount": 30}}',
    }),
  page: 'effects',
}

export const first_policy: FirstUse = {
  title: 'No policies yet',
  purpose:
    'A policy says the least that effects of a type need, whatever their agents ask for: one approval or several, by certain people, and a short lease.',
  command: () =>
    curlWith('ADMIN_KEY', 'PUT', '/v1/effect-policies/refund', {
      json: '{"approval": "required", "required_approvals": 2}',
    }),
  key: 'ADMIN_KEY',
  page: 'effects#policies',
}
