// Small parts: buttons, badges, times, links, copies, facts.

import { type Signal, useComputed, useSignal } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { base } from '../api/address.ts'
import { linkable } from '../text/links.ts'
import { duration, exact, held_now, now, relative } from '../text/time.ts'
import { shown } from '../text/words.ts'
import { copyText } from './clipboard.ts'
import { announce } from './toast.tsx'

/** A handler that sets a signal. */
export function setTo<T>(signal: Signal<T>, value: T): () => void {
  return () => {
    signal.value = value
  }
}

export function toggle(signal: Signal<boolean>): () => void {
  return () => {
    signal.value = !signal.value
  }
}

/** For handlers that get the value. */
export function setFrom<T>(signal: Signal<T>): (value: T) => void {
  return (value) => {
    signal.value = value
  }
}

export type ButtonKind = 'plain' | 'primary' | 'danger' | 'quiet'

interface ButtonProps {
  text: string
  onClick?: () => void
  kind?: ButtonKind
  type?: 'button' | 'submit'
  /** The button stays focusable and does nothing. */
  busy?: boolean
  disabled?: boolean
  /** The accessible name, where the text alone is not enough. */
  label?: string
  expanded?: boolean
  pressed?: boolean
}

export function Button(props: ButtonProps) {
  const { text, onClick, kind = 'plain', type = 'button', busy = false, disabled = false } = props
  return (
    <button
      class="button"
      data-kind={kind}
      type={type}
      disabled={disabled}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      aria-label={props.label}
      aria-expanded={props.expanded}
      aria-pressed={props.pressed}
      onClick={(event) => {
        if (busy) event.preventDefault()
        else onClick?.()
      }}
    >
      {text}
    </button>
  )
}

export type Tone = 'neutral' | 'good' | 'bad' | 'warn' | 'accent'

const tones: Record<string, Tone> = {
  pending: 'accent',
  claimed: 'accent',
  retrying: 'warn',
  approved: 'good',
  fired: 'good',
  resolved: 'good',
  succeeded: 'good',
  running: 'accent',
  delivered: 'good',
  active: 'good',
  failed: 'bad',
  rejected: 'bad',
  expired: 'warn',
}

/** A status as a word with a colour. The word alone is enough to read it. */
export function Badge({ children, tone }: { children: string; tone?: Tone }) {
  return (
    <span class="badge" data-tone={tone ?? tones[children] ?? 'neutral'}>
      {shown(children)}
    </span>
  )
}

/** `3 min ago`, with the exact time on hover. */
export function Time({ at }: { at: string }) {
  const place = useSignal(at)
  place.value = at
  const text = useComputed(() => relative(Date.parse(place.value), now.value))
  return (
    <time class="time" dateTime={at} title={exact(at)}>
      {text}
    </time>
  )
}

interface CountdownProps {
  until: string
  /** Said once the time has run out. */
  over: string
  /** It stands still while the tenant is frozen, and is moved by a resume. */
  held?: boolean
}

/** The time left until then, by the second. */
export function Countdown({ until, over, held = false }: CountdownProps) {
  const place = useSignal(until)
  place.value = until
  const clock = held ? held_now : now
  const text = useComputed(() => {
    const left_ms = Date.parse(place.value) - clock.value
    return left_ms > 0 ? duration(left_ms) : over
  })
  return (
    <time class="time countdown" dateTime={until} title={exact(until)}>
      {text}
    </time>
  )
}

/** Stored text, isolated from what stands around it. */
export function Text({ children }: { children: string }) {
  return <bdi>{shown(children)}</bdi>
}

/** Stored text with its lines, behind the word for it. */
export function LongText({ label, children }: { label?: string; children: string }) {
  return (
    <p class="prompt">
      {label && <span class="muted">{label}: </span>}
      <Text>{children}</Text>
    </p>
  )
}

/** An id or another piece of machine text. */
export function Code({ children }: { children: string }) {
  return <code class="code">{shown(children)}</code>
}

/** A link when the text is an http or https URL, otherwise the text. */
export function ExternalLink({ url }: { url: string }) {
  const href = linkable(url)
  if (href === null) return <Text>{url}</Text>
  return (
    <a href={href} rel="noreferrer noopener nofollow" target="_blank">
      <Text>{url}</Text>
    </a>
  )
}

/** A link to the rendered documentation, in a tab of its own: `dlq` is its page of dead letters. */
export function DocsLink({
  page = '',
  kind,
  children,
}: {
  page?: string
  kind?: ButtonKind
  children: string
}) {
  const href = `${base}/docs${page && `/${page}`}`
  return (
    <a {...{ href }} target="_blank" rel="noopener" class={kind && 'button'} data-kind={kind}>
      {children}
    </a>
  )
}

/** Copies the text as it is. */
export function Copy({ text, what }: { text: string; what: string }) {
  const done = useSignal(false)
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = async () => {
    const copied = await copyText(text)
    announce(copied ? `Copied ${what}.` : `The browser does not let this page copy. Select ${what} by hand.`)
    done.value = copied
    clearTimeout(timer.current)
    timer.current = window.setTimeout(() => {
      done.value = false
    }, 2_000)
  }
  return <Button text={done.value ? 'Copied' : 'Copy'} kind="quiet" onClick={copy} label={`Copy ${what}`} />
}

/** An id with a button that copies it. */
export function CopiedCode({ text, what }: { text: string; what: string }) {
  return (
    <span class="copied-code">
      <Code>{text}</Code>
      <Copy text={text} what={what} />
    </span>
  )
}

interface ScrollBoxProps {
  label: string
  kind: string
  children: ComponentChildren
  hex?: boolean
  place?: RefObject<HTMLElement | null>
  onScroll?: () => void
}

/** A box that scrolls, also by keyboard. */
export function ScrollBox({ label, kind, place, hex, ...props }: ScrollBoxProps) {
  const named = { ref: place ?? null, class: kind, 'aria-label': label, 'data-hex': hex }
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
  return <section tabIndex={0} {...named} {...props} />
}

/** A command for a terminal. */
export function Command({ children, what }: { children: string; what: string }) {
  return (
    <div class="command">
      <ScrollBox kind="command-text" label={what}>
        <pre>{shown(children)}</pre>
      </ScrollBox>
      <Copy text={children} what="the command" />
    </div>
  )
}

interface CommandsProps {
  title: string
  lead: string
  /** Each with its name, and true where the name is shown above it. */
  commands: [what: string, command: string, shown?: boolean][]
}

/** The commands for changes that only agents may make, folded away. */
export function Commands({ title, lead, commands }: CommandsProps) {
  return (
    <details class="elsewhere">
      <summary>{title}</summary>
      <p class="muted">{lead}</p>
      <div class="commands stack">
        {commands.map(([what, command, is_shown]) => (
          <div key={what}>
            {is_shown && <p class="label">{what}</p>}
            <Command what={is_shown ? `Command: ${what}` : what}>{command}</Command>
          </div>
        ))}
      </div>
    </details>
  )
}

/** Names with their values. Null, undefined and false are left out. */
export function Facts({ facts }: { facts: Record<string, ComponentChildren> }) {
  const given = Object.entries(facts).filter(([, value]) => value != null && value !== false)
  return (
    <dl class="facts">
      {given.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
