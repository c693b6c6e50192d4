// The body of a message, in the ways that it can be shown.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { count, shown } from '../text/words.ts'
import { Button, Code, Copy, ScrollBox, setFrom, Text } from '../ui/basics.tsx'
import { Tabs } from '../ui/form.tsx'
import { Tree } from '../ui/tree.tsx'
import { type Body, type BodyKind, hex_row_bytes, hexOf } from './body.ts'

const kind_titles: Record<BodyKind, string> = { json: 'JSON', form: 'Form', text: 'Text', hex: 'Bytes' }

/** The part of a body that is shown at first. */
const text_characters = 20_000
const hex_rows = 64
const form_rows = 100

interface BodyViewProps {
  body: Body
  /** The content-encoding of the message. */
  encoding: string | undefined
}

export function BodyView({ body, encoding }: BodyViewProps) {
  const chosen = useSignal<BodyKind | null>(null)
  const kind = body.kinds.find((each) => each === chosen.value) ?? body.kinds[0]
  const has_tabs = body.kinds.length > 1
  const titles = Object.fromEntries(body.kinds.map((each) => [each, kind_titles[each]]))
  return (
    <>
      <div class="body-head bar" data-wrap>
        <h3 class="label">Body</h3>
        {kind && has_tabs && (
          <Tabs
            label="Show the body as"
            panel="message-body"
            current={kind}
            {...{ titles }}
            onChange={setFrom(chosen)}
          />
        )}
      </div>
      {body.text === null && (
        <p class="muted small">
          These bytes are not UTF-8 text
          {encoding === undefined ? '.' : `: they are kept as they were sent, encoded as ${shown(encoding)}.`}
        </p>
      )}
      {kind === undefined && <p class="muted">None</p>}
      <div
        id="message-body"
        {...(kind && has_tabs ? { role: 'tabpanel', 'aria-label': kind_titles[kind] } : {})}
      >
        {kind === 'json' && <Tree text={body.text!} what="the body" />}
        {kind === 'form' && <FormView text={body.text!} />}
        {kind === 'text' && <TextView text={body.text!} />}
        {kind === 'hex' && <HexView bytes={body.bytes} />}
      </div>
    </>
  )
}

function FormView({ text }: { text: string }) {
  const fields = useMemo(() => [...new URLSearchParams(text.trim())], [text])
  const { limit, more } = useMore(fields.length, form_rows, 'fields')
  return (
    <>
      <PairTable caption="Fields of the form" pairs={fields.slice(0, limit)} />
      {more}
    </>
  )
}

function TextView({ text }: { text: string }) {
  const { limit, more } = useMore(text.length, text_characters, 'characters')
  return (
    <>
      <ScrollBox kind="raw" label="The body as text">
        {shown(text.slice(0, limit))}
      </ScrollBox>
      <div class="detail-links parts">
        <Copy text={text} what="the body" />
        {more}
      </div>
    </>
  )
}

function HexView({ bytes }: { bytes: Uint8Array }) {
  const { limit, more } = useMore(Math.ceil(bytes.length / hex_row_bytes), hex_rows, 'lines')
  const text = useMemo(() => hexOf(bytes, limit), [bytes, limit])
  return (
    <>
      <ScrollBox kind="raw" label="The bytes of the body" hex>
        {text}
      </ScrollBox>
      {more}
    </>
  )
}

/** A limit of what is shown, and the button that multiplies it by four. */
function useMore(total: number, at_first: number, what: string): { limit: number; more: ComponentChildren } {
  const limit = useSignal(at_first)
  const left = total - limit.value
  const show = () => {
    limit.value *= 4
  }
  const more = left > 0 && <Button text={`${count(left)} more ${what}`} kind="quiet" onClick={show} />
  return { limit: limit.value, more }
}

export function PairTable({ caption, pairs }: { caption: string; pairs: [string, string][] }) {
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
