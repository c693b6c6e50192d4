// The policies for types of effects: what they need at the least, whatever their agents ask for.

import { useSignal } from '@preact/signals'
import type { ApprovalKey, EffectPolicy } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { useGet, usePages } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { shown } from '../text/words.ts'
import { Button, Code, setFrom, setTo } from '../ui/basics.tsx'
import { Confirm, Emphasis } from '../ui/dialog.tsx'
import { First } from '../ui/first.tsx'
import { Split, TableList } from '../ui/list.tsx'
import { type Column, timeColumn } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import { first_policy } from './first.ts'
import { SetPolicy } from './policy-form.tsx'
import { Approval, byWhom, LongestLease } from './policy-terms.tsx'

const keys_max = 200

export function Policies({ panel }: { panel: { id: string; 'aria-label': string } }) {
  const options = { on: ['effect_policy'] as const }
  const list = usePages<EffectPolicy>('/v1/effect-policies', {}, options)
  const keys = useGet<PageOf<ApprovalKey>>('/v1/approval-keys', { limit: keys_max }).value?.items ?? []
  /** A new one is true. */
  const setting = useSignal<EffectPolicy | true | null>(null)
  const deleting = useSignal<EffectPolicy | null>(null)
  const columns = columnsOf(keys, setFrom(setting), setFrom(deleting))
  return (
    <>
      <div class="list-head bar" data-wrap>
        <p class="muted">
          The agent that asks does not set the bar alone: a policy raises what effects of a type need.
        </p>
        <Button text="Set a policy…" kind="primary" onClick={setTo(setting, true)} />
      </div>
      <Split {...{ panel }}>
        <TableList
          what="policies"
          empty={<First {...first_policy} />}
          caption="Policies for effects"
          id={(row) => row.type}
          {...{ list, columns }}
        />
        {deleting.value && (
          <DeletePolicy {...deleting.value} onDeleted={list.reload} onClose={setTo(deleting, null)} />
        )}
      </Split>
      {setting.value && (
        <SetPolicy
          policy={setting.value === true ? null : setting.value}
          {...{ keys }}
          onSet={list.reload}
          onClose={setTo(setting, null)}
        />
      )}
    </>
  )
}

function columnsOf(
  keys: readonly ApprovalKey[],
  onSet: (policy: EffectPolicy) => void,
  onDelete: (policy: EffectPolicy) => void,
): Column<EffectPolicy>[] {
  return [
    { title: 'Type', grow: true, cell: ({ type }) => <TypeName {...{ type }} /> },
    { title: 'Approval', cell: (policy) => <Approval {...policy} /> },
    { title: 'By whom', wide: true, cell: (policy) => byWhom(policy, keys) },
    { title: 'Longest lease', wide: true, cell: (policy) => <LongestLease {...policy} /> },
    timeColumn('Set', ({ updated_at }) => updated_at, true),
    {
      title: 'Actions',
      kind: 'actions',
      cell: (policy) => (
        <>
          <Button
            text="Change…"
            kind="quiet"
            label={`Change the policy for ${shown(policy.type)}…`}
            onClick={() => onSet(policy)}
          />
          <Button
            text="Delete…"
            kind="quiet"
            label={`Delete the policy for ${shown(policy.type)}…`}
            onClick={() => onDelete(policy)}
          />
        </>
      ),
    },
  ]
}

const any_type = '*'

function TypeName({ type }: { type: string }) {
  return (
    <span class="policy-type">
      <Code>{type}</Code>
      {type === any_type && <span class="muted"> all others</span>}
    </span>
  )
}

interface DeleteProps extends EffectPolicy {
  onDeleted: () => void
  onClose: () => void
}

function DeletePolicy({ type, onDeleted, onClose }: DeleteProps) {
  return (
    <Confirm
      title="Delete this policy?"
      verb="Yes, delete"
      work={() => ask('DELETE', pathOf('/v1/effect-policies', type))}
      onDone={() => {
        onDeleted()
        announce('Deleted.')
      }}
      {...{ onClose }}
    >
      <Emphasis>{type}</Emphasis>
      <p>
        {type === any_type
          ? 'Effects of types without a policy of their own need no more than their agents ask for.'
          : 'Effects of this type then fall under the policy for all others, if there is one, or need no more than their agents ask for.'}{' '}
        Those that wait for an approval go on waiting.
      </p>
    </Confirm>
  )
}
