// May a request be sent again when nobody knows whether the first one had its effect? Reads may, and what creates
// carries an Idempotency-Key. Every other operation stands here.

import type { WaystationError } from './errors.ts'
import type { Operations } from './types.ts'

export interface Sent {
  body?: Readonly<Record<string, unknown>> | undefined
  headers?: Readonly<Record<string, string>> | undefined
}

interface Rule {
  /** Whether it is sent again. */
  repeat(sent: Sent): boolean
  /** The words of the table in the documentation. */
  why: string
  /** A refusal of the repeat which says that what was wanted is so. */
  done?: {
    code: WaystationError['code']
    /** `details.status` must be this. */
    status?: string
    /** What the call then answers: this, or what this operation reads. */
    answer?: unknown
    read?: keyof Operations
  }
}

const always = () => true
const never = () => false
const withToken = ({ body }: Sent) => body?.lock_token !== undefined

export const repeats: { readonly [K in keyof Operations]?: Rule } = {
  deleteTenant: { repeat: always, why: 'deleting it again answers the same' },
  restoreTenant: { repeat: never, why: 'a tenant that is active already is refused' },
  rotateTenantKey: { repeat: never, why: 'a repeat would end the key of the answer that was lost' },
  rotateSigningSecret: { repeat: never, why: 'a repeat would rotate twice' },
  rotateAgentKey: { repeat: never, why: 'a repeat would end the key of the answer that was lost' },
  deleteAgent: { repeat: never, why: 'its name may be in use again by then' },
  deleteApprovalKey: {
    repeat: always,
    why: 'an id is used once; gone is gone',
    done: { code: 'APPROVAL_KEY_NOT_FOUND' },
  },
  putValue: {
    repeat: ({ body, headers }) => body?.cas_version === undefined && !headers,
    why: 'without a condition the same value is put again; with one, the repeat could not tell its own write from another',
  },
  deleteValue: {
    repeat: ({ headers }) => !headers,
    why: 'without a condition; absent is absent',
    done: { code: 'KEY_NOT_FOUND' },
  },
  claimItem: {
    repeat: never,
    why: 'the lock would be held under a token that nobody got; it runs out by itself',
  },
  claimOldestItem: {
    repeat: never,
    why: 'a repeat would take another item; the lock of the first runs out by itself',
  },
  extendItem: { repeat: withToken, why: 'with its token it can only be the same lock' },
  releaseItem: {
    repeat: withToken,
    why: 'with its token it can only be the same lock; failed again is what was wanted',
    done: { code: 'INVALID_STATE', status: 'failed', read: 'getItem' },
  },
  failItem: {
    repeat: withToken,
    why: 'with its token it can only be the same lock; archived is what was wanted',
    done: { code: 'INVALID_STATE', status: 'archived', read: 'getItem' },
  },
  resolveItem: { repeat: always, why: 'resolving a resolved item answers the same' },
  deleteItem: { repeat: always, why: 'an id is used once; gone is gone', done: { code: 'DLQ_NOT_FOUND' } },
  updateSchedule: {
    repeat: ({ body }) => body?.fire_at === undefined,
    why: 'the same fields are set again; a new fire_at would begin its attempts anew',
  },
  cancelSchedule: {
    repeat: always,
    why: 'cancelled is what was wanted',
    done: { code: 'INVALID_STATE', status: 'cancelled' },
  },
  approveCheckpoint: {
    repeat: always,
    why: 'approved is what was wanted, whoever did it',
    done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'approved', read: 'getCheckpoint' },
  },
  rejectCheckpoint: {
    repeat: always,
    why: 'rejected is what was wanted, whoever did it',
    done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'rejected', read: 'getCheckpoint' },
  },
  cancelCheckpoint: {
    repeat: always,
    why: 'cancelled is what was wanted',
    done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'cancelled' },
  },
  deleteInbox: {
    repeat: always,
    why: 'an id is used once; gone is gone',
    done: { code: 'INBOX_NOT_FOUND', answer: { deleted: true } },
  },
  checkRateLimit: { repeat: never, why: 'a repeat would count twice' },
  resetRateLimit: { repeat: always, why: 'no window is no window; reset then tells of the repeat' },
  tick: { repeat: always, why: 'a second tick does nothing twice; its counts leave out what the first did' },
}
