// The banner on every page while the tenant is frozen: since when, by whom, why, and the way on.

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Tenant } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { pathOf } from '../api/address.ts'
import { type Loaded, useGet } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { duration, frozen_at, now } from '../text/time.ts'
import { shown } from '../text/words.ts'
import { setTo, Text, Time } from '../ui/basics.tsx'
import { announce } from '../ui/toast.tsx'
import type { JournalEvent } from '../workflows/event.ts'
import { actorInWords } from '../workflows/titles.ts'
import './freeze.css'

export function Banner({ loaded: { value: tenant, reload } }: { loaded: Loaded<Tenant> }) {
  const is_frozen = tenant !== null && tenant.frozen_at !== null
  const was_frozen = useRef<boolean | null>(null)
  useLayoutEffect(() => {
    if (tenant === null) return
    // The button is gone, and the focus with it: the red one by a freeze, that of the banner by a resume.
    if (was_frozen.current === !is_frozen && document.activeElement === document.body) {
      document.querySelector<HTMLElement>(is_frozen ? '.frozen' : '#main h1')?.focus({ preventScroll: true })
    }
    was_frozen.current = is_frozen
  }, [tenant === null, is_frozen])
  useLayoutEffect(() => {
    frozen_at.value = is_frozen ? Date.parse(tenant.frozen_at!) : null
    return setTo(frozen_at, null)
  }, [tenant?.frozen_at])
  return (
    <>
      <p class="offscreen" role="status">
        {is_frozen && `Everything is stopped. ${shown(tenant.frozen_reason ?? '')}`}
      </p>
      {tenant?.quarantined_since !== undefined && <Quarantined since={tenant.quarantined_since} />}
      {is_frozen && <Frozen {...{ tenant }} frozen_at={tenant.frozen_at!} onChange={reload} />}
    </>
  )
}

/** The operator of the service ends it, not an administrator of the tenant. */
function Quarantined({ since }: { since: string }) {
  return (
    <section class="frozen" aria-label="Restored from a backup">
      <div class="frozen-inside bar" data-wrap>
        <div>
          <p class="frozen-title">Restored from a backup, not released yet</p>
          <p class="small">
            <Time at={since} />. Nothing due is sent and no effect starts until the operator of the service
            releases it. What was done after the backup is not here.
          </p>
        </div>
      </div>
    </section>
  )
}

interface FrozenProps {
  tenant: Tenant
  frozen_at: string
  onChange: () => void
}

function Frozen({ tenant, frozen_at, onChange }: FrozenProps) {
  const { frozen_reason, resumed_at } = tenant
  return (
    <section class="frozen" aria-label="Everything is stopped" tabIndex={-1}>
      <div class="frozen-inside bar" data-wrap>
        <div>
          <p class="frozen-title">{resumed_at === null ? 'Everything is stopped' : 'Resuming…'}</p>
          {frozen_reason !== null && (
            <p class="frozen-reason">
              <Text>{frozen_reason}</Text>
            </p>
          )}
          <p class="small">
            {resumed_at === null ? (
              <>
                <Time at={frozen_at} />, by <Who {...{ frozen_at }} tenant_id={tenant.tenant_id} />. Agents
                may only read; what is due waits.
              </>
            ) : (
              'Deadlines are being moved. Agents go on within seconds.'
            )}
          </p>
        </div>
        <Asking text="Resume" absent={resumed_at !== null}>
          {(onClose) => <Resume {...{ tenant, frozen_at, onChange, onClose }} />}
        </Asking>
      </div>
    </section>
  )
}

/** The event of the freeze says it. An administrator froze it, unless the operator of the service did. */
function Who({ tenant_id, frozen_at }: { tenant_id: string; frozen_at: string }) {
  const query = { subject: tenant_id, type: 'tenant.frozen', limit: 200 }
  const { value } = useGet<{ items: JournalEvent[] }>('/v1/events', query, { every_ms: 0, on: ['tenant'] })
  const event = value?.items.findLast(({ at }) => at === frozen_at)
  return <>{actorInWords(event?.actor ?? 'admin')}</>
}

function Resume({ tenant, frozen_at, onChange, onClose }: FrozenProps & { onClose: () => void }) {
  // The freeze that is shown: another one may begin while this is open.
  const shown_at = useRef(frozen_at).current
  const work = async () => {
    const body = { frozen_at: shown_at }
    const result = await ask<Tenant>('POST', pathOf('/v1/tenants', tenant.tenant_id, 'resume'), { body })
    if (!result.ok && result.problem.code === 'INVALID_STATE') {
      onClose()
      onChange()
      announce('Everything was stopped again since you looked. Read why, then resume.')
    }
    return result
  }
  return (
    <ChangeQuestion
      title="Resume?"
      verb="Yes, resume"
      kind="primary"
      onDone={(resumed) => {
        onChange()
        announce(
          resumed.frozen_at === null ? 'Resumed: agents go on.' : 'Resuming: agents go on within seconds.',
        )
      }}
      {...{ work, onClose }}
    >
      <p>
        Agents of <strong>{shown(tenant.name)}</strong> go on at once. It was stopped for{' '}
        <span class="digits">{duration(now.value - Date.parse(shown_at))}</span>.
      </p>
      <ul class="stops">
        <li>Schedules and callbacks that fell due are sent now, the longest due first.</li>
        <li>Approvals, locks and leases end later by exactly the time that it was stopped.</li>
        <li>Agents that are paused stay paused.</li>
      </ul>
    </ChangeQuestion>
  )
}
