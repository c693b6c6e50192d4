// How late the callbacks of a tenant are: schedules to a receiver that answers at once.

import { join } from 'node:path'
import { type Child, kill, startChild } from './children.ts'
import { type Spread, spreadOf } from './figures.ts'
import type { Arrival } from './receiver-process.ts'
import type { Tenant } from './service.ts'

export class Receiver {
  #child: Child
  #port = Promise.withResolvers<number>()
  /** By path, the first time. */
  readonly arrivals = new Map<string, number>()

  private constructor() {
    this.#child = startChild([process.execPath, join(import.meta.dir, 'receiver-process.ts')], {
      onMessage: (message) => this.#heard(message as number | Arrival),
    })
  }

  static start(): Receiver {
    return new Receiver()
  }

  /** `http://127.0.0.1:port` */
  async url(): Promise<string> {
    return `http://127.0.0.1:${await this.#port.promise}`
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }

  #heard(message: number | Arrival): void {
    if (typeof message === 'number') this.#port.resolve(message)
    else if (!this.arrivals.has(message.path)) this.arrivals.set(message.path, message.at)
  }
}

export interface Lateness {
  count: number
  /** Between two schedules. */
  gap_ms: number
  /** A callback that did not arrive this long after the last one was due counts as this late. */
  patience_ms: number
  /** Where the receiver is for the service, when that is not where it listens. */
  url?: string
}

const lead_ms = 300

/** Creates schedules one after the other, each due soon, and answers how late they arrived. */
export async function lateness(tenant: Tenant, receiver: Receiver, options: Lateness): Promise<Spread> {
  const base = options.url ?? (await receiver.url())
  const run = crypto.randomUUID().slice(0, 8)
  const due = new Map<string, number>()
  for (let i = 0; i < options.count; i++) {
    const path = `/${run}-${i}`
    const fire_at = Date.now() + lead_ms
    due.set(path, fire_at)
    await tenant.ask('POST', '/v1/schedules', {
      callback_url: base + path,
      callback_payload: {},
      fire_at: new Date(fire_at).toISOString(),
    })
    await Bun.sleep(options.gap_ms)
  }
  const ends = Math.max(...due.values()) + options.patience_ms
  const missing = () => [...due.keys()].some((path) => !receiver.arrivals.has(path))
  while (missing() && Date.now() < ends) await Bun.sleep(20)
  return spreadOf(
    [...due].map(([path, at]) =>
      Math.max(0, (receiver.arrivals.get(path) ?? Math.max(ends, Date.now())) - at),
    ),
  )
}
