// A stored JSON value to read: opened level by level, a hundred members at a time, text nodes only.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { type JsonMember, kindOf, membersOf } from '../json.ts'
import { count, shown } from '../text.ts'
import { Button, Copy, ExternalLink } from './basics.tsx'

/** Members shown at once, and how many more a click adds. */
const members_a_time = 100
const string_characters_max = 400
/** Values up to this size are shown open; larger ones with their first level open. */
const open_characters_max = 4_000
/** A level with more members than this starts closed, save the first. */
const open_members_max = 20
/** Deeper levels are opened by hand: thousands of them, all at once, are more than the call stack holds. */
const open_levels_max = 24

interface TreeProps {
  /** JSON text, as it is stored. */
  text: string
  /** What it is: "the payload". */
  what: string
}

export function Tree({ text, what }: TreeProps): JSX.Element {
  const trimmed = text.trim()
  return (
    <div class="tree">
      <div class="tree-head">
        <span class="muted small">{sizeOf(trimmed)}</span>
        <Copy text={text} what={what} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="tree-body" tabIndex={0} aria-label={what}>
        <Value text={trimmed} depth={0} small={trimmed.length <= open_characters_max} />
      </section>
    </div>
  )
}

function sizeOf(text: string): string {
  const bytes = new TextEncoder().encode(text).length
  if (bytes < 1_024) return `${bytes} bytes`
  return bytes < 1_048_576 ? `${(bytes / 1_024).toFixed(1)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`
}

interface ValueProps {
  text: string
  depth: number
  /** The whole value is small enough to be shown open. */
  small: boolean
  name?: string
  /** The name is a place in an array. */
  index?: boolean
}

function Value({ text, depth, small, name, index = false }: ValueProps): JSX.Element {
  const kind = kindOf(text)
  const label = name !== undefined && <Name name={name} index={index} />
  if (kind === 'object' || kind === 'array') {
    return <Branch {...{ text, depth, small, index }} {...(name === undefined ? {} : { name })} />
  }
  return (
    <span class="tree-line">
      {label}
      {kind === 'string' ? (
        <StringValue text={text} />
      ) : (
        <span class={`tree-${kind}`}>
          {text.length > string_characters_max ? <Long text={text} /> : text}
        </span>
      )}
    </span>
  )
}

function Name({ name, index }: { name: string; index: boolean }): JSX.Element {
  return (
    <span class={index ? 'tree-index' : 'tree-name'}>
      {name === '' ? '""' : <bdi>{shown(name)}</bdi>}
      {': '}
    </span>
  )
}

function Branch({ text, depth, small, name, index = false }: ValueProps): JSX.Element {
  const is_list = text[0] === '['
  const members = useMembers(text)
  const open = useSignal(
    depth === 0 || (small && depth < open_levels_max && members.length <= open_members_max),
  )
  const limit = useSignal(members_a_time)
  const size =
    members.length === 0 ? (is_list ? '[]' : '{}') : `${count(members.length)} ${noun(members, is_list)}`
  if (members.length === 0) {
    return (
      <span class="tree-line">
        {name !== undefined && <Name name={name} index={index} />}
        <span class="muted">{size}</span>
      </span>
    )
  }
  return (
    <>
      <button
        class="tree-line tree-branch"
        type="button"
        aria-expanded={open.value}
        onClick={() => {
          open.value = !open.value
        }}
      >
        <span class="tree-arrow" aria-hidden="true" />
        {name !== undefined && <Name name={name} index={index} />}
        <span class="muted">{size}</span>
      </button>
      {open.value && (
        <ul>
          {members.slice(0, limit.value).map((member, i) => (
            <li key={i}>
              <Value text={member.text} depth={depth + 1} small={small} name={member.name} index={is_list} />
            </li>
          ))}
          {members.length > limit.value && (
            <li>
              <Button
                kind="quiet"
                onClick={() => {
                  limit.value += members_a_time
                }}
              >
                Show {count(Math.min(members_a_time, members.length - limit.value))} more of{' '}
                {count(members.length)}
              </Button>
            </li>
          )}
        </ul>
      )}
    </>
  )
}

function noun(members: JsonMember[], is_list: boolean): string {
  const one = members.length === 1
  if (is_list) return one ? 'item' : 'items'
  return one ? 'member' : 'members'
}

/** Found once for each text. */
function useMembers(text: string): JsonMember[] {
  const held = useSignal<{ text: string; members: JsonMember[] } | null>(null)
  if (held.peek()?.text === text) return held.peek()!.members
  const members = membersOf(text)
  held.value = { text, members }
  return members
}

function StringValue({ text }: { text: string }): JSX.Element {
  const value = stringOf(text)
  if (value.length > string_characters_max) {
    return (
      <span class="tree-string">
        <Long text={value} />
      </span>
    )
  }
  return (
    <span class="tree-string">
      {/^https?:/i.test(value) ? (
        <ExternalLink url={value} />
      ) : (
        <bdi>{value === '' ? '""' : shown(value)}</bdi>
      )}
    </span>
  )
}

function Long({ text }: { text: string }): JSX.Element {
  const limit = useSignal(string_characters_max)
  return (
    <>
      <bdi>{shown(text.slice(0, limit.value))}</bdi>
      {text.length > limit.value && (
        <Button
          kind="quiet"
          onClick={() => {
            limit.value = Math.max(20_000, limit.value * 4)
          }}
        >
          … {count(text.length - limit.value)} more characters
        </Button>
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
