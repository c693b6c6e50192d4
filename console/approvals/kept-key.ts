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

/** Called with the key that another tab of this device has forgotten. Answers how to stop. */
export function whenForgotten(listener: (key: string) => void): () => void {
  const heard = ({ key, oldValue, newValue }: StorageEvent) => {
    if (key === place && oldValue !== null && newValue === null) listener(oldValue)
  }
  addEventListener('storage', heard)
  return () => removeEventListener('storage', heard)
}

export function forgetKey(): void {
  try {
    localStorage.removeItem(place)
  } catch {
    // Then there was none.
  }
}
