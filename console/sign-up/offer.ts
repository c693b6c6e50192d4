// The plans that a new tenant may have, which the service writes into the page while sign-up is open.

import { byteCount, count } from '../text/words.ts'

export type Limits = Readonly<Record<string, number | null>>

interface Offer {
  /** The plan of a sign-up that names none. */
  default_plan: string
  plans: Readonly<Record<string, Limits>>
}

/** Null while sign-up is closed. */
export const offer = offerIn(document.querySelector('meta[name=sign-up]')?.getAttribute('content'))

export const sign_up_path = '/console/sign-up'

function offerIn(text: string | null | undefined): Offer | null {
  return text ? (JSON.parse(text) as Offer) : null
}

/** The quotas that a newcomer meets, in this order. */
const quotas: [name: string, words: (limit: string) => string][] = [
  ['api_calls_per_month', (limit) => `${limit} calls of /api a month`],
  ['agents', (limit) => `${limit} agents`],
  ['kv_keys', (limit) => `${limit} stored keys`],
  ['dlq_items', (limit) => `${limit} open dead letters`],
  ['active_schedules', (limit) => `${limit} waiting schedules`],
  ['inboxes', (limit) => `${limit} inboxes`],
  ['storage_bytes', (limit) => `${limit} of storage`],
]

/** Empty for a plan without quotas. */
export function quotasOf(limits: Limits): string[] {
  if (quotas.every(([name]) => (limits[name] ?? null) === null)) return []
  return quotas.map(([name, words]) => {
    const limit = limits[name] ?? null
    if (limit === null) return words('unlimited')
    return words(name === 'storage_bytes' ? byteCount(limit) : count(limit))
  })
}
