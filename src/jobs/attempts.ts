// The attempts of a delivery, as features list them.

import { Type } from 'typebox'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import { pageOf, pageRequest } from '../contract/page.ts'
import type { Context } from '../contract/route.ts'
import { Nullable, Page, Shape, Time } from '../contract/schemas.ts'
import { type AttemptResult, attemptOf, attempts_max, type LeasedJob } from './job.ts'
import * as jobs from './service.ts'

/** In the table that the CLI prints. */
export const attempt_columns = ['attempt', 'started_at', 'duration_ms', 'status_code', 'error', 'webhook_id']

export const AttemptPage = Page(
  Shape('Attempt', 'One attempt to deliver, with its outcome.', {
    attempt: Type.Integer({ description: '1, 2 or 3.' }),
    webhook_id: Type.String({ description: 'The webhook-id header, the same on every retry.' }),
    started_at: Time('When it began.'),
    duration_ms: Type.Integer(),
    status_code: Nullable(Type.Integer({ description: 'What the receiver answered; null when it did not.' })),
    error: Nullable(
      Type.String({
        description: 'null, or dns, refused, timeout, tls, blocked, too_large, status, interrupted.',
      }),
    ),
  }),
)

/** The data of an attempt's event. */
export const attempted_data = {
  attempt: Type.Integer({ description: '1, 2 or 3.' }),
  status_code: Nullable(Type.Integer({ description: 'The status of the answer; null when none came.' })),
  error: Nullable(Type.String({ description: 'The class of the failure; null for a success.' })),
}

/** Its values. Null for a lease past the last attempt, which is not an attempt. */
export function attemptedOf({ attempts: attempt }: Pick<LeasedJob, 'attempts'>, result: AttemptResult) {
  const { status_code, error } = result
  return attempt > attempts_max ? null : { attempt, status_code, error }
}

/** Newest first. `find` returns the source of the attempts, or throws. */
export async function attemptPage(
  context: Context<AdminCaller | AgentCaller>,
  query: { limit?: number; cursor?: string },
  source: string,
  find: () => Promise<{ id: string }>,
) {
  const request = pageRequest(context, query)
  const { id } = await find()
  const before_seq = request.after ? Number(request.after[0]) : Number.MAX_SAFE_INTEGER
  const key = { tenant_id: context.caller.tenant_id, source, source_id: id }
  const rows = await jobs.attempts(context.db, key, before_seq, request.rows_max)
  return pageOf(context, request, { rows, itemOf: attemptOf, positionOf: (row) => [row.seq] })
}
