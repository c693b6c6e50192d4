// The approver's key on this device: kept only when the approver asks for it, until they forget it.

import { base } from '../api/address.ts'

/** Services below different paths of one origin share its storage. */
const place = `waystation.approval_key ${base}`

/** Empty when none is kept, or when the browser keeps nothing for this page. */
export function keptKey(): string {
  try {
    return localStorage.getItem(place) ?? ''
  } catch {
    return ''
  }
}

/** False when the browser keeps nothing for this page. */
export function keepKey(key: string): boolean {
  try {
    localStorage.setItem(place, key)
    return true
  } catch {
    return false
  }
}

/**
 * Called with the key that another tab of this device has forgotten; a page to which "back" leads hears of it then. Answers how to
 * stop.
 */
export function whenForgotten(listener: (key: string) => void): () => void {
  let kept = ''
  const heard = ({ key, oldValue, newValue }: StorageEvent) => {
    if (key === place && oldValue !== null && newValue === null) listener(oldValue)
  }
  const left = () => {
    kept = keptKey()
  }
  const back = () => {
    if (kept !== '' && keptKey() === '') listener(kept)
  }
  addEventListener('storage', heard)
  addEventListener('pagehide', left)
  addEventListener('pageshow', back)
  return () => {
    removeEventListener('storage', heard)
    removeEventListener('pagehide', left)
    removeEventListener('pageshow', back)
  }
}

export function forgetKey(): void {
  try {
    localStorage.removeItem(place)
  } catch {
    // Then there was none.
  }
}
