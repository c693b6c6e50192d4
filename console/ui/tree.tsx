// A stored JSON value, opened level by level, a hundred members at a time. It is made of text nodes only.

import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { type JsonMember, membersOf } from '../../sdk/src/json.ts'
import { kindOf } from '../text/json.ts'
import { byteCount, count, counted, shown } from '../text/words.ts'
import { Button, Copy, ExternalLink, ScrollBox, toggle } from './basics.tsx'

/** Members shown at once, and how many more a click adds. */
const members_a_time = 100
const string_characters_max = 400
/** Values up to this size are shown open; larger ones with their first level open. */
const open_characters_max = 4_000
/** A level with more members than this starts closed, except the first. */
const open_members_max = 20
/** Deeper levels are opened by hand: thousands of them at once would overflow the call stack. */
const open_levels_max = 24

interface TreeProps {
  /** JSON text, as it is stored. */
  text: string
  /** The value, in words: "the payload". */
  what: string
}

export function Tree({ text, what }: TreeProps) {
  const trimmed = text.trim()
  return (
    <div class="tree">
      <div class="tree-head bar">
        <span class="muted small">{byteCount(new TextEncoder().encode(trimmed).length)}</span>
        <Copy text={text} what={what} />
      </div>
      <ScrollBox kind="tree-body" label={what}>
        <Value text={trimmed} depth={0} small={trimmed.length <= open_characters_max} />
      </ScrollBox>
    </div>
  )
}

interface ValueProps {
  text: string
  depth: number
  /** The whole value is small enough to be shown open. */
  small: boolean
  name?: string
  /** The name is an index of an array. */
  index?: boolean
}

function Value(props: ValueProps) {
  const { text } = props
  const kind = kindOf(text)
  if (kind === 'object' || kind === 'array') return <Branch {...props} />
  return (
    <span class="tree-line">
      <Name {...props} />
      <span class={`tree-${kind}`}>
        {kind === 'string' ? (
          <StringValue text={text} />
        ) : text.length > string_characters_max ? (
          <Long text={text} />
        ) : (
          text
        )}
      </span>
    </span>
  )
}

function Name({ name, index = false }: ValueProps) {
  if (name === undefined) return null
  return (
    <span class={index ? 'tree-index' : 'tree-name'}>
      {name === '' ? '""' : <bdi>{shown(name)}</bdi>}
      {': '}
    </span>
  )
}

function Branch(props: ValueProps) {
  const { text, depth, small } = props
  const is_list = text[0] === '['
  const members = useMemo(() => membersOf(text), [text])
  const open = useSignal(
    depth === 0 || (small && depth < open_levels_max && members.length <= open_members_max),
  )
  if (members.length === 0) {
    return (
      <span class="tree-line">
        <Name {...props} />
        <span class="muted">{is_list ? '[]' : '{}'}</span>
      </span>
    )
  }
  return (
    <>
      <button class="tree-line tree-branch" type="button" aria-expanded={open.value} onClick={toggle(open)}>
        <span class="tree-arrow" aria-hidden="true" />
        <Name {...props} />
        <span class="muted">{counted(members.length, is_list ? 'item' : 'member')}</span>
      </button>
      {open.value && <Members {...{ members, is_list, depth, small }} />}
    </>
  )
}

interface MembersProps extends Pick<ValueProps, 'depth' | 'small'> {
  members: JsonMember[]
  is_list: boolean
}

function Members({ members, is_list, depth, small }: MembersProps) {
  const limit = useSignal(members_a_time)
  const showMore = () => {
    limit.value += members_a_time
  }
  return (
    <ul>
      {members.slice(0, limit.value).map((member, i) => (
        <li key={i}>
          <Value {...member} depth={depth + 1} small={small} index={is_list} />
        </li>
      ))}
      {members.length > limit.value && (
        <li>
          <Button
            text={`Show ${count(Math.min(members_a_time, members.length - limit.value))} more of ${count(members.length)}`}
            kind="quiet"
            onClick={showMore}
          />
        </li>
      )}
    </ul>
  )
}

/** `text` is that of a JSON string. */
export function StringValue({ text }: { text: string }) {
  const value = stringOf(text)
  if (value.length > string_characters_max) return <Long text={value} />
  if (/^https?:/i.test(value)) return <ExternalLink url={value} />
  return <bdi>{value === '' ? '""' : shown(value)}</bdi>
}

function Long({ text }: { text: string }) {
  const limit = useSignal(string_characters_max)
  const showMore = () => {
    limit.value = Math.max(20_000, limit.value * 4)
  }
  return (
    <>
      <bdi>{shown(text.slice(0, limit.value))}</bdi>
      {text.length > limit.value && (
        <Button
          text={`… ${count(text.length - limit.value)} more characters`}
          kind="quiet"
          onClick={showMore}
        />
      )}
    </>
  )
}

function stringOf(text: string): string {
  try {
    return JSON.parse(text) as string
  } catch {
    return text
  }
}
