// How far the approval of an effect reaches, and its revocation.

import { useLayoutEffect, useRef } from 'preact/hooks'
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
  /** The effect that it was asked for may still be started. */
  is_open: boolean
  onChange: () => void
}

/** With a button while there is something to revoke. It takes the focus when the revocation has taken the button away. */
export function Permit({ checkpoint, is_open, onChange }: PermitProps) {
  const { status, effect, payload_hash, permit_expires_at, uses, uses_left } = checkpoint
  const place = useRef<HTMLDivElement>(null)
  const is_over = uses_left === 0 || isPast(permit_expires_at)
  const is_revocable = !is_over && (is_open || uses_left > 1)
  const before = useRef(is_revocable)
  useLayoutEffect(() => {
    if (before.current && !is_revocable && document.activeElement === document.body) place.current?.focus()
    before.current = is_revocable
  }, [is_revocable])
  // A question about an effect approves no bytes; those of an approval may have been removed.
  if (status !== 'approved' || effect === null || (payload_hash === null && uses === 1)) return null
  return (
    <div ref={place} tabIndex={-1}>
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
      <Asking text="Revoke" kind="danger" label="Revoke the approval" absent={!is_revocable}>
        {(onClose) => <Sure {...{ checkpoint, onChange, onClose }} />}
      </Asking>
    </div>
  )
}

export function isPast(at: string | null): boolean {
  return at !== null && Date.parse(at) <= now.value
}

interface SureProps extends Omit<PermitProps, 'is_open'> {
  onClose: () => void
}

function Sure({ checkpoint: { id, title }, onChange, onClose }: SureProps) {
  const work = async () => {
    const revoked = await ask<Checkpoint>('POST', `${pathOf('/v1/checkpoints', id)}/revoke`)
    onChange()
    return revoked
  }
  return (
    <ChangeQuestion
      title="Revoke the approval?"
      verb="Yes, revoke"
      onDone={() => announce('Revoked.')}
      {...{ work, onClose }}
    >
      <Emphasis>{title}</Emphasis>
      <p>
        Nothing starts under it any more. What has started may finish. This cannot be undone: another attempt
        needs another approval.
      </p>
    </ChangeQuestion>
  )
}
