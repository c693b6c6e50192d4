// Schedules before the first.

import { agentCurl } from '../text/curl.ts'
import { day_ms, now } from '../text/time.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'No call is scheduled',
  purpose:
    'An agent asks to be called at a time: to try again in an hour, to send a reminder tomorrow. The service calls its URL then, signed, and up to three times until it answers.',
  command: () =>
    agentCurl('POST', '/v1/schedules', {
      json:
        '{"callback_url": "https://agent.example.com/remind",\n' +
        '    "callback_payload": {"order": 7}, "dlq_on_failure": true,\n' +
        `    "fire_at": "${tomorrow()}"}`,
    }),
  page: 'schedules',
}

function tomorrow(): string {
  return new Date(now.peek() + day_ms).toISOString()
}
