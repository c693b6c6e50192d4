// The route that revokes an approval.

import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { revoke } from './revocation-service.ts'
import { Checkpoint, checkpointOf, id, tag } from './shapes.ts'

export const revokeApproval = route({
  group: v1,
  method: 'POST',
  path: '/v1/checkpoints/:id/revoke',
  tag,
  summary: 'Revoke the approval of an effect',
  description:
    'Needs the admin key, or an approval key that may decide it. No effect starts under it any more, and those that had not started end as rejected. One that is running may finish. `permit_expires_at` is the time of the revocation.',
  sdk: {
    name: 'checkpoints.revoke',
    retry: { safe: true, why: 'an approval that was revoked stays so' },
  },
  cli: {
    usage: 'revoke <id>',
    about: 'Revoke the approval of an effect, with an admin or approval key',
    examples: ['waystation revoke chk_01m7yjrz37hxnv52px0106nehd'],
  },
  auth: ['admin', 'approval'],
  params: { id },
  replies: { 200: { body: Checkpoint } },
  shed: 'last',
  emits: ['checkpoint.revoked', 'effect.rejected', 'effect.unknown'],
  errors: ['CHECKPOINT_NOT_FOUND', 'NOT_AN_APPROVER', 'INVALID_STATE'],
  async handle({ db, caller, dependencies }, { params }) {
    return checkpointOf(await revoke(db, caller, dependencies, params.id), dependencies)
  },
})
