// Sessions that somebody has signed out of, for their tabs that show another page meanwhile: these come back with the key that they
// had. Marks alone are kept, without a key, until the session would have ended by itself.

import { base } from './address.ts'

/** Services below different paths of one origin share its storage. */
const place = `waystation.ended_sessions ${base}`

type Ends = Record<string, number>

/** `for_ms`: a session without activity for that long has ended everywhere. */
export function noteEnded(id: string, for_ms: number): void {
  const lasting = Object.entries(ends()).filter(([, until_ms]) => until_ms > Date.now())
  try {
    localStorage.setItem(place, JSON.stringify(Object.fromEntries([...lasting, [id, Date.now() + for_ms]])))
  } catch {
    // Where the browser keeps nothing for this page, "back" asks for the key anyway.
  }
}

export function isEnded(id: string): boolean {
  return Object.hasOwn(ends(), id)
}

function ends(): Ends {
  try {
    return JSON.parse(localStorage.getItem(place) ?? '{}') as Ends
  } catch {
    return {}
  }
}
