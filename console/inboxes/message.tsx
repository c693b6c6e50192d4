// One message of an inbox: its headers, its body, the result of its forward, and the command that sends it again.

import { useMemo } from 'preact/hooks'
import type { Forward, Inbox, Message } from '../../sdk/src/types.ts'
import { count, shown } from '../text/words.ts'
import { Badge, Code, Command, Copy, Facts, Time } from '../ui/basics.tsx'
import { DetailTitle, OpenRecord } from '../ui/list.tsx'
import { Part } from '../ui/page.tsx'
import { type Body, bodyOf } from './body.ts'
import { BodyView, PairTable } from './body-view.tsx'
import { messageCurl } from './curl.ts'
import { Replay, useReplayed } from './replay.tsx'

/** A longer command is copied without being shown. */
const command_characters_max = 12_000

export function MessageView({ inbox, message: listed }: { inbox: Inbox; message: Message }) {
  const [message, onReplayed] = useReplayed(inbox, listed)
  const body = useMemo(() => bodyOf(message.bodyBase64, message.contentType), [message.id])
  const headers = Object.entries(message.headers as Record<string, string>)
  const query = Object.entries(message.query as Record<string, string | string[]>).flatMap(
    ([name, values]): [string, string][] => [values].flat().map((value) => [name, value]),
  )
  return (
    <OpenRecord
      title="Message"
      name={nameOf(message)}
      actions={<Copy text={message.id} what="the id of the message" />}
    >
      <DetailTitle>{nameOf(message)}</DetailTitle>
      <MessageFacts {...{ message, body }} />
      <Replay {...{ inbox, message, onReplayed }} />
      <section class="detail-part" aria-label="Body">
        <BodyView {...{ body }} encoding={encodingOf(message)} />
      </section>
      {query.length > 0 && <Pairs title="Query" pairs={query} />}
      <Pairs title="Headers" pairs={headers} />
      <Repeat {...{ inbox, message, body }} />
    </OpenRecord>
  )
}

function nameOf({ method, path }: Message): string {
  return `${method} ${path || '/'}`
}

function encodingOf({ headers }: Message): string | undefined {
  return (headers as Record<string, string>)['content-encoding']
}

function MessageFacts({ message, body }: { message: Message; body: Body }) {
  const { createdAt, sourceIp, contentType, forward } = message
  return (
    <Facts
      facts={{
        Arrived: <Time at={createdAt} />,
        From: <Code>{sourceIp}</Code>,
        Type: contentType === '' ? 'not given' : <Code>{contentType}</Code>,
        Size: `${count(body.bytes.length)} bytes`,
        'Sent on': forward !== null && <ForwardResult {...forward} />,
      }}
    />
  )
}

const forward_errors: Record<string, string> = {
  dns: 'the name has no address',
  refused: 'no connection, or it broke',
  timeout: 'no answer within 10 seconds',
  tls: 'the certificate is not trusted',
  blocked: 'the address may not be called',
  too_large: 'the answer was too large',
  interrupted: 'the service stopped during the attempt; it may have arrived',
  loop: 'it had been sent on three times before',
}

function ForwardResult({ status, statusCode, error, durationMs, attemptedAt }: Forward) {
  const why = error === null || error === 'status' ? null : (forward_errors[error] ?? shown(error))
  return (
    <>
      <Badge>{status}</Badge>
      <span class="muted digits">
        {statusCode !== null && ` ${statusCode}`}
        {why !== null && ` ${why}`}
        {durationMs !== null && `, ${count(durationMs)} ms`}
        {attemptedAt !== null && (
          <>
            , <Time at={attemptedAt} />
          </>
        )}
      </span>
    </>
  )
}

function Pairs({ title, pairs }: { title: string; pairs: [string, string][] }) {
  return (
    <Part title={title}>
      <PairTable caption={title} {...{ pairs }} />
    </Part>
  )
}

function Repeat({ inbox, message, body }: { inbox: Inbox; message: Message; body: Body }) {
  const command = useMemo(() => messageCurl(inbox.url, message, body), [inbox.url, message.id])
  return (
    <Part title="Send it again">
      {command.length <= command_characters_max ? (
        <Command what="Command that sends the same bytes">{command}</Command>
      ) : (
        <p>
          A curl command with all {count(body.bytes.length)} bytes, too long to show.{' '}
          <Copy text={command} what="the command" />
        </p>
      )}
    </Part>
  )
}
