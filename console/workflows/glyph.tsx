// The signs on the line: one for each kind of thing, drawn in 16 by 16.

import type { JournalEvent } from './event.ts'

const paths: Record<string, string> = {
  // A question mark.
  question: 'M6 6.2a2 2 0 1 1 2.8 1.8c-.6.3-.8.7-.8 1.4M8 11.6v.1',
  yes: 'M4 8.4 6.8 11 12 5.4',
  no: 'M5 5l6 6M11 5l-6 6',
  clock: 'M8 4.4V8l2.4 1.6',
  send: 'M3.6 8h8M8.6 4.8 11.8 8l-3.2 3.2',
  failed: 'M8 4.4v4.4M8 11.4v.1',
  letter: 'M3.8 5.4h8.4v5.6H3.8zM3.8 5.8 8 8.8l4.2-3',
  entry: 'M5 5.2h6M5 8h6M5 10.8h3.6',
  value:
    'M6.4 4.6C4.6 4.6 6 8 4.4 8 6 8 4.6 11.4 6.4 11.4M9.6 4.6C11.4 4.6 10 8 11.6 8 10 8 11.4 11.4 9.6 11.4',
  key: 'M6.2 9.8a2.2 2.2 0 1 1 1.5-1.5l3.9 3.9M10 10.6l1.2-1.2',
  other: 'M8 8v.1',
}

function signOf({ type }: JournalEvent): string {
  if (type === 'checkpoint.approved') return 'yes'
  if (['checkpoint.rejected', 'checkpoint.cancelled', 'checkpoint.revoked'].includes(type)) return 'no'
  if (type === 'effect.succeeded' || type === 'effect.approved' || type === 'effect.resolved') return 'yes'
  if (type === 'effect.rejected') return 'no'
  if (type === 'effect.unknown') return 'question'
  if (type === 'checkpoint.expired') return 'clock'
  if (type === 'checkpoint.created') return 'question'
  if (type === 'schedule.fired' || type === 'callback.delivered' || type === 'message.forwarded')
    return 'send'
  if (/failed$/.test(type) || type.endsWith('.attempted') || type === 'dlq.created') return 'failed'
  const [noun] = type.split('.')
  return (
    {
      schedule: 'clock',
      effect: 'send',
      dlq: 'yes',
      message: 'letter',
      inbox: 'letter',
      audit: 'entry',
      kv: 'value',
      agent: 'key',
      approval_key: 'key',
      tenant: 'key',
    }[noun!] ?? 'other'
  )
}

export function Glyph({ event }: { event: JournalEvent }) {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[signOf(event)]!} />
    </svg>
  )
}
