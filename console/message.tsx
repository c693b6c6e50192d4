// One message of an inbox: its body as what it is, its headers, how its forward went, and the command that repeats it.

import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Forward, Inbox, Message } from '../sdk/src/types.ts'
import { type Body, type BodyKind, bodyOf, hex_row_bytes, hexOf } from './body.ts'
import { messageCurl } from './curl.ts'
import { count, shown } from './text.ts'
import { Badge, Button, Code, Command, Copy, Facts, Text, Time } from './ui/basics.tsx'
import { Tabs } from './ui/form.tsx'
import { Card } from './ui/page.tsx'
import { Tree } from './ui/tree.tsx'

const kind_titles: Record<BodyKind, string> = { json: 'JSON', form: 'Form', text: 'Text', hex: 'Bytes' }

/** What is shown of a body at first, and how much more a click adds. */
const text_characters = 20_000
const hex_rows = 64
const form_rows = 100
/** A longer command is copied without being shown. */
const command_characters_max = 12_000

export function MessageView({ inbox, message }: { inbox: Inbox; message: Message }): JSX.Element {
  const body = useMemo(() => bodyOf(message.bodyBase64, message.contentType), [message.id])
  const headers = Object.entries(message.headers as Record<string, string>)
  const query = Object.entries(message.query as Record<string, string | string[]>).flatMap(
    ([name, values]): [string, string][] => [values].flat().map((value) => [name, value]),
  )
  return (
    <Card title="Message" actions={<Copy text={message.id} what="the id of the message" />}>
      <div class="card-body">
        <h3 class="detail-title">
          <Text>{`${message.method} ${message.path || '/'}`}</Text>
        </h3>
        <MessageFacts {...{ message, body }} />
        <section class="detail-section" aria-label="Body">
          <BodyView {...{ body }} encoding={encodingOf(message)} />
        </section>
        {query.length > 0 && <Pairs title="Query" pairs={query} />}
        <Pairs title="Headers" pairs={headers} />
        <Repeat {...{ inbox, message, body }} />
      </div>
    </Card>
  )
}

function encodingOf({ headers }: Message): string | undefined {
  return (headers as Record<string, string>)['content-encoding']
}

function MessageFacts({ message, body }: { message: Message; body: Body }): JSX.Element {
  const { createdAt, sourceIp, contentType, forward } = message
  return (
    <Facts
      facts={[
        { name: 'Came', value: <Time at={createdAt} /> },
        { name: 'From', value: <Code>{sourceIp}</Code> },
        { name: 'Type', value: contentType === '' ? 'not said' : <Code>{contentType}</Code> },
        { name: 'Size', value: `${count(body.bytes.length)} bytes` },
        ...(forward === null ? [] : [{ name: 'Sent on', value: <ForwardResult {...{ forward }} /> }]),
      ]}
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
  interrupted: 'the service stopped meanwhile; it may have arrived',
  loop: 'it had been sent on three times before',
}

function ForwardResult({ forward }: { forward: Forward }): JSX.Element {
  const { status, statusCode, error, durationMs, attemptedAt } = forward
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

function BodyView({ body, encoding }: { body: Body; encoding: string | undefined }): JSX.Element {
  const chosen = useSignal<BodyKind | null>(null)
  const kind = body.kinds.find((each) => each === chosen.value) ?? body.kinds[0]
  if (kind === undefined) {
    return (
      <>
        <h4 class="label">Body</h4>
        <p class="muted">None</p>
      </>
    )
  }
  return (
    <>
      <div class="body-head">
        <h4 class="label">Body</h4>
        {body.kinds.length > 1 && (
          <Tabs
            label="Show the body as"
            panel="message-body"
            current={kind}
            tabs={body.kinds.map((id) => ({ id, title: kind_titles[id] }))}
            onChange={(id) => {
              chosen.value = id
            }}
          />
        )}
      </div>
      {body.text === null && (
        <p class="muted small">
          These bytes are not UTF-8 text
          {encoding === undefined ? (
            '.'
          ) : (
            <>: they are kept as they were sent, encoded as {shown(encoding)}.</>
          )}
        </p>
      )}
      <div
        id="message-body"
        {...(body.kinds.length > 1 ? { role: 'tabpanel', 'aria-label': kind_titles[kind] } : {})}
      >
        {kind === 'json' && <Tree text={body.text!} what="the body" />}
        {kind === 'form' && <FormView text={body.text!} />}
        {kind === 'text' && <TextView text={body.text!} />}
        {kind === 'hex' && <HexView bytes={body.bytes} />}
      </div>
    </>
  )
}

function FormView({ text }: { text: string }): JSX.Element {
  const fields = useMemo(() => [...new URLSearchParams(text.trim())], [text])
  const { limit, more } = useMore(fields.length, form_rows, 'fields')
  return (
    <>
      <PairTable caption="Fields of the form" pairs={fields.slice(0, limit)} />
      {more}
    </>
  )
}

function TextView({ text }: { text: string }): JSX.Element {
  const { limit, more } = useMore(text.length, text_characters, 'characters')
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="raw" tabIndex={0} aria-label="The body as text">
        {shown(text.slice(0, limit))}
      </section>
      <div class="detail-links">
        <Copy text={text} what="the body" />
        {more}
      </div>
    </>
  )
}

function HexView({ bytes }: { bytes: Uint8Array }): JSX.Element {
  const { limit, more } = useMore(Math.ceil(bytes.length / hex_row_bytes), hex_rows, 'lines')
  const text = useMemo(() => hexOf(bytes, limit), [bytes, limit])
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="raw" data-hex tabIndex={0} aria-label="The bytes of the body">
        {text}
      </section>
      {more}
    </>
  )
}

/** Shows so many at first, and four times as many with each click. */
function useMore(total: number, at_first: number, what: string): { limit: number; more: ComponentChildren } {
  const limit = useSignal(at_first)
  const left = total - limit.value
  const more = left > 0 && (
    <Button
      kind="quiet"
      onClick={() => {
        limit.value *= 4
      }}
    >
      {count(left)} more {what}
    </Button>
  )
  return { limit: limit.value, more }
}

function Pairs({ title, pairs }: { title: string; pairs: [string, string][] }): JSX.Element {
  return (
    <section class="detail-section" aria-label={title}>
      <h4 class="label">{title}</h4>
      <PairTable caption={title} {...{ pairs }} />
    </section>
  )
}

function PairTable({ caption, pairs }: { caption: string; pairs: [string, string][] }): JSX.Element {
  return (
    <table class="pairs">
      <caption class="offscreen">{caption}</caption>
      <tbody>
        {pairs.map(([name, value], i) => (
          <tr key={i}>
            <th scope="row">
              <Code>{name}</Code>
            </th>
            <td>
              <Text>{value}</Text>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Repeat({ inbox, message, body }: { inbox: Inbox; message: Message; body: Body }): JSX.Element {
  const command = useMemo(() => messageCurl(inbox.url, message, body), [inbox.url, message.id])
  return (
    <section class="detail-section" aria-label="Send it again">
      <h4 class="label">Send it again</h4>
      {command.length <= command_characters_max ? (
        <Command what="Command that sends the same bytes">{command}</Command>
      ) : (
        <p>
          A curl command with all {count(body.bytes.length)} bytes, too long to show.{' '}
          <Copy text={command} what="the command" />
        </p>
      )}
    </section>
  )
}
