// One inbox: its address, and its messages as they arrive.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useMemo } from 'preact/hooks'
import type { Inbox, Message } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { ask } from '../api/session.ts'
import { address, setQuery, to, useWayOn } from '../router.ts'
import { quoted } from '../text/curl.ts'
import { count, counted } from '../text/words.ts'
import {
  Badge,
  Button,
  Code,
  Command,
  Copy,
  Countdown,
  ExternalLink,
  Facts,
  setFrom,
  setTo,
  Text,
  Time,
} from '../ui/basics.tsx'
import { Confirm, Emphasis } from '../ui/dialog.tsx'
import { Field, Search } from '../ui/form.tsx'
import { Crumbs, ListView, Split } from '../ui/list.tsx'
import { Empty, LoadedView, Page } from '../ui/page.tsx'
import { type Column, Table, timeColumn } from '../ui/table.tsx'
import { announce } from '../ui/toast.tsx'
import { workflowOf } from '../ui/workflow-link.tsx'
import { type FollowedInbox, messages_max, useInbox } from './follow.ts'
import { useFound } from './found.ts'
import { MessageView } from './message.tsx'

export function InboxPage({ id, message_id }: { id: string; message_id: string | undefined }) {
  const followed = useInbox(id, (messages) =>
    announce(messages === 1 ? 'A message arrived.' : `${count(messages)} messages arrived.`),
  )
  const deleting = useSignal(false)
  const inbox = followed.value?.inbox
  return (
    <Page
      title="Inbox"
      lead={inbox?.label ? <Text>{inbox.label}</Text> : 'A URL that accepts any request.'}
      actions={<Button text="Delete…" kind="danger" disabled={!inbox} onClick={setTo(deleting, true)} />}
    >
      <Crumbs href={to('/console/inboxes')} all="All inboxes">
        <Code>{id}</Code>
      </Crumbs>
      <LoadedView loaded={followed} what="the inbox" lines={12}>
        {(value) => (
          <>
            <InboxFacts {...value.inbox} arrived={followed.arrived} />
            <Messages {...value} {...{ followed, message_id }} />
          </>
        )}
      </LoadedView>
      {deleting.value && inbox && (
        <Delete {...{ inbox }} is_count={followed.arrived === 0} onClose={setTo(deleting, false)} />
      )}
    </Page>
  )
}

/** The label, or the id of an inbox without one. */
export function InboxName({ id, label }: Pick<Inbox, 'id' | 'label'>) {
  return label === '' ? <Code>{id}</Code> : <Text>{label}</Text>
}

function InboxFacts({ arrived, ...inbox }: Inbox & { arrived: number }) {
  const { url, expiresAt, createdAt, forwardUrl, messageCount } = inbox
  return (
    <div class="inbox-facts stack">
      <p class="label">Anybody who has this URL can send to it</p>
      <p class="address">
        <Code>{url}</Code>
        <Copy text={url} what="the URL" />
      </p>
      <Facts
        facts={{
          'Messages kept': (
            <span class="digits">
              {count(messageCount)}
              {arrived > 0 && ` when this was loaded; ${count(arrived)} came since`}
            </span>
          ),
          'Expires in': <Countdown until={expiresAt} over="expired" />,
          Created: <Time at={createdAt} />,
          Workflow: workflowOf(inbox.workflowId),
          'Sends on to': forwardUrl !== null && <ExternalLink url={forwardUrl} />,
        }}
      />
    </div>
  )
}

interface MessagesProps {
  inbox: Inbox
  messages: Message[]
  followed: FollowedInbox
  message_id: string | undefined
}

function Messages({ inbox, messages, followed, message_id }: MessagesProps) {
  const q = address.value.query.get('q') ?? ''
  const found = useFound(inbox.id, q)
  const columns = useMemo(() => columnsOf(inbox, q), [inbox.id, inbox.forwardUrl, q])
  const message = [...(found.value ?? []), ...messages].find(({ id }) => id === message_id)
  const detail =
    message_id &&
    (message ? (
      <MessageView key={message.id} {...{ inbox, message }} />
    ) : (
      <Empty title="This message is not here">It was dropped, or is not among the latest.</Empty>
    ))
  const table = { id: ({ id }: Message) => id, current: message_id, columns }
  return (
    <>
      <MessageSearch {...{ q }} />
      <Split {...{ detail }}>
        {q === '' ? (
          <>
            <Following {...followed} />
            {messages.length === 0 ? (
              <NoMessage {...inbox} />
            ) : (
              <Table caption="Messages" rows={messages} {...table} />
            )}
            <Shown kept={inbox.messageCount + followed.arrived} shown={messages.length} />
          </>
        ) : (
          <ListView list={found} what="messages" empty={<Empty title="No message has this text" />}>
            {(rows) => (
              <>
                <p class="list-filter" role="status">
                  {counted(rows.length, 'message')} found{found.more && ' so far'}, the newest first
                </p>
                <Table caption="Messages found" rows={rows} list={found} {...table} />
              </>
            )}
          </ListView>
        )}
      </Split>
    </>
  )
}

