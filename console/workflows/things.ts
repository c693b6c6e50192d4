// The things that events are about, loaded a few at a time and once each: the checkpoint with its prompt, the schedule with
// its payload, the dead letter.

import { type Signal, signal } from '@preact/signals'
import { pathOf } from '../api/address.ts'
import type { Result } from '../api/client.ts'
import { ask } from '../api/session.ts'
import type { JournalEvent } from './event.ts'

export type Thing = Result<unknown> | null

export interface Things {
  /** Null until it was loaded. */
  of(path: string): Signal<Thing>
  /** Loads these again, if they were loaded at all. */
  again(paths: readonly string[]): void
  /** Resolves once all of these were loaded, or could not be. */
  settled(paths: readonly string[]): Promise<void>
  stop(): void
}

const loads_at_once = 4

export function openThings(): Things {
  const known = new Map<string, Signal<Thing>>()
  const queue: string[] = []
  const waiting = new Map<string, (() => void)[]>()
  const controller = new AbortController()
  let running = 0
  const load = async () => {
    if (running >= loads_at_once) return
    running += 1
    for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
      const result = await ask('GET', path, { signal: controller.signal })
      if (controller.signal.aborted) break
      known.get(path)!.value = result
      for (const done of waiting.get(path) ?? []) done()
      waiting.delete(path)
    }
    running -= 1
  }
  const want = (path: string) => {
    if (!queue.includes(path)) queue.push(path)
    void load()
  }
  const of = (path: string) => {
    const there = known.get(path)
    if (there) return there
    const made = signal<Thing>(null)
    known.set(path, made)
    want(path)
    return made
  }
  return {
    of,
    again: (paths) => {
      for (const path of paths) if (known.has(path)) want(path)
    },
    settled: async (paths) => {
      const missing = paths.filter((path) => of(path).peek() === null)
      const all = missing.map(
        (path) => new Promise<void>((resolve) => waiting.set(path, [...(waiting.get(path) ?? []), resolve])),
      )
      await Promise.all(all)
    },
    stop: () => controller.abort(),
  }
}

/** The path of the thing that is expanded at an event; null when the event says everything. */
export function thingPath({ type, subject, data }: JournalEvent): string | null {
  const path = shown_at[type]
  if (type === 'callback.delivered' || type === 'callback.failed')
    return pathOf('/v1/checkpoints', idOf(subject, data))
  return path === undefined ? null : pathOf(path, subject.id)
}

/** The paths of the things that an event may have changed, whether or not they are expanded at it. */
export function changedBy(event: JournalEvent): string[] {
  const { kind, id } = event.subject
  const path = Object.hasOwn(read_at, kind) ? pathOf(read_at[kind]!, id) : null
  return [path, thingPath(event)].filter((one) => one !== null)
}

/** By the kind of the subject. */
const read_at: Record<string, string> = {
  checkpoint: '/v1/checkpoints',
  schedule: '/v1/schedules',
  dlq_item: '/v1/dlq',
  effect: '/v1/effects',
}

function idOf(subject: JournalEvent['subject'], data: JournalEvent['data']): string {
  return typeof data.checkpoint_id === 'string' ? data.checkpoint_id : subject.id
}

const shown_at: Record<string, string> = {
  'checkpoint.created': '/v1/checkpoints',
  'checkpoint.approved': '/v1/checkpoints',
  'checkpoint.rejected': '/v1/checkpoints',
  'checkpoint.cancelled': '/v1/checkpoints',
  'checkpoint.expired': '/v1/checkpoints',
  'effect.claimed': '/v1/effects',
  'effect.proposed': '/v1/effects',
  'effect.approved': '/v1/effects',
  'effect.succeeded': '/v1/effects',
  'effect.failed': '/v1/effects',
  'schedule.created': '/v1/schedules',
  'dlq.created': '/v1/dlq',
  'audit.appended': '/v1/audit',
  'message.received': '/api/webhook',
}

/** The page of the console on which the subject of an event is opened; null when there is none. */
export function pageOf({ type, subject, data }: JournalEvent): [path: string, text: string] | null {
  const { id } = subject
  const [noun] = type.split('.')
  if (noun === 'checkpoint' || noun === 'callback')
    return [pathOf('/console/approvals', id), 'Open the request']
  if (noun === 'effect') return [pathOf('/console/effects', id), 'Open the effect']
  if (noun === 'effect_policy') return ['/console/effects?status=policies', 'All policies']
  if (noun === 'schedule') return [pathOf('/console/schedules', id), 'Open the schedule']
  if (noun === 'dlq') return [pathOf('/console/dlq', id), 'Open the dead letter']
  if (noun === 'audit') return [pathOf('/console/audit', id), 'Open the entry']
  if (noun === 'inbox') return [pathOf('/console/inboxes', id), 'Open the inbox']
  if (noun === 'message') {
    const message = typeof data.message_id === 'string' ? data.message_id : undefined
    return [pathOf('/console/inboxes', id, message), 'Open the message']
  }
  if (noun === 'kv' && typeof data.namespace === 'string' && typeof data.key === 'string') {
    return [pathOf('/console/kv', data.namespace, data.key), 'Open the value']
  }
  if (noun === 'agent') return [pathOf('/console/keys/agents', id), 'Open the agent']
  return noun === 'approval_key' ? ['/console/keys/approval-keys', 'All approval keys'] : null
}
