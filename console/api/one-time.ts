// Secrets that the service answers once, from the call that makes one until somebody has said that it is saved: in the
// memory of this tab alone, and beyond the end of the session that asked. The copies of the tab know that there is one.

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { newKey } from './action.ts'
import { admin_key, sessionId, sign_ins, tenantName } from './session.ts'
import { channelOfCopies } from './tab-storage.ts'

export interface Secret {
  /** "Key", "Link". */
  name: string
  text: string
}

export interface Shown {
  title: string
  secrets: Secret[]
  about?: ComponentChildren
}

export interface OneTimeSecret {
  id: string
  /** Null for that of a sign-up. */
  session: string | null
  /** The number of the sign-in. */
  sign_in: number
  tenant_name: string
  /** Null while it is on its way. */
  shown: Shown | null
}

/** The oldest first. */
export const one_time = signal<readonly OneTimeSecret[]>([])
/** The tenant of one that did not come before its session ended. */
export const missing_of = signal<string | null>(null)

/** Between the tabs of a session: one asks whether there are such secrets, and the others say when that changes. */
type Message = { session: string; asks: true } | { session: string; tab: string; holds: boolean }

const copies = channelOfCopies('waystation.one_time')
const tab = newKey()
/** The other tabs that hold one, each with its session. */
const elsewhere = new Map<string, string>()

/**
 * Waits for what `work` answers, and shows it until it is saved. Null when the call was refused, or its answer is shown in another
 * way. Meanwhile the browser asks before the page is left, and the copies of this tab before they sign out.
 */
export async function oneTime(work: () => Promise<Shown | null>, tenant_name = tenantName()): Promise<void> {
  const session = sessionId()
  const secret: OneTimeSecret = {
    ...{ id: newKey(), session, sign_in: sign_ins.peek(), tenant_name, shown: null },
  }
  one_time.value = [...one_time.peek(), secret]
  if (session !== null) tell(session)
  let shown: Shown | null = null
  try {
    shown = await work()
  } finally {
    if (shown === null) forget(secret)
  }
  if (shown !== null)
    one_time.value = one_time.peek().map((one) => (one === secret ? { ...one, shown } : one))
  else if (session !== null && isLeft(secret)) missing_of.value = tenant_name
}

/** Once it is saved, or when none came. */
export function forget({ id, session }: OneTimeSecret): void {
  one_time.value = one_time.peek().filter((one) => one.id !== id)
  if (session !== null && !isHeld(session)) tell(session)
}

/** True once the session that asked for it has ended in this tab. A sign-up has none yet: then once another one has begun. */
export function isLeft({ session, sign_in }: OneTimeSecret): boolean {
  return sign_ins.value !== sign_in || (session !== null && admin_key.value === null)
}

/** True when a tab of this session holds one. */
export function holdsOneTime(): boolean {
  const session = sessionId()
  return session !== null && (isHeld(session) || [...elsewhere.values()].includes(session))
}

/** From the start of the page: a duplicate may be made while there is one. */
export function followCopies(): void {
  copies?.addEventListener('message', ({ data }: MessageEvent<Message>) => {
    if ('asks' in data) {
      if (isHeld(data.session)) tell(data.session)
    } else if (data.holds) elsewhere.set(data.tab, data.session)
    else elsewhere.delete(data.tab)
  })
  meetCopies()
  // A tab that is closed holds nothing. One to which "back" leads holds what it held.
  addEventListener('pagehide', () => {
    for (const { session } of one_time.peek()) if (session !== null) post({ session, tab, holds: false })
  })
  addEventListener('pageshow', ({ persisted }) => {
    if (!persisted) return
    // Others may have ended meanwhile, of which it was told nothing. Those that are there answer.
    elsewhere.clear()
    meetCopies()
  })
}

/** Both sides say what they hold. */
function meetCopies(): void {
  const session = sessionId()
  if (session !== null) post({ session, asks: true })
  for (const held of one_time.peek()) if (held.session !== null) tell(held.session)
}

function isHeld(session: string): boolean {
  return one_time.peek().some((one) => one.session === session)
}

function tell(session: string): void {
  post({ session, tab, holds: isHeld(session) })
}

function post(message: Message): void {
  copies?.postMessage(message)
}
