// The dead letter that a schedule left.

import type { DeadLetter, Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { useGet } from '../api/load.ts'
import { to } from '../router.ts'
import { Badge } from '../ui/basics.tsx'
import { LoadedView } from '../ui/page.tsx'

export function LeftLetter({ schedule: { id, dlq_on_failure, dead_letter_id } }: { schedule: Schedule }) {
  if (dead_letter_id === null) {
    return (
      <p class="muted">
        It left no dead letter{dlq_on_failure ? '.' : ': it was created without dlq_on_failure.'}
      </p>
    )
  }
  return <Letter source_id={id} />
}

function Letter({ source_id }: { source_id: string }) {
  // A list, because the letter may have been removed, and an empty list is not an error.
  const query = { source: 'schedule', source_id }
  const loaded = useGet<PageOf<Pick<DeadLetter, 'id' | 'status'>>>('/v1/dlq', query, { on: ['dlq'] })
  return (
    <div class="letter-place">
      <LoadedView {...{ loaded }} what="its dead letter" lines={1}>
        {({ items: [letter] }) =>
          letter ? (
            <p>
              <a href={to(pathOf('/console/dlq', letter.id), { status: letter.status })}>
                Go to the dead letter it left
              </a>{' '}
              <Badge>{letter.status}</Badge>
            </p>
          ) : (
            <p class="muted">The dead letter that it left has been removed since.</p>
          )
        }
      </LoadedView>
    </div>
  )
}
