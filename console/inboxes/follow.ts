// An inbox with its latest messages, and the new ones as they arrive. The service holds each poll until a message
// arrives.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { InboxDetail, Message } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { isSame, type Problem, type Result } from '../api/client.ts'
import { ask } from '../api/session.ts'
import { pause, visible } from '../api/wait.ts'
import { now } from '../text/time.ts'

interface State {
  value: InboxDetail | null
  problem: Problem | null
  state: 'loading' | 'following' | 'broken' | 'paused' | 'expired' | 'failed'
  /** Messages that came since it was loaded. They may have taken the place of older ones: `messageCount` is of that time. */
  arrived: number
  /** The number of calls that this page made. */
  calls: number
}

export interface FollowedInbox extends State {
  /** Loads everything again, and follows again. */
  reload: () => void
}

const wait_seconds = 55
/** Polls without a message until following is paused: about 20 minutes. */
const quiet_polls_max = 20
/** Messages that come faster than this make each poll wait longer. */
const soon_ms = 10_000
const pause_ms_max = 60_000
/** So many failures, one after the other, are not shown: a service that is restarted is away for a moment. */
const failures_unsaid_max = 2
const retry_ms = 1_000
const retry_ms_max = 30_000
/** The messages kept on the page; the inbox itself may keep more. */
export const messages_max = 200
/** The size of their bodies in base64: 200 messages may have as many megabytes. The newest message is always kept. */
const body_characters_max = 32 * 1_048_576

const beginning: State = { value: null, problem: null, state: 'loading', arrived: 0, calls: 0 }

export function useInbox(id: string, onMessages: (count: number) => void): FollowedInbox {
  const state = useSignal(beginning)
  const reloads = useSignal(0)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const set = (change: (old: State) => Partial<State>) => {
      if (!signal.aborted) state.value = { ...state.value, ...change(state.value) }
    }
    void follow({ path: pathOf('/api/webhook', id), signal, set, onMessages })
    return () => controller.abort()
  }, [id, reloads.value])
  const reload = () => {
    reloads.value += 1
  }
  return { ...state.value, reload }
}

interface Following {
  path: string
  signal: AbortSignal
  set: (change: (old: State) => Partial<State>) => void
  onMessages: (count: number) => void
}

async function follow({ path, signal, set, onMessages }: Following): Promise<void> {
  const ask_first = () => ask<InboxDetail>('GET', path, { signal })
  const first = await answered(ask_first, 0, { signal, set })
  if (first === null) return
  set(() => ({ value: first, problem: null, state: 'following', arrived: 0 }))
  const expires_ms = Date.parse(first.inbox.expiresAt)
  let after = first.messages[0]?.id
  let [quiet, soon] = [0, 0]
  while (!signal.aborted) {
    await visible(signal)
    // After the expiry every poll is answered at once.
    if (now.peek() >= expires_ms) return set(() => ({ state: 'expired' }))
    if (quiet >= quiet_polls_max) return set(() => ({ state: 'paused' }))
    const asked_at = performance.now()
    const query = { after, wait: wait_seconds }
    const ask_next = () => ask<NextMessages>('GET', `${path}/messages`, { query, signal })
    const next = await answered(ask_next, failures_unsaid_max, { signal, set })
    if (next === null) return
    const { items, nextAfter } = next
    quiet = items.length === 0 ? quiet + 1 : 0
    after = nextAfter ?? undefined
    set((old) => ({
      ...{ problem: null, state: 'following', value: withMessages(old.value!, items) },
      arrived: old.arrived + items.length,
    }))
    if (items.length > 0) onMessages(items.length)
    soon = performance.now() - asked_at >= soon_ms ? 0 : soon + 1
    // The first message is shown at once. Many messages are shown together, by longer and longer pauses.
    if (soon > 1) await pause(Math.min(pause_ms_max, 1_000 * 2 ** (soon - 2)), signal)
  }
}

/** Asks again, later and later, while the service does not answer. Null when it refuses, or the page was left. */
async function answered<T>(
  ask_once: () => Promise<Result<T>>,
  unsaid_max: number,
  { signal, set }: Pick<Following, 'signal' | 'set'>,
): Promise<T | null> {
  for (let failures = 1; ; failures += 1) {
    await visible(signal)
    if (signal.aborted) return null
    set(({ calls }) => ({ calls: calls + 1 }))
    const result = await ask_once()
    if (result.ok) return result.value
    const { problem } = result
    if (!isTransient(problem)) {
      set(() => ({ problem, state: 'failed' }))
      return null
    }
    // A repeat that fails alike keeps the problem: a screen reader would read out a new one every time.
    const say = (old: State) => ({
      ...{ state: 'broken' as const, problem: isSame(old.problem, problem) ? old.problem : problem },
    })
    if (failures > unsaid_max) set(say)
    const wait_ms = Math.min(retry_ms_max, retry_ms * 2 ** (failures - 1))
    await pause(wait_ms, signal, [[window, 'online']])
  }
}

interface NextMessages {
  items: Message[]
  nextAfter: string | null
}

function isTransient({ code, status }: Problem): boolean {
  return code === 'OFFLINE' || status >= 500
}

/** Newest first. */
function withMessages({ inbox, messages }: InboxDetail, items: Message[]): InboxDetail {
  if (items.length === 0) return { inbox, messages }
  return { inbox, messages: latest([...items.toReversed(), ...messages]) }
}

function latest(messages: Message[]): Message[] {
  let characters = 0
  const over = messages.findIndex(({ bodyBase64 }, i) => {
    characters += bodyBase64.length
    return i >= messages_max || (i > 0 && characters > body_characters_max)
  })
  return over === -1 ? messages : messages.slice(0, over)
}
