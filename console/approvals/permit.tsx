// How far the approval of an effect reaches, and its revocation.

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Checkpoint } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import type { Result } from '../api/client.ts'
import { now } from '../text/time.ts'
import { count } from '../text/words.ts'
import { Time } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { announce } from '../ui/toast.tsx'

interface RevokeProps {
  title: string
  revoke: () => Promise<Result<unknown>>
  onChange: () => void
}

interface PermitProps extends RevokeProps {
  of: Pick<Checkpoint, 'status' | 'effect' | 'permit_expires_at' | 'uses' | 'uses_left'>
  /** The bytes that it approves; null when they were removed, and for a question about an effect. */
  payload_hash: string | null
  /** The effect that it was asked for may still be started. */
  is_open: boolean
}

/** With a button while there is something to revoke. It takes the focus when the revocation has taken the button away. */
export function Permit({ of, payload_hash, is_open, ...revoking }: PermitProps) {
  const { status, effect, permit_expires_at, uses, uses_left } = of
  const place = useRef<HTMLDivElement>(null)
  const is_over = uses_left === 0 || isPast(permit_expires_at)
  const is_revocable = !is_over && (is_open || uses_left > 1)
  const before = useRef(is_revocable)
  useLayoutEffect(() => {
    if (before.current && !is_revocable && document.activeElement === document.body) place.current?.focus()
    before.current = is_revocable
  }, [is_revocable])
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
        {(onClose) => <Sure {...revoking} {...{ onClose }} />}
      </Asking>
    </div>
  )
}

export function isPast(at: string | null): boolean {
  return at !== null && Date.parse(at) <= now.value
}

function Sure({ title, revoke, onChange, onClose }: RevokeProps & { onClose: () => void }) {
  const work = async () => {
    const revoked = await revoke()
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
