// Changes of one schedule: it is sent again, or cancelled.

import { useRef } from 'preact/hooks'
import type { Schedule } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { AgentQuestion } from '../actions/own-agent.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { Refused, Successor } from '../actions/refusal.tsx'
import { sentText, whenSent } from '../actions/sending.ts'
import { newKey } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { ask, askAsAgent } from '../api/session.ts'
import { to } from '../router.ts'
import { placeOf } from '../text/failure.ts'
import { inLabel } from '../text/words.ts'
import { Button, Code, Text } from '../ui/basics.tsx'
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
        <Cancel {...{ schedule, path, onChange }} />
        {status !== 'pending' && <Retry refused={refusal !== null} {...{ schedule, path, onChange }} />}
      </div>
      {refusal !== null && status !== 'pending' && <Refused refused={[['Retry', refusal]]} />}
    </div>
  )
}

function nameOf({ name, callback_url }: Schedule): string {
  return name ?? placeOf(callback_url)
}

/** The button, and the question behind it. */
function Retry({ schedule, path, refused, onChange }: MendProps & { refused: boolean }) {
  return (
    <Asking text="Retry" kind={schedule.status === 'failed' ? 'primary' : 'plain'} {...{ refused }}>
      {(close) => <RetryQuestion {...{ schedule, path, onChange }} onClose={close} />}
    </Asking>
  )
}

interface InRowProps extends Pick<MendProps, 'schedule'> {
  onAsk: (schedule: Schedule) => void
}

/** The button in a row. Its question stands outside, and stays when the row leaves the list. */
export function RetryInRow({ schedule, onAsk }: InRowProps) {
  const label = `Retry… ${inLabel(nameOf(schedule))}`
  return <Button kind="quiet" text="Retry…" {...{ label }} onClick={() => onAsk(schedule)} />
}

export function RetryQuestion({ schedule, path, onChange, onClose }: MendProps & { onClose: () => void }) {
  const { status, callback_url, dead_letter_id } = schedule
  const headers = { 'idempotency-key': useRef(newKey()).current }
  return (
    <ChangeQuestion
      title={status === 'fired' ? 'Call it once more?' : 'Send it again?'}
      verb="Yes, send it again"
      kind="primary"
      work={() => ask<Schedule>('POST', `${path}/retry`, { headers })}
      onDone={({ id }) => {
        const link = { href: to(pathOf('/console/schedules', id)), text: 'See the new schedule' }
        announce(sentText('Sent again.', 'sent again'), link)
        onChange()
      }}
      {...{ onClose }}
    >
      <Emphasis>{nameOf(schedule)}</Emphasis>
      <p>
        The call is made to <Text>{placeOf(callback_url)}</Text> {whenSent()}, with the same payload, as a new
        schedule.
        {status === 'fired' && ' The receiver has had this call before: it comes under a new webhook-id.'}
        {dead_letter_id !== null && ' The dead letter that this one left is then resolved.'}
      </p>
    </ChangeQuestion>
  )
}

function Cancel({ schedule, path, onChange }: MendProps) {
  return (
    <Asking text="Cancel" kind="danger" absent={schedule.status !== 'pending'}>
      {(close) => (
        <AgentQuestion
          title="Cancel this schedule?"
          verb="cancel it"
          work={() => askAsAgent('DELETE', path)}
          onDone={() => {
            announce('Cancelled.')
            onChange()
          }}
          onClose={close}
        >
          <Emphasis>{nameOf(schedule)}</Emphasis>
          <p>
            The call is not made. The agent <Code>{schedule.agent_id}</Code> is not notified. This cannot be
            undone.
          </p>
        </AgentQuestion>
      )}
    </Asking>
  )
}
