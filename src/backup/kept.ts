// The backups that the service writes by itself: their names say when, and which of them are kept.

import { iso, type Millis, parseTime } from '../base/clock.ts'

/** `waystation-2026-11-22T20-41-27.000Z.db`, which sorts by time. */
export function nameOf(at: Millis): string {
  return `waystation-${iso(at).replaceAll(':', '-')}.db`
}

/** Null for a file of another kind. */
export function timeOf(name: string): Millis | null {
  const [, day, hour, minute, second] =
    /^waystation-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d(?:\.\d+)?Z)\.db$/.exec(name) ?? []
  return day === undefined ? null : parseTime(`${day}T${hour}:${minute}:${second}`)
}

/** When the next one is due: at once when there is none. */
export function nextAt(names: readonly string[], every_ms: Millis): Millis {
  const times = names.map(timeOf).filter((at) => at !== null)
  return times.length === 0 ? 0 : Math.max(...times) + every_ms
}

/** Those that are not kept, with what lies beside them, and what an interrupted one has left. */
export function removable(names: readonly string[], keep: number): string[] {
  const backups = names
    .filter((name) => timeOf(name) !== null)
    .toSorted()
    .toReversed()
  const old = new Set(backups.slice(keep))
  const of = (name: string) => name.replace(/\.(sha256|part.*)$/, '')
  return names.filter((name) => {
    if (/\.part(-\w+)?$/.test(name)) return timeOf(of(name)) !== null
    return old.has(of(name))
  })
}
