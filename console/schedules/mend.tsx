// Changes of one schedule: it is sent again, or cancelled.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Schedule } from '../../sdk/src/types.ts'
import { AgentQuestion } from '../actions/own-agent.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { Refused, Successor } from '../actions/refusal.tsx'
import { newKey, useAction } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { ask, askAsAgent } from '../api/session.ts'
import { to } from '../router.ts'
import { placeOf } from '../text/failure.ts'
import { inLabel } from '../text/words.ts'
import { Button, type ButtonKind, Code, setTo, Text } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { announce } from '../ui/toast.tsx'
import { retryRefusal } from './failed.ts'

interface MendProps {
  schedule: Schedule
  path: string
  onChange: () => void
}

/** The buttons of a schedule, and the reason for one that the API would refuse. */
export function Mend({ schedule, path, onChange }: MendProps) {
  const { status, retried_as } = schedule
  const refusal = retryRefusal(schedule)
  return (
    <div class="mend">
      {retried_as !== null && (
        <p class="note">
          Sent again as <Successor id={retried_as} />
        </p>
      )}
      <div class="detail-actions parts">
        {status === 'pending' && <Cancel {...{ schedule, path, onChange }} />}
        {refusal === null && <Retry {...{ schedule, path, onChange }} />}
        {refusal !== null && status !== 'pending' && <Button text="Retry" disabled />}
      </div>
      {refusal !== null && status !== 'pending' && <Refused refused={[['Retry', refusal]]} />}
    </div>
  )
}

function nameOf({ name, callback_url }: Schedule): string {
  return name ?? placeOf(callback_url)
}

/** The button, and the question behind it. In a row it has the name of its schedule too, for screen readers. */
export function Retry({ schedule, path, kind, onChange }: MendProps & { kind?: ButtonKind }) {
  const open = useSignal(false)
  const shown_as = kind ?? (schedule.status === 'failed' ? 'primary' : 'plain')
  return (
    <>
      <Button
        text="Retry…"
        kind={shown_as}
        {...(kind === 'quiet' && {
          label: `Retry… ${inLabel(nameOf(schedule))}`,
        })}
        onClick={setTo(open, true)}
      />
      {open.value && <RetryQuestion {...{ schedule, path, onChange }} onClose={setTo(open, false)} />}
    </>
  )
}

function RetryQuestion({ schedule, path, onChange, onClose }: MendProps & { onClose: () => void }) {
  const { status, callback_url, dead_letter_id } = schedule
  const action = useAction()
  const idempotency_key = useRef(newKey())
  const confirm = async () => {
    const headers = { 'idempotency-key': idempotency_key.current }
    const retried = await action.run(() => ask<Schedule>('POST', `${path}/retry`, { headers }))
    if (!retried) return
    onClose()
    announce('Sent again.', {
      href: to(pathOf('/console/schedules', retried.id)),
      text: 'See the new schedule',
    })
    onChange()
  }
  return (
    <ChangeQuestion
      title={status === 'fired' ? 'Call it once more?' : 'Send it again?'}
      verb="Yes, send it again"
      kind="primary"
      action={action}
      onConfirm={confirm}
      {...{ onClose }}
    >
      <Emphasis>{nameOf(schedule)}</Emphasis>
      <p>
        The call is made now to <Text>{placeOf(callback_url)}</Text>, with the same payload, as a new
        schedule.
        {status === 'fired' && ' The receiver has had this call before: it comes under a new webhook-id.'}
        {dead_letter_id !== null && ' The dead letter that this one left is then resolved.'}
      </p>
    </ChangeQuestion>
  )
}

function Cancel({ schedule, path, onChange }: MendProps) {
  const open = useSignal(false)
  return (
    <>
      <Button text="Cancel…" kind="danger" onClick={setTo(open, true)} />
      {open.value && (
        <AgentQuestion
          title="Cancel this schedule?"
          verb="cancel it"
          work={() => askAsAgent('DELETE', path)}
          onDone={() => {
            open.value = false
            announce('Cancelled.')
            onChange()
          }}
          onClose={setTo(open, false)}
        >
          <Emphasis>{nameOf(schedule)}</Emphasis>
          <p>
            The call is not made. The agent <Code>{schedule.agent_id}</Code> is not notified. This cannot be
            undone.
          </p>
        </AgentQuestion>
      )}
    </>
  )
}
