// Additions that an implementation may have: the journal of what happened, waits and workflows.

import { equal, holds, refused, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import * as objects from '../objects.ts'
import { type Tenant, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

interface Event {
  seq: number
  type: string
  subject: { kind: string; id: string }
  workflow_id: string | null
}

export const journal = chapter(
  'journal',
  {
    events: [
      'GET /events shows each change once, in the order of seq, without gaps; after leads on',
      'decisions 8',
      async (t) => {
        const tenant = await served(t)
        const agent = await tenant.agent()
        const { id } = await objects.claimed(tenant)
        succeeded(await agent.post(`/v1/dlq/${id}/resolve`), 200)
        const events = await eventsOf(tenant)
        const own = events.filter(({ subject }) => subject.id === id).map(({ type }) => type)
        equal(own, ['dlq.created', 'dlq.claimed', 'dlq.resolved'], 'events of the item')
        const numbers = events.map(({ seq }) => seq)
        equal(
          numbers,
          numbers.map((_, i) => numbers[0]! + i),
          'seq of the events',
        )
        const later = succeeded(await tenant.admin.get(`/v1/events?after=${numbers.at(-2)}`), 200)
        equal(
          later.items.map(({ seq }: Event) => seq),
          [numbers.at(-1)],
          'events after the last but one',
        )
      },
    ],
    'not-the-audit-log': [
      'The journal is not the audit log: GET /audit keeps holding what was appended',
      'decisions 8',
      async (t) => {
        const tenant = await served(t)
        await objects.claimed(tenant)
        equal(succeeded(await tenant.admin.get('/v1/audit'), 200).items, [], 'audit entries')
      },
    ],
    wait: [
      'POST /wait answers the event as soon as it happens, or event null when its time is over',
      'decisions 8',
      async (t) => {
        const tenant = await served(t)
        const workflow_id = `wf-${unique()}`
        const none = succeeded(
          await tenant.admin.post('/v1/wait', { any: [{ workflow_id }], wait_seconds: 0 }),
          200,
        )
        equal(none.event, null, 'event when nothing happened')
        const body = { any: [{ workflow_id }], after: none.after, wait_seconds: 20 }
        const waiting = tenant.admin.post('/v1/wait', body)
        succeeded(await tenant.admin.post('/v1/audit', { action: 'x', workflow_id }), 201)
        const { event } = succeeded(await waiting, 200)
        equal([event.type, event.workflow_id], ['audit.appended', workflow_id], 'type and workflow_id')
      },
    ],
    workflow: [
      'Schedules, checkpoints, dead letters and inboxes take a workflow_id; GET /workflows/{id} shows what happened in it',
      'decisions 8',
      async (t) => {
        const tenant = await served(t)
        const agent = await tenant.agent()
        const workflow_id = `wf-${unique()}`
        const bodies: [string, object][] = [
          ['/v1/schedules', objects.scheduleBody(t.world)],
          ['/v1/checkpoints', objects.checkpointBody(t.world)],
          ['/v1/dlq', { payload: 1, error: 'x' }],
        ]
        for (const [path, body] of bodies)
          equal(
            succeeded(await agent.post(path, { ...body, workflow_id }), 201).workflow_id,
            workflow_id,
            `workflow_id of ${path}`,
          )
        const inbox = succeeded(await agent.post('/api/webhook', { workflowId: workflow_id }), 201)
        equal(inbox.workflowId, workflow_id, 'workflowId of an inbox')
        const shown = succeeded(await agent.get(`/v1/workflows/${workflow_id}`), 200)
        holds(shown.items.length >= 4, `${shown.items.length} events in the workflow`)
      },
    ],
    'workflow-header': [
      'X-Workflow-Id says the workflow of what a request creates',
      'decisions 8',
      async (t) => {
        const tenant = await served(t)
        const agent = await tenant.agent()
        const headers = { 'x-workflow-id': `wf-${unique()}` }
        const made = succeeded(await agent.post('/v1/schedules', objects.scheduleBody(t.world), headers), 201)
        equal(made.workflow_id, headers['x-workflow-id'], 'workflow_id')
      },
    ],
    isolation: [
      'Events of another tenant are not shown',
      'core 1.2',
      async (t) => {
        const tenant = await served(t)
        const { id } = await objects.item(await t.stranger())
        await objects.item(tenant)
        const events = await eventsOf(tenant)
        equal(
          events.filter(({ subject }) => subject.id === id),
          [],
          'events of the other tenant',
        )
        refused(await tenant.admin.get(`/v1/dlq/${id}`), 'DLQ_NOT_FOUND')
      },
    ],
  },
  'extensions',
)

/** A tenant of its own, on a service that has the journal. */
async function served(t: Trial) {
  const { admin } = await t.tenant()
  const answer = await admin.get('/v1/events')
  if (answer.json?.error?.code === 'ROUTE_NOT_FOUND')
    t.notRun('the service has no journal: GET /v1/events is unknown')
  return t.newTenant()
}

async function eventsOf({ admin }: Tenant): Promise<Event[]> {
  return succeeded(await admin.get('/v1/events?limit=200'), 200).items
}
