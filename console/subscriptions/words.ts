// A subscription in words.

import type { Subscription } from '../../sdk/src/types.ts'

export const format_titles: Record<Subscription['format'], string> = {
  standard: 'Webhook',
  slack: 'Slack',
  mail: 'Mail',
}

/** Masked: the whole URL or address is shown nowhere. */
export function targetOf({ url, to }: Subscription): string {
  return url ?? to ?? ''
}

export function nameOf(subscription: Subscription): string {
  return subscription.name ?? targetOf(subscription)
}

export const paused_reasons: Record<
  NonNullable<Subscription['paused_reason']>,
  [what: string, next: string]
> = {
  requested: ['An administrator paused it.', 'Nothing is lost: it goes on where it was paused.'],
  gone: [
    'The receiver answered 410: it wants no more deliveries.',
    'Resume it once the receiver takes them again, or delete it.',
  ],
  failing: [
    'The receiver took nothing for three days.',
    'Resume it once the receiver works: it goes on with the event that was not taken.',
  ],
  unsubscribed: [
    'The holder of the address ended the emails.',
    'Only they can begin them again, by the link of the first email.',
  ],
}

/** True where only the holder of the address can begin deliveries. */
export function isForHolder({ status, paused_reason }: Subscription): boolean {
  return status === 'unconfirmed' || paused_reason === 'unsubscribed'
}
