// Webhook inboxes: made, watched as messages come, deleted.

import { type Signal, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { CreatedInbox, Inbox, ListedInbox, Message } from '../../sdk/src/types.ts'
import { issueOf, useAction } from '../action.ts'
import { quoted } from '../curl.ts'
import { type LiveInbox, messages_max, useInbox } from '../live.ts'
import { MessageView } from '../message.tsx'
import { useOffsets } from '../offsets.ts'
import { navigate, to } from '../router.ts'
import { ask } from '../session.ts'
import { count } from '../text.ts'
import {
  Badge,
  Button,
  Code,
  Command,
  Copy,
  Countdown,
  ExternalLink,
  Facts,
  Text,
  Time,
} from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Field, Select } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, ErrorBox, LoadedView } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'

export function Inboxes({ params: { id, message } }: { params: Record<string, string> }): JSX.Element {
  if (id === undefined) return <InboxList />
  return <InboxPage key={id} {...{ id }} message_id={message} />
}

function pathOf(id: string, message_id?: string): string {
  const path = `/console/inboxes/${encodeURIComponent(id)}`
  return message_id === undefined ? path : `${path}/${encodeURIComponent(message_id)}`
}

function InboxList(): JSX.Element {
  const list = useOffsets<ListedInbox>('/api/webhook', ({ id }) => id)
  const creating = useSignal(false)
  const columns: Column<ListedInbox>[] = [
    {
      title: 'Inbox',
      grow: true,
      cell: ({ id, label }) => (
        <a href={to(pathOf(id))}>{label === '' ? <Code>{id}</Code> : <Text>{label}</Text>}</a>
      ),
    },
    { title: 'Messages', number: true, cell: ({ messageCount }) => count(messageCount) },
    {
      title: 'Expires in',
      wide: true,
      cell: ({ expiresAt }) => <Countdown until={expiresAt} over="expired" />,
    },
  ]
  return (
    <Page
      title="Inboxes"
      lead="URLs that take whatever is sent to them. Each look here is a call of /api, which plans count."
      actions={
        <>
          <Button onClick={list.reload}>Refresh</Button>
          <Button
            kind="primary"
            onClick={() => {
              creating.value = true
            }}
          >
            New inbox…
          </Button>
        </>
      }
    >
      <div class="split">
        <div class="split-list">
          <LoadedView loaded={list} what="inboxes" lines={6}>
            {(rows) =>
              rows.length === 0 ? (
                <Empty title="There is no inbox">Make one to receive webhooks without a server.</Empty>
              ) : (
                <Table
                  caption="Inboxes"
                  id={(row) => row.id}
                  more={list.more}
                  onMore={list.showMore}
                  {...{ columns, rows }}
                />
              )
            }
          </LoadedView>
        </div>
      </div>
      {creating.value && (
        <Create
          onClose={() => {
            creating.value = false
          }}
        />
      )}
    </Page>
  )
}

const lives = [
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
  { value: '2592000', label: '30 days' },
  { value: '31536000', label: '365 days' },
] as const

