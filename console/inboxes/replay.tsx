// The forward of a message once more, and how it went.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Inbox, InboxDetail, Message } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { Refused } from '../actions/refusal.tsx'
import { sentText, whenSent } from '../actions/sending.ts'
import { newKey } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { ask } from '../api/session.ts'
import { pause, visible } from '../api/wait.ts'
import { placeOf } from '../text/failure.ts'
import { Text } from '../ui/basics.tsx'
import { Emphasis } from '../ui/dialog.tsx'
import { announce } from '../ui/toast.tsx'

/** The pauses between looks at a forward. Each look is a call of /api, and has all messages that are kept. */
const pauses_ms = [1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000]

/** The message as it stands: its forward is followed while it is under way after a replay. */
export function useReplayed(inbox: Inbox, message: Message): [Message, (replayed: Message) => void] {
  const state = useSignal<Message | null>(null)
  const replayed = state.value?.id === message.id ? state.value : null
  const pending = replayed?.forward?.status === 'pending'
  useEffect(() => {
    if (!pending) return
    const controller = new AbortController()
    void followForward(inbox, message, controller.signal, (found) => {
      state.value = found
    })
    return () => controller.abort()
  }, [message.id, pending])
  const onReplayed = (next: Message) => {
    state.value = next
  }
  return [replayed ?? message, onReplayed]
}

async function followForward(
  inbox: Inbox,
  { id }: Message,
  signal: AbortSignal,
  onFound: (message: Message) => void,
): Promise<void> {
  for (const ms of pauses_ms) {
    await pause(ms, signal)
    await visible(signal)
    if (signal.aborted) return
    const latest = await ask<InboxDetail>('GET', pathOf('/api/webhook', inbox.id), { signal })
    const found = latest.ok && latest.value.messages.find((message) => message.id === id)
    if (found && !signal.aborted) onFound(found)
  }
}

/** The reason for which the API would refuse to forward it; null when it would not. */
function replayRefusal({ forwardUrl }: Inbox, { forward }: Message): string | null {
  if (forwardUrl === null) return 'The inbox sends messages on to nowhere.'
  if (forward?.status === 'pending') return 'It is being sent on now.'
  return forward?.error === 'loop' ? 'It had been sent on three times before: it goes in a circle.' : null
}

interface ReplayProps {
  inbox: Inbox
  message: Message
  onReplayed: (message: Message) => void
}

export function Replay({ inbox, message, onReplayed }: ReplayProps) {
  const idempotency_key = useRef(newKey())
  const refusal = replayRefusal(inbox, message)
  const { forwardUrl } = inbox
  if (forwardUrl === null) return null
  const path = `${pathOf('/api/webhook', inbox.id, 'messages', message.id)}/replay`
  return (
    <div class="mend">
      <div class="detail-actions parts">
        <Asking text="Replay" refused={refusal !== null}>
          {(onClose) => (
            <ChangeQuestion
              title="Send it on once more?"
              verb="Yes, send it on"
              kind="primary"
              work={() =>
                ask<Message>('POST', path, { headers: { 'idempotency-key': idempotency_key.current } })
              }
              onDone={(replayed) => {
                idempotency_key.current = newKey()
                announce(sentText('It is being sent on.', 'sent on'))
                onReplayed(replayed)
              }}
              {...{ onClose }}
            >
              <Emphasis>{`${message.method} ${message.path || '/'}`}</Emphasis>
              <p>
                The same bytes are sent to <Text>{placeOf(forwardUrl)}</Text> {whenSent()}
                {message.forward?.status === 'delivered' && ', though it has had them before'}. This is one
                call of /api.
              </p>
            </ChangeQuestion>
          )}
        </Asking>
      </div>
      {refusal !== null && <Refused refused={[['Replay', refusal]]} />}
    </div>
  )
}
