// The session: the admin key, and that of the console's own agent, kept in this tab only, until 30 minutes without
// activity.

import { signal } from '@preact/signals'
import type { RotatedTenant } from '../../sdk/src/types.ts'
import { type Ask, call, failed, type Method, type Result } from './client.ts'
import { isEnded, noteEnded } from './ended-sessions.ts'
import { channelOfCopies, tab_storage } from './tab-storage.ts'

const idle_ms_max = 30 * 60_000
/** The interval of idle checks, and the least time between two noted activities. */
const idle_check_ms = 5_000

const key_place = 'waystation.admin_key'
const active_place = 'waystation.active_at'
const agent_key_place = 'waystation.agent_key'
const session_place = 'waystation.session'
const tenant_place = 'waystation.tenant_name'

export const admin_key = signal<string | null>(null)
/** The key of the console's own agent, while this session has one. */
export const agent_key = signal<string | null>(null)
/** The reason for the latest sign-out, shown beside the form. */
export const sign_out_reason = signal<string | null>(null)
/** Counts up with every change that this tab makes. */
export const changes = signal(0)
/** Counts up with every sign-in. */
export const sign_ins = signal(0)

/** A duplicate of a tab holds the same key: signing out in one of them signs out all. */
const copies = channelOfCopies('waystation.signed_out')

const left_elsewhere = 'You signed out in another tab.'
const no_longer_valid = 'This admin key is no longer valid.'
let noted_at = 0
/** Rotations of the admin key that are on their way. */
let rotations = 0

export function startSession(): void {
  admin_key.value = tab_storage.getItem(key_place)
  agent_key.value = tab_storage.getItem(agent_key_place)
  endIfIdle()
  endIfLeft()
  noteActivity()
  for (const event of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
    addEventListener(event, noteActivity, { passive: true, capture: true })
  }
  setInterval(endIfIdle, idle_check_ms)
  document.addEventListener('visibilitychange', endIfIdle)
  copies?.addEventListener('message', ({ data }) => {
    const here = admin_key.value !== null && sessionId()
    if (here && data === here) end(left_elsewhere)
  })
  // A page to which "back" leads was told nothing meanwhile.
  addEventListener('pageshow', endIfLeft)
}

function endIfLeft(): void {
  const id = sessionId()
  if (admin_key.value !== null && id !== null && isEnded(id)) end(left_elsewhere)
}

export function signIn(key: string, tenant_name: string): void {
  sign_ins.value += 1
  tab_storage.setItem(session_place, `${Date.now()} ${Math.random()}`)
  tab_storage.setItem(tenant_place, tenant_name)
  keepKey(key)
}

/** The same in a tab and its duplicates; null while there is no session. */
export function sessionId(): string | null {
  return tab_storage.getItem(session_place)
}

/** Empty while there is no session. */
export function tenantName(): string {
  return tab_storage.getItem(tenant_place) ?? ''
}

function keepKey(key: string): void {
  tab_storage.setItem(key_place, key)
  tab_storage.setItem(active_place, String(Date.now()))
  sign_out_reason.value = null
  admin_key.value = key
}

/** Kept as long as the admin key: not at all when the session ended before it came. Null forgets it. */
export function keepAgentKey(key: string | null): void {
  if (key !== null && admin_key.value === null) return
  if (key === null) tab_storage.removeItem(agent_key_place)
  else tab_storage.setItem(agent_key_place, key)
  agent_key.value = key
}

export function signOut(): void {
  const id = sessionId()
  copies?.postMessage(id)
  if (id !== null) noteEnded(id, idle_ms_max)
  end(null)
}

function end(reason: string | null): void {
  for (const place of [key_place, active_place, session_place, tenant_place]) tab_storage.removeItem(place)
  keepAgentKey(null)
  sign_out_reason.value = reason
  admin_key.value = null
}

function endIfIdle(): void {
  if (admin_key.value === null) return
  const active_at = Number(tab_storage.getItem(active_place))
  // The clock was put back: the 30 minutes start again.
  if (active_at > Date.now()) tab_storage.setItem(active_place, String(Date.now()))
  if (Date.now() - active_at >= idle_ms_max) end('You were signed out after 30 minutes without activity.')
}

function noteActivity(): void {
  // An event after too long a pause signs out. It does not count as activity.
  endIfIdle()
  if (admin_key.value === null || Math.abs(Date.now() - noted_at) < idle_check_ms) return
  noted_at = Date.now()
  tab_storage.setItem(active_place, String(noted_at))
}

/** A call with the admin key. A key that is no longer valid ends the session. */
export async function ask<T>(method: Method, path: string, options: Ask = {}): Promise<Result<T>> {
  // After a device wakes up, timers of pages may run before the idle check.
  endIfIdle()
  const key = admin_key.value
  if (key === null) return failed('ABORTED', 'Signed out.')
  const result = await call<T>(key, method, path, options)
  if (result.ok && method !== 'GET') changes.value += 1
  // While the key is being rotated, the new one may be on its way behind this refusal of the old one.
  if (isRefused(result) && admin_key.value === key && rotations === 0) end(no_longer_valid)
  return result
}

/** The session goes on with the new key, unless it has ended meanwhile. */
export async function rotateAdminKey(path: string, body: object): Promise<Result<RotatedTenant>> {
  const key = admin_key.peek()
  rotations += 1
  const rotated = await ask<RotatedTenant>('POST', path, { body })
  rotations -= 1
  if (admin_key.peek() === key) {
    if (rotated.ok) keepKey(rotated.value.admin_key)
    else if (isRefused(rotated)) end(no_longer_valid)
  }
  return rotated
}

function isRefused(result: Result<unknown>): boolean {
  return !result.ok && result.problem.code === 'UNAUTHORIZED'
}

/** A call with the key of the console's own agent. A key that is no longer valid is forgotten. */
export async function askAsAgent<T>(method: Method, path: string, options: Ask = {}): Promise<Result<T>> {
  endIfIdle()
  const key = agent_key.value
  if (key === null) return failed('ABORTED', 'This session has no key of an agent.')
  const result = await call<T>(key, method, path, options)
  if (result.ok && method !== 'GET') changes.value += 1
  if (isRefused(result) && agent_key.value === key) keepAgentKey(null)
  return result
}
