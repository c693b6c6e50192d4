// Workflows before the first.

import { agentCurl } from '../text/curl.ts'
import type { FirstUse } from '../ui/first.tsx'

export const first: FirstUse = {
  title: 'No workflows yet',
  purpose:
    'A workflow is everything that carries one workflow_id: what an agent asked, who decided, what was called, and what came of it. Here it is a timeline, from the question to the consequence. An agent names it in a field, or in the header X-Workflow-Id of any call.',
  command: () =>
    agentCurl('POST', '/v1/checkpoints', {
      json:
        '{"workflow_id": "invoice-7",\n' + '    "title": "Pay invoice 7?",\n' + '    "callback_url": null}',
    }),
  page: 'workflows',
}