function Create({ onClose }: { onClose: () => void }): JSX.Element {
  const label = useSignal('')
  const ttl = useSignal<(typeof lives)[number]['value']>('86400')
  const forward_url = useSignal('')
  // Without an answer the same is asked again, and there is one inbox.
  const repeat = useSignal(crypto.randomUUID())
  const { busy, problem, run, forget } = useAction()
  const change =
    <T extends string>(field: Signal<T>) =>
    (value: T) => {
      field.value = value
      repeat.value = crypto.randomUUID()
      forget()
    }
  const forward_issue = issueOf(problem, '/forwardUrl')
  const create = async () => {
    const body = {
      label: label.value,
      ttl: Number(ttl.value),
      ...(forward_url.value.trim() === '' ? {} : { forwardUrl: forward_url.value.trim() }),
    }
    const headers = { 'idempotency-key': repeat.peek() }
    const inbox = await run(() => ask<CreatedInbox>('POST', '/api/webhook', { body, headers }))
    if (inbox === null) return
    announce('The inbox is ready.')
    navigate(pathOf(inbox.id))
  }
  return (
    <Dialog title="New inbox" onClose={() => busy || onClose()}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
      >
        {problem && !forward_issue && <ErrorBox problem={problem} />}
        <div data-focus>
          <Field
            label="Label"
            hint="Optional. Who sends to it, say."
            characters_max={256}
            value={label.value}
            onInput={change(label)}
          />
        </div>
        <Select label="Lives for" value={ttl.value} options={lives} onChange={change(ttl)} />
        <Field
          label="Send each message on to"
          hint="Optional. An http or https URL; one attempt each."
          error={forward_issue}
          value={forward_url.value}
          onInput={change(forward_url)}
        />
        <div class="dialog-buttons">
          <Button onClick={() => busy || onClose()}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function InboxPage({ id, message_id }: { id: string; message_id: string | undefined }): JSX.Element {
  const live = useInbox(id, (messages) =>
    announce(messages === 1 ? 'A message came.' : `${count(messages)} messages came.`),
  )
  const deleting = useSignal(false)
  const inbox = live.value?.inbox
  return (
    <Page
      title="Inbox"
      lead={inbox?.label ? <Text>{inbox.label}</Text> : 'A URL that takes whatever is sent to it.'}
      actions={
        <Button
          kind="danger"
          disabled={!inbox}
          onClick={() => {
            deleting.value = true
          }}
        >
          Delete…
        </Button>
      }
    >
      <nav class="crumbs" aria-label="Where this is">
        <a href={to('/console/inboxes')}>All inboxes</a>
        <span aria-hidden="true">/</span>
        <Code>{id}</Code>
      </nav>
      <LoadedView loaded={live} what="the inbox" lines={12}>
        {({ inbox, messages }) => (
          <>
            <InboxFacts inbox={inbox} />
            <Messages {...{ inbox, messages, live, message_id }} />
          </>
        )}
      </LoadedView>
      {deleting.value && inbox && (
        <Delete
          {...{ inbox }}
          onClose={() => {
            deleting.value = false
          }}
        />
      )}
    </Page>
  )
}

function InboxFacts({ inbox }: { inbox: Inbox }): JSX.Element {
  const { url, expiresAt, createdAt, forwardUrl, messageCount } = inbox
  return (
    <div class="inbox-facts">
      <p class="label">Anybody who has this URL can send to it</p>
      <p class="address">
        <Code>{url}</Code>
        <Copy text={url} what="the URL" />
      </p>
      <Facts
        facts={[
          { name: 'Messages kept', value: <span class="digits">{count(messageCount)}</span> },
          { name: 'Expires in', value: <Countdown until={expiresAt} over="expired" /> },
          { name: 'Made', value: <Time at={createdAt} /> },
          ...(forwardUrl === null ? [] : [{ name: 'Sends on to', value: <ExternalLink url={forwardUrl} /> }]),
        ]}
      />
    </div>
  )
}

interface MessagesProps {
  inbox: Inbox
  messages: Message[]
  live: LiveInbox
  message_id: string | undefined
}

function Messages({ inbox, messages, live, message_id }: MessagesProps): JSX.Element {
  const open = messages.find(({ id }) => id === message_id)
  const columns = useMemo(() => columnsOf(inbox), [inbox.id, inbox.forwardUrl])
  return (
    <div class="split" data-open={message_id !== undefined}>
      <div class="split-list">
        <Following {...{ live }} />
        {messages.length === 0 ? (
          <Empty title="No message yet">
            Send one:
            <Command what="Command that sends a message">
              {`curl ${quoted(inbox.url)} --json '{"hello": "world"}'`}
            </Command>
          </Empty>
        ) : (
          <Table
            caption="Messages"
            rows={messages}
            id={({ id }) => id}
            current={message_id}
            {...{ columns }}
          />
        )}
        {inbox.messageCount > messages.length && (
          <p class="list-note muted small">
            The latest {count(messages.length)} are shown, {count(messages_max)} at most, fewer when they are
            large. GET /api/webhook/
            {'{id}'}/messages reads all that are kept.
          </p>
        )}
      </div>
      {message_id !== undefined && (
        <div class="split-detail">
          {open ? (
            <MessageView key={open.id} {...{ inbox }} message={open} />
          ) : (
            <Empty title="This message is not here">It was dropped, or is not among the latest.</Empty>
          )}
        </div>
      )}
    </div>
  )
}

function columnsOf(inbox: Inbox): Column<Message>[] {
  const forwards: Column<Message>[] = [
    { title: 'Sent on', wide: true, cell: ({ forward }) => forward && <Badge>{forward.status}</Badge> },
  ]
  return [
    {
      title: 'Message',
      grow: true,
      cell: ({ id, method, path }) => (
        <a href={to(pathOf(inbox.id, id))}>
          <Code>{`${method} ${path || '/'}`}</Code>
        </a>
      ),
    },
    {
      title: 'Type',
      wide: true,
      cell: ({ contentType }) => <span class="muted">{<Text>{typeOf(contentType)}</Text>}</span>,
    },
    { title: 'Bytes', wide: true, number: true, cell: ({ bodyBase64 }) => count(sizeOf(bodyBase64)) },
    ...(inbox.forwardUrl === null ? [] : forwards),
    { title: 'Came', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ]
}

function typeOf(content_type: string): string {
  return content_type.split(';')[0]!.trim().slice(0, 40)
}

/** Of the bytes, without decoding them. */
function sizeOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return (base64.length / 4) * 3 - padding
}

const states: Record<LiveInbox['state'], string> = {
  loading: 'Loading',
  following: 'Following: messages appear as they come',
  paused: 'Resting: nothing came for a while',
  expired: 'Expired: it takes no more messages',
  failed: 'Not following',
}

function Following({ live: { state, calls, reload } }: { live: LiveInbox }): JSX.Element {
  return (
    <div class="live">
      <span>
        {states[state]}{' '}
        <span class="muted small digits">
          {count(calls)} {calls === 1 ? 'call' : 'calls'} of /api
        </span>
      </span>
      <Button kind="quiet" onClick={reload}>
        {state === 'paused' || state === 'failed' ? 'Follow again' : 'Load anew'}
      </Button>
    </div>
  )
}

function Delete({ inbox, onClose }: { inbox: Inbox; onClose: () => void }): JSX.Element {
  const { busy, problem, run } = useAction()
  const remove = async () => {
    const path = `/api/webhook/${encodeURIComponent(inbox.id)}`
    if ((await run(() => ask<{ deleted: boolean }>('DELETE', path))) === null) return
    announce('The inbox is deleted.')
    navigate('/console/inboxes')
  }
  return (
    <Dialog title="Delete this inbox?" onClose={() => busy || onClose()}>
      {problem && <ErrorBox problem={problem} />}
      <p class="second-look">
        <strong>{inbox.label === '' ? <Code>{inbox.id}</Code> : <Text>{inbox.label}</Text>}</strong>
      </p>
      <p>
        Its {count(inbox.messageCount)} {inbox.messageCount === 1 ? 'message is' : 'messages are'} gone at
        once, and whoever sends to it is told that there is no such inbox. This cannot be undone.
      </p>
      <div class="dialog-buttons">
        <span data-focus>
          <Button onClick={onClose}>Keep it</Button>
        </span>
        <Button kind="danger" busy={busy} onClick={() => void remove()}>
          Yes, delete
        </Button>
      </div>
    </Dialog>
  )
}
