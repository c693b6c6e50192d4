// Keys for people who decide: for every request, or for one, then with a link.

import { type Signal, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { ApprovalKey, Checkpoint, CreatedApprovalKey } from '../../sdk/src/types.ts'
import { issueOf, useAction } from '../action.ts'
import { useGet, usePages } from '../load.ts'
import { to } from '../router.ts'
import { ask } from '../session.ts'
import { shown } from '../text.ts'
import { Button, Code, Text, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { useKeptFocus } from '../ui/focus.ts'
import { Field, Select } from '../ui/form.tsx'
import { Empty, ErrorBox, LoadedView } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import { Confirm } from './rotate.tsx'
import { OneTime } from './secret.tsx'

export function ApprovalKeys(): JSX.Element {
  const list = usePages<ApprovalKey>('/v1/approval-keys')
  const creating = useSignal(false)
  const revoking = useSignal<ApprovalKey | null>(null)
  const place = useRef<HTMLElement>(null)
  useKeptFocus(place)
  const columns: Column<ApprovalKey>[] = [
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
          <a href={to(`/console/approvals/${encodeURIComponent(checkpoint_id)}`)}>one request</a>
        ),
    },
    { title: 'Key', wide: true, cell: ({ approval_key }) => <Code>{approval_key}</Code> },
    { title: 'Created', wide: true, cell: ({ created_at }) => <Time at={created_at} /> },
    {
      title: 'Action',
      cell: (key) => (
        <Button
          kind="quiet"
          label={`Revoke ${shown(key.label ?? key.approval_key_id)}`}
          onClick={() => {
            revoking.value = key
          }}
        >
          Revoke…
        </Button>
      ),
    },
  ]
  const stop = () => {
    revoking.value = null
  }
  return (
    <>
      <div class="keys-head">
        <p class="muted">Whoever holds one may read what is asked, approve and reject; nothing else.</p>
        <Button
          kind="primary"
          onClick={() => {
            creating.value = true
          }}
        >
          Create a key…
        </Button>
      </div>
      <section class="split-list" ref={place} tabIndex={-1} aria-label="Approval keys">
        <LoadedView loaded={list} what="approval keys" lines={6}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No approval keys">One lets a person decide without this console.</Empty>
            ) : (
              <Table
                caption="Approval keys of this tenant"
                id={(row) => row.approval_key_id}
                more={list.more}
                onMore={list.showMore}
                {...{ columns, rows }}
              />
            )
          }
        </LoadedView>
      </section>
      {creating.value && (
        <CreateKey
          onCreated={list.reload}
          onClose={() => {
            creating.value = false
          }}
        />
      )}
      {revoking.value && (
        <Confirm
          title="Revoke this key?"
          verb="Yes, revoke"
          work={() =>
            ask('DELETE', `/v1/approval-keys/${encodeURIComponent(revoking.peek()!.approval_key_id)}`)
          }
          onDone={() => {
            stop()
            list.reload()
            announce('Revoked.')
          }}
          onClose={stop}
        >
          <p>
            <strong>
              <Text>{revoking.value.label ?? revoking.value.approval_key_id}</Text>
            </strong>{' '}
            decides nothing from now on, nor does a link with it. What it decided stays.
          </p>
        </Confirm>
      )}
    </>
  )
}

interface CreateProps {
  onCreated: () => void
  onClose: () => void
}

/** As many waiting requests as are offered by their titles; any other by its id. */
const offered_max = 100
const every = ''
const by_id = 'id'

function CreateKey({ onCreated, onClose }: CreateProps): JSX.Element {
  const label = useSignal('')
  const chosen = useSignal(every)
  const typed_id = useSignal('')
  const created = useSignal<CreatedApprovalKey | null>(null)
  const repeat = useSignal(crypto.randomUUID())
  const waiting = useGet<{ items: Checkpoint[] }>('/v1/checkpoints', {
    status: 'pending',
    limit: offered_max,
  })
  const action = useAction()
  const { problem } = action
  const submit = async () => {
    const checkpoint_id = chosen.value === by_id ? typed_id.value.trim() : chosen.value
    const body = { label: label.value.trim() || undefined, checkpoint_id: checkpoint_id || undefined }
    if (chosen.value === by_id && checkpoint_id === '') return
    const key = await action.run(() =>
      ask<CreatedApprovalKey>('POST', '/v1/approval-keys', {
        body,
        headers: { 'idempotency-key': repeat.peek() },
      }),
    )
    if (key === null) return
    onCreated()
    created.value = key
  }
  const change = (field: Signal<string>) => (value: string) => {
    field.value = value
    repeat.value = crypto.randomUUID()
    action.forget()
  }
  if (created.value) return <NewKey key="new" created={created.value} onClose={onClose} />
  const unknown = problem?.code === 'CHECKPOINT_NOT_FOUND' ? 'There is no such request.' : undefined
  const wrong_id = unknown ?? issueOf(problem, '/checkpoint_id')
  return (
    <Dialog key="form" title="Create an approval key" onClose={() => action.busy || onClose()}>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <span data-focus>
          <Field
            label="For whom"
            hint="Optional. Give each person a key of their own: decisions name the key."
            characters_max={256}
            value={label.value}
            error={issueOf(problem, '/label')}
            onInput={change(label)}
          />
        </span>
        <Select
          label="It decides"
          value={chosen.value}
          options={[
            { value: every, label: 'every request of this tenant' },
            ...(waiting.value?.items ?? []).map(({ id, title }) => ({
              value: id,
              label: shown(title).slice(0, 80),
            })),
            { value: by_id, label: 'one request, by its id' },
          ]}
          onChange={change(chosen)}
        />
        {chosen.value === by_id && (
          <Field
            label="Id of the request"
            required
            placeholder="chk_…"
            value={typed_id.value}
            error={wrong_id}
            onInput={change(typed_id)}
          />
        )}
        {problem && (wrong_id === undefined || chosen.value !== by_id) && <ErrorBox problem={problem} />}
        <div class="dialog-buttons">
          <Button onClick={onClose}>Go back</Button>
          <Button kind="primary" type="submit" busy={action.busy}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function NewKey({ created, onClose }: { created: CreatedApprovalKey; onClose: () => void }): JSX.Element {
  const { approval_url, approval_key } = created
  const key = { name: 'Key', text: approval_key }
  return (
    <OneTime
      title="The approval key"
      secrets={approval_url === null ? [key] : [{ name: 'Link', text: approval_url }, key]}
      onClose={onClose}
    >
      {approval_url !== null && (
        <p>Send the link as you would send a password: whoever opens it can decide.</p>
      )}
    </OneTime>
  )
}
