// Small parts: buttons, badges, times, copies, links.

import { useComputed, useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { linkable } from '../address.ts'
import { shown } from '../text.ts'
import { duration, exact, now, relative } from '../time.ts'
import { announce } from './toast.tsx'

interface ButtonProps {
  children: ComponentChildren
  onClick?: () => void
  kind?: 'plain' | 'primary' | 'danger' | 'quiet'
  type?: 'button' | 'submit'
  /** At work: stays focusable and does nothing. */
  busy?: boolean
  disabled?: boolean
  /** What it is called where its text alone does not say it. */
  label?: string
  title?: string
  expanded?: boolean
  pressed?: boolean
}

export function Button(props: ButtonProps): JSX.Element {
  const { children, onClick, kind = 'plain', type = 'button', busy = false, disabled = false } = props
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
      title={props.title}
      onClick={(event) => {
        if (busy) event.preventDefault()
        else onClick?.()
      }}
    >
      {children}
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
  delivered: 'good',
  active: 'good',
  failed: 'bad',
  rejected: 'bad',
  expired: 'warn',
}

/** A status as a word with a colour; the word says it all. */
export function Badge({ children, tone }: { children: string; tone?: Tone }): JSX.Element {
  return (
    <span class="badge" data-tone={tone ?? tones[children] ?? 'neutral'}>
      {shown(children)}
    </span>
  )
}

/** `3 min ago`, the exact time on hover. */
export function Time({ at }: { at: string }): JSX.Element {
  const place = useSignal(at)
  place.value = at
  const text = useComputed(() => relative(Date.parse(place.value), now.value))
  return (
    <time class="time" dateTime={at} title={exact(at)}>
      {text}
    </time>
  )
}

/** Time left until then, by the second. */
export function Countdown({ until, over }: { until: string; over: string }): JSX.Element {
  const place = useSignal(until)
  place.value = until
  const text = useComputed(() => {
    const left_ms = Date.parse(place.value) - now.value
    return left_ms > 0 ? duration(left_ms) : over
  })
  return (
    <time class="time countdown" dateTime={until} title={exact(until)}>
      {text}
    </time>
  )
}

/** Stored text, isolated from what stands around it. */
export function Text({ children }: { children: string }): JSX.Element {
  return <bdi>{shown(children)}</bdi>
}

/** An id or another piece of machine text. */
export function Code({ children }: { children: string }): JSX.Element {
  return <code class="code">{shown(children)}</code>
}

/** A link when the text is an http or https URL, otherwise the text. */
export function ExternalLink({ url }: { url: string }): JSX.Element {
  const href = linkable(url)
  if (href === null) return <Text>{url}</Text>
  return (
    <a href={href} rel="noreferrer noopener nofollow" target="_blank">
      <Text>{url}</Text>
    </a>
  )
}

/** Copies the text as it is. */
export function Copy({ text, what }: { text: string; what: string }): JSX.Element {
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
  return (
    <Button kind="quiet" onClick={copy} label={`Copy ${what}`}>
      {done.value ? 'Copied' : 'Copy'}
    </Button>
  )
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

/** Where there is no clipboard: pages that came by http from another host than this one. */
function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea')
  const focused = document.activeElement
  area.value = text
  area.className = 'offscreen'
  ;(document.querySelector('dialog[open]') ?? document.body).append(area)
  area.select()
  const copied = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return copied
}

/** A command to run elsewhere, for what this page may not do itself. */
export function Command({ children, what }: { children: string; what: string }): JSX.Element {
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section tabIndex={0} aria-label={what}>
        <pre>{shown(children)}</pre>
      </section>
      <Copy text={children} what="the command" />
    </div>
  )
}

export interface Fact {
  name: string
  value: ComponentChildren
}

/** Names with their values. */
export function Facts({ facts }: { facts: Fact[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
