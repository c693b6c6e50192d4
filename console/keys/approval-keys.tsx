// Approval keys, with which people decide: every request, or one request by a link.

import { useSignal } from '@preact/signals'
import type { ApprovalKey, Checkpoint, CreatedApprovalKey } from '../../sdk/src/types.ts'
import { useCreation } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { useGet, usePages } from '../api/load.ts'
import { oneTime, type Shown } from '../api/one-time.ts'
import { ask } from '../api/session.ts'
import { to } from '../router.ts'
import { isoOf } from '../text/time.ts'
import { shown } from '../text/words.ts'
import { Button, Code, setTo, Text } from '../ui/basics.tsx'
import { Confirm, FormDialog } from '../ui/dialog.tsx'
import { First } from '../ui/first.tsx'
import { Field, Select } from '../ui/form.tsx'
import { useStayFor } from '../ui/leaving.ts'
import { Split, TableList } from '../ui/list.tsx'
import { type Column, codeColumn, timeColumn } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import { first_approval_key } from './first.ts'

export function ApprovalKeys() {
  const list = usePages<ApprovalKey>('/v1/approval-keys', {}, { on: ['approval_key'] })
  const creating = useSignal(false)
  const revoking = useSignal<ApprovalKey | null>(null)
  const columns = columnsOf((key) => setTo(revoking, key))
  return (
    <>
      <div class="list-head bar" data-wrap>
        <p class="muted">
          Anyone who holds one can read requests, approve and reject them, and nothing else.
        </p>
        <Button text="Create a key…" kind="primary" onClick={setTo(creating, true)} />
      </div>
      <Split label="Approval keys">
        <TableList
          what="approval keys"
          empty={<First {...first_approval_key} />}
          caption="Approval keys of this tenant"
          id={(row) => row.approval_key_id}
          {...{ list, columns }}
        />
        {revoking.value && (
          <Revoke approval_key={revoking.value} onRevoked={list.reload} onClose={setTo(revoking, null)} />
        )}
      </Split>
      {creating.value && <CreateKey onCreated={list.reload} onClose={setTo(creating, false)} />}
    </>
  )
}

function columnsOf(onRevoke: (key: ApprovalKey) => () => void): Column<ApprovalKey>[] {
  return [
    {
      title: 'For',
      grow: true,
      cell: ({ label, approval_key_id }) => (label ? <Text>{label}</Text> : <Code>{approval_key_id}</Code>),
    },
    {
      title: 'Decides',
      wide: true,
      cell: ({ checkpoint_id }) =>
        checkpoint_id === null ? (
          'every request'
        ) : (
          <a href={to(pathOf('/console/approvals', checkpoint_id))}>one request</a>
        ),
    },
    codeColumn('Key', ({ approval_key }) => approval_key),
    timeColumn('Created', ({ created_at }) => created_at, true),
    timeColumn('Last used', ({ last_used_at }) => last_used_at, true),
    timeColumn('Ends', ({ expires_at }) => expires_at, true),
    {
      title: 'Action',
      cell: (key) => (
        <Button
          text="Revoke…"
          kind="quiet"
          label={`Revoke ${shown(key.label ?? key.approval_key_id)}`}
          onClick={onRevoke(key)}
        />
      ),
    },
  ]
}

interface RevokeProps {
  approval_key: ApprovalKey
  onRevoked: () => void
  onClose: () => void
}

/** Keys of one person have one label: the key itself says which it is, and what it decides. */
function Revoke({ approval_key: revoked, onRevoked, onClose }: RevokeProps) {
  const { approval_key_id, label, approval_key, checkpoint_id } = revoked
  return (
    <Confirm
      title="Revoke this key?"
      verb="Yes, revoke"
      work={() => ask('DELETE', pathOf('/v1/approval-keys', approval_key_id))}
      onDone={() => {
        onRevoked()
        announce('Revoked.')
      }}
      {...{ onClose }}
    >
      <p>
        <strong>
          <Text>{label ?? approval_key_id}</Text>
        </strong>
        , <Code>{approval_key}</Code>, for {checkpoint_id === null ? 'every request' : 'one request'}, decides
        nothing from now on, and a link with it no longer works. Its decisions stay.
      </p>
    </Confirm>
  )
}

/** The most waiting requests that the form offers by their titles. Any other is chosen by its id. */
const offered_max = 100
const every = ''
const by_id = 'id'

function CreateKey({ onCreated, onClose }: { onCreated: () => void; onClose: () => void }) {
  const fields = { label: '', chosen: every, checkpoint_id: '', expires_at: '' }
  const { values, field, create, ...action } = useCreation<CreatedApprovalKey, typeof fields>(
    '/v1/approval-keys',
    fields,
    { CHECKPOINT_NOT_FOUND: ['checkpoint_id', 'There is no such request.'] },
  )
  useStayFor(action.busy)
  const is_by_id = values.chosen === by_id
  const submit = async () => {
    const checkpoint_id = is_by_id ? values.checkpoint_id.trim() : values.chosen
    if (is_by_id && checkpoint_id === '') return
    const body = {
      label: values.label.trim() || undefined,
      checkpoint_id: checkpoint_id || undefined,
      expires_at: isoOf(values.expires_at),
    }
    await oneTime(async () => {
      const created = await create(body)
      if (created === null) return null
      onCreated()
      onClose()
      return shownOf(created)
    })
  }
  return (
    <FormDialog title="Create an approval key" onSubmit={() => void submit()} {...{ action, onClose }}>
      <Field
        label="For whom"
        hint="Optional. Give each person a key of their own: decisions name the key."
        characters_max={256}
        {...field('label')}
      />
      <Field
        label="Ends"
        hint="Optional. From then on the key is refused."
        type="datetime-local"
        {...field('expires_at')}
      />
      <RequestSelect {...field('chosen')} error={is_by_id ? undefined : field('checkpoint_id').error} />
      {is_by_id && (
        <Field label="Id of the request" exact required placeholder="chk_…" {...field('checkpoint_id')} />
      )}
    </FormDialog>
  )
}

function RequestSelect(props: {
  value: string
  error: string | undefined
  onInput: (value: string) => void
}) {
  const query = { status: 'pending', limit: offered_max }
  const waiting = useGet<PageOf<Checkpoint>>('/v1/checkpoints', query).value?.items ?? []
  const options = [
    { value: every, label: 'every request of this tenant' },
    ...waiting.map(({ id, title }) => ({ value: id, label: shown(title).slice(0, 80) })),
    { value: by_id, label: 'one request, by its id' },
  ]
  return <Select label="It decides" {...{ options }} {...props} />
}

function shownOf({ approval_url, approval_key }: CreatedApprovalKey): Shown {
  const [title, key] = ['The approval key', { name: 'Key', text: approval_key }]
  if (approval_url === null) return { title, secrets: [key] }
  const about = 'Send the link as you would send a password: anyone who opens it can decide.'
  return { title, secrets: [{ name: 'Link', text: approval_url }, key], about }
}
