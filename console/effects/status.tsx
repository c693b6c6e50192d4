// The status of an effect: its badge, and what it waits for.

import type { ComponentChildren } from 'preact'
import type { ListedEffect } from '../../sdk/src/types.ts'
import { firstLine, shown } from '../text/words.ts'
import { Badge, Code, Countdown, Time, type Tone } from '../ui/basics.tsx'

export type Status = ListedEffect['status']

/** In the order in which they ask for somebody. */
export const status_titles: Record<Status, string> = {
  unknown: 'Unknown',
  awaiting_approval: 'To approve',
  approved: 'Approved',
  ready: 'Ready',
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  rejected: 'Rejected',
}

const tones: Record<Status, Tone> = {
  unknown: 'bad',
  awaiting_approval: 'accent',
  approved: 'good',
  ready: 'accent',
  running: 'accent',
  succeeded: 'good',
  failed: 'neutral',
  rejected: 'neutral',
}

export function StatusBadge({ status }: { status: Status }) {
  return <Badge tone={tones[status]}>{status_titles[status].toLowerCase()}</Badge>
}

/** In the line below its name. */
export function WaitsFor({ effect }: { effect: ListedEffect }): ComponentChildren {
  const { status, held_by, lease_until, question_id, permit_expires_at, error, refused_as } = effect
  switch (status) {
    case 'unknown':
      return question_id === null ? 'Waits for you: did it happen?' : 'Waits for an answer: did it happen?'
    case 'awaiting_approval':
      return 'Waits for its approval'
    case 'approved':
      return permit_expires_at === null ? (
        'Waits for an agent to start it'
      ) : (
        <>
          Waits for an agent to start it; the approval ends <Time at={permit_expires_at} />
        </>
      )
    case 'ready':
      return 'Waits for an agent to start it again'
    case 'running':
      return (
        <>
          Waits for the report of <Code>{held_by ?? '–'}</Code>
          {lease_until && (
            <>
              , <Countdown until={lease_until} over="its lease has just run out" held />
            </>
          )}
        </>
      )
    case 'succeeded':
      return 'It happened'
    case 'failed':
      return error === null ? 'It did not happen' : shown(firstLine(error))
    case 'rejected':
      return refusals[refused_as ?? 'rejected']
  }
}

export const refusals = {
  rejected: 'Its approval was rejected',
  expired: 'Its approval has expired',
  cancelled: 'Its approval was withdrawn',
}
