// Delivers again what came after a number, or skips what lies before it.

import { useSignal } from '@preact/signals'
import type { Subscription } from '../../sdk/src/types.ts'
import { useAction } from '../api/action.ts'
import { ask } from '../api/session.ts'
import { curlWith } from '../text/curl.ts'
import { Button, Commands, setFrom, setTo } from '../ui/basics.tsx'
import { Emphasis, Question } from '../ui/dialog.tsx'
import { Field } from '../ui/form.tsx'
import { announce } from '../ui/toast.tsx'
import { isForHolder, nameOf } from './words.ts'

interface ReplayProps {
  subscription: Subscription
  path: string
  onChange: () => void
}

export function Replay({ subscription, path, onChange }: ReplayProps) {
  const open = useSignal(false)
  return (
    <>
      <Button text="Replay…" disabled={isForHolder(subscription)} onClick={setTo(open, true)} />
      {open.value && <ReplayQuestion {...{ subscription, path, onChange }} onClose={setTo(open, false)} />}
    </>
  )
}

function ReplayQuestion({ subscription, path, onChange, onClose }: ReplayProps & { onClose: () => void }) {
  const after = useSignal(String(subscription.after))
  const action = useAction()
  const is_number = /^\d{1,15}$/.test(after.value.trim())
  const confirm = async () => {
    const body = { after: Number(after.value.trim()) }
    const done = await action.run(() => ask<Subscription>('POST', `${path}/replay`, { body }))
    if (!done) return
    onClose()
    announce(done.status === 'paused' ? 'It begins there once it is resumed.' : 'Deliveries begin there.')
    onChange()
  }
  return (
    <Question
      title="Deliver again?"
      verb="Yes, begin there"
      kind="primary"
      disabled={!is_number}
      {...{ action, onClose }}
      onConfirm={() => void confirm()}
    >
      <Emphasis>{nameOf(subscription)}</Emphasis>
      <Field
        label="After event number"
        hint={`0 for all that are kept. It is at ${subscription.after} now: a lower number delivers again, a higher one skips.`}
        value={after.value}
        onInput={setFrom(after)}
      />
      <p class="muted small">
        Each event keeps its webhook-id, by which a receiver knows what it already has.
      </p>
      <Commands
        title="As a command"
        lead="ADMIN_KEY is the key that you signed in with."
        commands={[
          [
            'Command that delivers again',
            curlWith('ADMIN_KEY', 'POST', `${path}/replay`, {
              json: `{"after": ${is_number ? after.value.trim() : 0}}`,
            }),
          ],
        ]}
      />
    </Question>
  )
}
