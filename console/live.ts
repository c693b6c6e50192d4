// An inbox with its latest messages, and those that come while somebody looks: each look is held by the service until
// there is something to tell, because calls of /api count against the plan.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { InboxDetail, Message } from '../sdk/src/types.ts'
import type { Problem } from './api.ts'
import { ask } from './session.ts'
import { now } from './time.ts'

export interface LiveInbox {
  value: InboxDetail | null
  problem: Problem | null
  /** Loads all anew, and follows again. */
  reload: () => void
  state: 'loading' | 'following' | 'paused' | 'expired' | 'failed'
  /** Made by this page, all of them counted. */
  calls: number
}

const wait_seconds = 55
/** Looks without a message until it rests: about 20 minutes. */
const quiet_looks_max = 20
/** An answer that came sooner than this is one of many: the next look waits longer each time. */
const soon_ms = 10_000
const pause_ms_max = 60_000
const failures_max = 3
/** What is kept on the page; the inbox itself may keep more. */
export const messages_max = 200
/** Of their bodies, in base64: two hundred messages may be as many megabytes. The newest is kept whatever its size. */
const body_characters_max = 32 * 1_048_576

export function useInbox(id: string, onMessages: (count: number) => void): LiveInbox {
  const state = useSignal<Omit<LiveInbox, 'reload'>>(beginning)
  const round = useSignal(0)
  useEffect(() => {
    const controller = new AbortController()
    void follow(
      id,
      controller.signal,
      (change) => {
        if (!controller.signal.aborted) state.value = { ...state.value, ...change(state.value) }
      },
      onMessages,
    )
    return () => controller.abort()
  }, [id, round.value])
  return {
    ...state.value,
    reload: () => {
      round.value += 1
    },
  }
}

const beginning: Omit<LiveInbox, 'reload'> = { value: null, problem: null, state: 'loading', calls: 0 }

type Change = (old: Omit<LiveInbox, 'reload'>) => Partial<LiveInbox>

async function follow(
  id: string,
  signal: AbortSignal,
  set: (change: Change) => void,
  onMessages: (count: number) => void,
): Promise<void> {
  const path = `/api/webhook/${encodeURIComponent(id)}`
  const counted = ({ calls }: { calls: number }) => ({ calls: calls + 1 })
  set(counted)
  const first = await ask<InboxDetail>('GET', path, { signal })
  if (!first.ok) return set(() => ({ problem: first.problem, state: 'failed' }))
  set(() => ({ value: first.value, problem: null, state: 'following' }))
  const expires_ms = Date.parse(first.value.inbox.expiresAt)
  let after = first.value.messages[0]?.id
  let [quiet, soon, failures] = [0, 0, 0]
  while (!signal.aborted) {
    await visible(signal)
    // From then on every look is answered at once.
    if (now.peek() >= expires_ms) return set(() => ({ state: 'expired' }))
    if (quiet >= quiet_looks_max) return set(() => ({ state: 'paused' }))
    const asked_at = performance.now()
    const query = { after, wait: wait_seconds }
    set(counted)
    const next = await ask<{ items: Message[]; nextAfter: string | null }>('GET', `${path}/messages`, {
      ...{ query, signal },
    })
    if (next.ok) {
      const { items, nextAfter } = next.value
      failures = 0
      quiet = items.length === 0 ? quiet + 1 : 0
      after = nextAfter ?? undefined
      set((old) => ({ problem: null, value: withMessages(old.value!, items) }))
      if (items.length > 0) onMessages(items.length)
    } else {
      failures += 1
      const lost = next.problem.code === 'OFFLINE' || next.problem.status >= 500
      if (!lost || failures >= failures_max) return set(() => ({ problem: next.problem, state: 'failed' }))
    }
    soon = next.ok && performance.now() - asked_at >= soon_ms ? 0 : soon + 1
    // The first comes at once; of a flood as many come with each look as there are by then.
    if (soon > 1) await pause(Math.min(pause_ms_max, 1_000 * 2 ** (soon - 2)), signal)
  }
}

/** Newest first. */
function withMessages({ inbox, messages }: InboxDetail, items: Message[]): InboxDetail {
  if (items.length === 0) return { inbox, messages }
  return {
    inbox: { ...inbox, messageCount: inbox.messageCount + items.length },
    messages: latest([...items.toReversed(), ...messages]),
  }
}

function latest(messages: Message[]): Message[] {
  let characters = 0
  const over = messages.findIndex(({ bodyBase64 }, i) => {
    characters += bodyBase64.length
    return i >= messages_max || (i > 0 && characters > body_characters_max)
  })
  return over === -1 ? messages : messages.slice(0, over)
}

/** Resolves once the tab is looked at. */
function visible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve()
  return new Promise((resolve) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
