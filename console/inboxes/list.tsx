// Webhook inboxes: the list, and the form that creates one.

import { useSignal } from '@preact/signals'
import type { CreatedInbox, ListedInbox } from '../../sdk/src/types.ts'
import { useCreation } from '../api/action.ts'
import { pathOf } from '../api/address.ts'
import { useOffsets } from '../api/load.ts'
import { to, useWayOn } from '../router.ts'
import { count } from '../text/words.ts'
import { Button, Countdown, setTo } from '../ui/basics.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { First } from '../ui/first.tsx'
import { Field, Select } from '../ui/form.tsx'
import { Split, TableList } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import { InboxName, InboxPage } from './inbox.tsx'
import './inboxes.css'
import { first } from './first.ts'

export function Inboxes({ params: { id, message } }: { params: Record<string, string> }) {
  if (id === undefined) return <InboxList />
  return <InboxPage key={id} {...{ id }} message_id={message} />
}

const columns: Column<ListedInbox>[] = [
  {
    title: 'Inbox',
    grow: true,
    cell: (inbox) => (
      <a href={to(pathOf('/console/inboxes', inbox.id))}>
        <InboxName {...inbox} />
      </a>
    ),
  },
  { title: 'Messages', number: true, cell: ({ messageCount }) => count(messageCount) },
  {
    title: 'Expires in',
    wide: true,
    cell: ({ expiresAt }) => <Countdown until={expiresAt} over="expired" />,
  },
]

function InboxList() {
  const list = useOffsets<ListedInbox>('/api/webhook', { idOf: ({ id }) => id })
  const creating = useSignal(false)
  return (
    <Page
      title="Inboxes"
      docs="inbox"
      lead="URLs that accept any request, and keep it for your agents."
      actions={
        <>
          <Button text="Refresh" onClick={list.reload} />
          <Button text="New inbox…" kind="primary" onClick={setTo(creating, true)} />
        </>
      }
    >
      <Split>
        <TableList
          what="inboxes"
          empty={<First {...first} />}
          caption="Inboxes"
          id={(row) => row.id}
          {...{ list, columns }}
        />
      </Split>
      {creating.value && <Create onClose={setTo(creating, false)} />}
    </Page>
  )
}

const lifetimes = [
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
  { value: '2592000', label: '30 days' },
  { value: '31536000', label: '365 days' },
] as const

function Create({ onClose }: { onClose: () => void }) {
  const fields = { label: '', ttl: '86400', forwardUrl: '' }
  const { values, field, create, ...action } = useCreation<CreatedInbox, typeof fields>(
    '/api/webhook',
    fields,
  )
  const { navigate } = useWayOn()
  const submit = async () => {
    const forwardUrl = values.forwardUrl.trim() || undefined
    const inbox = await create({ label: values.label, ttl: Number(values.ttl), forwardUrl })
    if (inbox === null) return
    announce('The inbox is ready.')
    navigate(pathOf('/console/inboxes', inbox.id))
  }
  return (
    <FormDialog title="New inbox" back="Cancel" onSubmit={() => void submit()} {...{ action, onClose }}>
      <Field
        label="Label"
        hint="Optional. For example, who sends to it."
        characters_max={256}
        {...field('label')}
      />
      <Select label="Lives for" options={lifetimes} {...field('ttl')} />
      <Field
        label="Send each message on to"
        exact
        hint="Optional. An http or https URL; one attempt each."
        {...field('forwardUrl')}
      />
    </FormDialog>
  )
}
