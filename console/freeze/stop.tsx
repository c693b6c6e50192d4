// The red button: stops every agent of the tenant and everything that is due, after a question.

import { useSignal } from '@preact/signals'
import type { Tenant } from '../../sdk/src/types.ts'
import { Asking } from '../actions/asking.tsx'
import { ChangeQuestion } from '../actions/question.tsx'
import { pathOf } from '../api/address.ts'
import { ask } from '../api/session.ts'
import { shown } from '../text/words.ts'
import { setFrom } from '../ui/basics.tsx'
import { Field } from '../ui/form.tsx'
import { announce } from '../ui/toast.tsx'

interface StopProps {
  tenant: Tenant
  /** Called once it is frozen. */
  onChange: () => void
}

/** Nothing while the tenant is frozen: the banner has the way on. */
export function Stop({ tenant, onChange }: StopProps) {
  if (tenant.frozen_at !== null) return null
  return (
    <Asking text="Stop everything" kind="danger">
      {(close) => <Freeze {...{ tenant, onChange }} onClose={close} />}
    </Asking>
  )
}

const reason_characters_max = 500

function Freeze({ tenant, onChange, onClose }: StopProps & { onClose: () => void }) {
  const reason = useSignal('')
  const body = reason.value.trim() === '' ? {} : { reason: reason.value.trim() }
  return (
    <ChangeQuestion
      title="Stop everything?"
      verb="Yes, stop everything"
      work={() => ask<Tenant>('POST', pathOf('/v1/tenants', tenant.tenant_id, 'freeze'), { body })}
      onDone={() => {
        onChange()
        announce('Everything is stopped.')
      }}
      {...{ onClose }}
    >
      <p>
        Within a second, and until you resume <strong>{shown(tenant.name)}</strong>:
      </p>
      <ul class="stops">
        <li>No agent may change anything. It can read, and report the outcome of work that it has begun.</li>
        <li>Schedules, callbacks and forwards wait. Nothing is lost: what arrives at inboxes is kept.</li>
        <li>Approvals, locks and leases do not run out.</li>
        <li>You and your approvers can do everything as before.</li>
      </ul>
      <Field
        label="Reason"
        hint="Shown to your colleagues here, and to the agents that are refused."
        rows={2}
        characters_max={reason_characters_max}
        value={reason.value}
        onInput={setFrom(reason)}
      />
    </ChangeQuestion>
  )
}
