// Made from openapi.json by scripts/clients.ts: do not edit.

import type { Retry } from './repeats.ts'
import type { Operations } from './types.ts'

export const retries: { readonly [K in keyof Operations]?: Retry } = {
  deleteTenant: { safe: true, why: 'deleting it again answers the same' },
  freezeTenant: { safe: true, why: 'a tenant that is frozen stays as it is' },
  restoreTenant: { safe: false, why: 'a tenant that is already active is refused' },
  resumeTenant: {
    safe: { with: 'frozen_at' },
    why: 'with the time of the freeze a repeat never ends the next one',
  },
  rotateSigningSecret: { safe: false, why: 'a repeat would rotate twice' },
  rotateTenantKey: { safe: false, why: 'a repeat would end the key of the answer that was lost' },
  updateAgent: { safe: false, why: 'a repeat could undo a mode that was set in between' },
  deleteAgent: { safe: false, why: 'its name may be in use again by then' },
  pauseAgent: { safe: true, why: 'an agent that is paused stays as it is' },
  resumeAgent: { safe: false, why: 'a repeat could end a pause that came in between' },
  rotateAgentKey: { safe: false, why: 'a repeat would end the key of the answer that was lost' },
  deleteApprovalKey: {
    safe: true,
    why: 'an id is used once; a deleted key stays deleted',
    done: { code: 'APPROVAL_KEY_NOT_FOUND' },
  },
  putValue: {
    safe: { without: ['cas_version', 'if-match', 'if-none-match'] },
    why: 'without a condition the same value is put again; with one, the repeat could not tell its own write from another',
  },
  deleteValue: {
    safe: { without: ['if-match'] },
    why: 'without a condition; absent is absent',
    done: { code: 'KEY_NOT_FOUND' },
  },
  updateNamespace: { safe: true, why: 'the same settings are set again' },
  cancelOperation: { safe: true, why: 'one that has ended answers the same' },
  claimItem: { safe: false, why: 'the token of the lock would be lost; it expires on its own' },
  claimOldestItem: {
    safe: false,
    why: 'a repeat would claim another item; the first lock expires on its own',
  },
  deleteItem: {
    safe: true,
    why: 'an id is used once; a deleted item stays deleted',
    done: { code: 'DLQ_NOT_FOUND' },
  },
  extendItem: { safe: { with: 'lock_token' }, why: 'the token names one lock' },
  failItem: {
    safe: { with: 'lock_token' },
    why: 'the token names one lock; an archived item stays archived',
    done: { code: 'INVALID_STATE', status: 'archived', read: 'getItem' },
  },
  releaseItem: {
    safe: { with: 'lock_token' },
    why: 'the token names one lock; a released item is failed again',
    done: { code: 'INVALID_STATE', status: 'failed', read: 'getItem' },
  },
  resolveItem: { safe: true, why: 'resolving a resolved item answers the same' },
  updateSchedule: {
    safe: { without: ['fire_at'] },
    why: 'the same fields are set again; a new fire_at would start its attempts again',
  },
  cancelSchedule: {
    safe: true,
    why: 'a cancelled schedule stays cancelled',
    done: { code: 'INVALID_STATE', status: 'cancelled' },
  },
  approveCheckpoint: {
    safe: { without: ['effective_payload'] },
    why: 'a checkpoint that is approved stays so, and a key has one vote; an edit would void the votes after it',
    done: [
      { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'approved', read: 'getCheckpoint' },
      { code: 'ALREADY_VOTED', decision: 'approved', read: 'getCheckpoint' },
    ],
  },
  cancelCheckpoint: {
    safe: true,
    why: 'a cancelled checkpoint stays cancelled',
    done: { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'cancelled' },
  },
  rejectCheckpoint: {
    safe: true,
    why: 'a checkpoint that is rejected stays so, and a key has one vote',
    done: [
      { code: 'CHECKPOINT_ALREADY_RESOLVED', status: 'rejected', read: 'getCheckpoint' },
      { code: 'ALREADY_VOTED', decision: 'rejected', read: 'getCheckpoint' },
    ],
  },
  revokeApproval: { safe: true, why: 'an approval that was revoked stays so' },
  deleteInbox: {
    safe: true,
    why: 'an id is used once; a deleted inbox stays deleted',
    done: { code: 'INBOX_NOT_FOUND', answer: { deleted: true } },
  },
  waitForEvent: { safe: true, why: 'it changes nothing' },
  tick: { safe: true, why: 'a second tick does nothing twice; its counts leave out what the first did' },
  checkRateLimit: { safe: false, why: 'a repeat would count twice' },
  resetRateLimit: { safe: false, why: 'a repeat could end a window that began in between' },
  claimEffect: {
    safe: { with: 'lease_token' },
    why: 'with a token of your own a repeat gets the same lease',
  },
  extendEffect: { safe: true, why: 'the token names one lease' },
  failEffect: { safe: true, why: 'the token names one lease; a repeat answers the same' },
  resolveEffect: {
    safe: { with: 'fence' },
    why: 'with the number of the lease a repeat never frees the next one',
  },
  startEffect: {
    safe: { with: 'lease_token' },
    why: 'with a token of your own a repeat gets the same lease',
  },
  succeedEffect: { safe: true, why: 'the token names one lease; a repeat answers the same' },
  setEffectPolicy: { safe: false, why: 'a repeat could undo a policy that was set in between' },
  deleteEffectPolicy: { safe: false, why: 'a repeat could delete a policy that was set in between' },
  updateSubscription: {
    safe: { without: ['paused'] },
    why: 'the same fields are set again; a resume could end a pause that came in between',
  },
  deleteSubscription: {
    safe: true,
    why: 'an id is used once; a deleted subscription stays deleted',
    done: { code: 'SUBSCRIPTION_NOT_FOUND' },
  },
  replaySubscription: { safe: true, why: 'deliveries begin after the same event again' },
  advanceClock: { safe: false, why: 'a second call would move the time a second time' },
}
