// Who is signed in: the admin key, in this tab only, for as long as somebody is there.

import { signal } from '@preact/signals'
import { type Ask, call, type Method, type Problem, type Result } from './api.ts'

/** Without a hand on mouse, keys or screen for this long, the key is forgotten. */
const idle_ms_max = 30 * 60_000
/** How often that is looked at, and the most often that a movement is noted. */
const idle_look_ms = 5_000

const key_place = 'waystation.admin_key'
const seen_place = 'waystation.seen_at'
/** The same in tabs that are copies of each other, and in no others. */
const session_place = 'waystation.session'

export const admin_key = signal<string | null>(null)
/** Why nobody is signed in any more; shown beside the form. */
export const sign_out_reason = signal<string | null>(null)

let noted_at = 0

export function startSession(): void {
  admin_key.value = sessionStorage.getItem(key_place)
  forgetIfIdle()
  noteMovement()
  for (const event of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
    addEventListener(event, noteMovement, { passive: true, capture: true })
  }
  setInterval(forgetIfIdle, idle_look_ms)
  document.addEventListener('visibilitychange', forgetIfIdle)
  copies.addEventListener('message', ({ data }) => {
    const here = admin_key.value !== null && sessionStorage.getItem(session_place)
    if (here && data === here) forget('You signed out in another tab.')
  })
}

/** Who duplicates a tab duplicates the key in it: signing out in one of them is meant for all. */
const copies = new BroadcastChannel('waystation.signed_out')

/** Counts up with every sign-in. */
export const sign_ins = signal(0)

export function signIn(key: string): void {
  sign_ins.value += 1
  sessionStorage.setItem(session_place, `${Date.now()} ${Math.random()}`)
  keepKey(key)
}

/** The key was rotated: what is on the screen stays there, and goes on with the new one. */
export function keepKey(key: string): void {
  sessionStorage.setItem(key_place, key)
  sessionStorage.setItem(seen_place, String(Date.now()))
  sign_out_reason.value = null
  admin_key.value = key
}

export function signOut(): void {
  copies.postMessage(sessionStorage.getItem(session_place))
  forget(null)
}

function forget(reason: string | null): void {
  for (const place of [key_place, seen_place, session_place]) sessionStorage.removeItem(place)
  sign_out_reason.value = reason
  admin_key.value = null
}

function forgetIfIdle(): void {
  if (admin_key.value === null) return
  const seen_at = Number(sessionStorage.getItem(seen_place))
  // The clock was put back: from now on it is counted anew.
  if (seen_at > Date.now()) sessionStorage.setItem(seen_place, String(Date.now()))
  if (Date.now() - seen_at >= idle_ms_max) forget('You were signed out after 30 minutes without activity.')
}

function noteMovement(): void {
  // A first movement after too long signs out: it must not count as presence.
  forgetIfIdle()
  if (admin_key.value === null || Math.abs(Date.now() - noted_at) < idle_look_ms) return
  noted_at = Date.now()
  sessionStorage.setItem(seen_place, String(noted_at))
}

/** What was still to be asked when the key was forgotten is not asked. */
const signed_out: Problem = {
  code: 'ABORTED',
  status: 0,
  message: 'Signed out.',
  details: {},
  request_id: null,
}

/** A call with the admin key. A key that is no longer good signs out. */
export async function ask<T>(method: Method, path: string, options: Ask = {}): Promise<Result<T>> {
  // After the sleep of a device the timers of pages may come first.
  forgetIfIdle()
  const key = admin_key.value
  if (key === null) return { ok: false, problem: signed_out }
  const result = await call<T>(key, method, path, options)
  if (!result.ok && result.problem.code === 'UNAUTHORIZED' && admin_key.value === key) {
    forget('This admin key is no longer valid.')
  }
  return result
}
