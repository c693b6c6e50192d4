// The events that tests find in a journal, and what holds for each of them.

import { expect } from 'bun:test'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { EventRow } from '../../src/contract/event.ts'
import { type Db, unnamedAcrossTenants } from '../../src/db/db.ts'
import { event_types } from '../../src/features.ts'

export interface StoredEvent extends EventRow {
  tenant_id: string
  position: number
  waiting: number
  failing: number
}

const OF_REQUEST = unnamedAcrossTenants<StoredEvent>(
  'test.events_of_request',
  'select * from events where request_id = :request_id order by position',
)

/** The events that a call left, of any tenant, in the order in which they were written. */
export async function eventsOf(db: Db, request_id: string): Promise<StoredEvent[]> {
  return db.all(OF_REQUEST, { request_id })
}

const rows_max = 5_000
const NEWEST = unnamedAcrossTenants<StoredEvent>(
  'test.newest_events',
  'select * from events order by position desc limit :rows_max',
)

/** The newest events of a database, each as it was declared. */
export async function expectSoundJournal(db: Db): Promise<void> {
  const faults = (await db.all(NEWEST, { rows_max })).flatMap((event) => faultsOf(event))
  expect(faults).toEqual([])
}

const bytes_max = 2_048
const id_form = /^evt_[0-9a-hjkmnp-tv-z]{26}$/
const actor_form = /^(admin|service|operator|anonymous|approval_key:apk_\w+|[a-z0-9][a-z0-9-]{2,31})$/

/** Tests of the journal itself leave events of their own making, about things. */
function isPlanted({ type, subject_id }: StoredEvent): boolean {
  return /^(thing|test)\./.test(type) || /^(thing_\d+|s\d+)$/.test(subject_id)
}

/** Words of a type that no feature declares, or of an event that does not keep to its type. */
export function faultsOf(event: StoredEvent): string[] {
  const type = event_types.get(event.type)
  if (isPlanted(event)) return []
  if (!type) return [`${event.type} is not declared`]
  const data = JSON.parse(event.data)
  const schema = Type.Object(type.data, { additionalProperties: false })
  const rules: Record<string, boolean> = {
    'its data': Value.Check(schema, data) && isCanonical(data, event.data),
    'the kind of its subject': event.subject_kind === type.subject && event.subject_id !== '',
    'its actor': actor_form.test(event.actor),
    'its id': id_form.test(event.id),
    'its workflow':
      event.workflow_id === null || (event.workflow_id !== '' && event.workflow_id.length <= 512),
    'what it counts': [0, type.waiting].includes(event.waiting) && [0, type.failing].includes(event.failing),
  }
  return Object.entries(rules).flatMap(([rule, holds]) =>
    holds ? [] : [`${event.type}: ${rule}, ${JSON.stringify(event)}`],
  )
}

/** Flat, sorted, without white space, and small. */
function isCanonical(data: Record<string, unknown>, text: string): boolean {
  const sorted = Object.fromEntries(Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const is_flat = Object.values(data).every((value) => value === null || isPlain(value))
  return is_flat && JSON.stringify(sorted) === text && Buffer.byteLength(text) <= bytes_max
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)
}
