// How far the approval of an effect reaches, and its revocation.

import type { Checkpoint } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { pathOf } from '../api/address.ts'
import { ask } from '../api/session.ts'
import { now } from '../text/time.ts'
import { count } from '../text/words.ts'
import { Time } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { announce } from '../ui/toast.tsx'

interface PermitProps {
  checkpoint: Checkpoint
  /** The effect that it was asked for is not over. */
  is_open: boolean
  onChange: () => void
}

/** With a button while there is something to revoke. */
export function Permit({ checkpoint, is_open, onChange }: PermitProps) {
  const { status, payload_hash, permit_expires_at, uses, uses_left } = checkpoint
  if (status !== 'approved' || payload_hash === null) return null
  const is_over =
    uses_left === 0 || (permit_expires_at !== null && Date.parse(permit_expires_at) <= now.value)
  const reaches = is_open || uses_left > 1
  return (
    <>
      {(uses > 1 || permit_expires_at !== null) && (
        <p class="muted small">
          {uses > 1 && `${count(uses_left)} of ${count(uses)} uses left. `}
          {permit_expires_at !== null && (
            <>
              {is_over ? 'Over since ' : 'Ends '}
              <Time at={permit_expires_at} />
            </>
          )}
        </p>
      )}
      <Asking text="Revoke" kind="danger" label="Revoke the approval" absent={is_over || !reaches}>
        {(onClose) => <Sure {...{ checkpoint, onChange, onClose }} />}
      </Asking>
    </>
  )
}

function Sure({ checkpoint, onChange, onClose }: Omit<PermitProps, 'is_open'> & { onClose: () => void }) {
  const { id, title } = checkpoint
  const work = async () => {
    const revoked = await ask<Checkpoint>('POST', `${pathOf('/v1/checkpoints', id)}/revoke`)
    onChange()
    return revoked
  }
  return (
    <ChangeQuestion
      title="Revoke the approval?"
      verb="Yes, revoke"
      kind="danger"
      onDone={() => announce('Revoked.')}
      {...{ work, onClose }}
    >
      <Emphasis>{title}</Emphasis>
      <p>
        Nothing starts under it any more. What is running now may finish. This cannot be undone: another
        attempt needs another approval.
      </p>
    </ChangeQuestion>
  )
}