function MessageSearch({ q }: { q: string }) {
  const draft = useSignal(q)
  useLayoutEffect(() => {
    draft.value = q
  }, [q])
  return (
    <Search
      label="Messages"
      onSearch={() => setQuery({ q: draft.value.trim() })}
      buttons={
        q !== '' && <Button text="All messages" kind="quiet" onClick={() => setQuery({ q: undefined })} />
      }
    >
      <Field
        label="Search messages"
        placeholder="method, path, query, body"
        type="search"
        characters_max={q_characters_max}
        value={draft.value}
        onInput={setFrom(draft)}
      />
    </Search>
  )
}

/** As in the API. */
const q_characters_max = 256

function NoMessage({ url }: Inbox) {
  return (
    <Empty title="No message yet">
      Send one:
      <Command what="Command that sends a message">{`curl ${quoted(url)} --json '{"hello": "world"}'`}</Command>
    </Empty>
  )
}

function Shown({ kept, shown }: { kept: number; shown: number }) {
  if (kept <= shown) return null
  return (
    <p class="list-note muted small">
      The latest {count(shown)} are shown, {count(messages_max)} at most, fewer when they are large. A search
      finds the others.
    </p>
  )
}

function columnsOf(inbox: Inbox, q: string): Column<Message>[] {
  const forward: Column<Message> = {
    title: 'Sent on',
    wide: true,
    cell: (message) => message.forward && <Badge>{message.forward.status}</Badge>,
  }
  const hrefOf = ({ id }: Message) => to(pathOf('/console/inboxes', inbox.id, id), { q })
  return [
    {
      title: 'Message',
      grow: true,
      cell: (message) => <MessageCell href={hrefOf(message)} {...{ message }} />,
    },
    { title: 'Bytes', wide: true, number: true, cell: ({ bodyBase64 }) => count(sizeOf(bodyBase64)) },
    ...(inbox.forwardUrl === null ? [] : [forward]),
    timeColumn('Arrived', ({ createdAt }) => createdAt),
  ]
}

/** Two lines: the request, and the beginning of its body. */
function MessageCell({ href, message }: { href: string; message: Message }) {
  const { method, path, preview, bodyBase64, contentType } = message
  return (
    <div class="two-lines">
      <a {...{ href }}>
        <Code>{`${method} ${path || '/'}`}</Code>
      </a>
      <span class="muted">
        {preview !== null ? (
          <Text>{preview}</Text>
        ) : bodyBase64 === '' ? (
          'no body'
        ) : (
          <Text>{`bytes ${contentType.split(';')[0]!.trim().slice(0, 40)}`}</Text>
        )}
      </span>
    </div>
  )
}

/** The number of bytes, without decoding them. */
function sizeOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return (base64.length / 4) * 3 - padding
}

const states: Record<FollowedInbox['state'], string> = {
  loading: 'Loading',
  following: 'Following: messages appear as they arrive',
  paused: 'Paused: no message arrived for a while',
  expired: 'Expired: it accepts no more messages',
  broken: 'Not following: tried again until the service answers',
  failed: 'Not following',
}

function Following({ state, calls, reload }: FollowedInbox) {
  return (
    <div class="live bar" data-wrap>
      <span>
        {states[state]}{' '}
        <span class="muted small digits">· {counted(calls, 'call')} of /api, not counted</span>
      </span>
      <Button
        text={['paused', 'broken', 'failed'].includes(state) ? 'Follow again' : 'Reload'}
        kind="quiet"
        onClick={reload}
      />
    </div>
  )
}

interface DeleteProps {
  inbox: Inbox
  /** Its number of messages is that of now. */
  is_count: boolean
  onClose: () => void
}

function Delete({ inbox, is_count, onClose }: DeleteProps) {
  const { messageCount } = inbox
  const { leaveRemoved } = useWayOn()
  return (
    <Confirm
      title="Delete this inbox?"
      verb="Yes, delete"
      back="Keep it"
      work={() => ask('DELETE', pathOf('/api/webhook', inbox.id))}
      onDone={() => {
        announce('The inbox is deleted.')
        leaveRemoved('/console/inboxes')
      }}
      {...{ onClose }}
    >
      <Emphasis>
        <InboxName {...inbox} />
      </Emphasis>
      <p>
        Its {is_count ? counted(messageCount, 'message') : 'messages'}{' '}
        {is_count && messageCount === 1 ? 'is' : 'are'} deleted at once, and later requests to its URL get the
        answer that there is no such inbox. This cannot be undone.
      </p>
    </Confirm>
  )
}
