// The events that a change of a key leaves in its transaction.

import { iso, isoOrNull, type Millis } from '../base/clock.ts'
import { type Cause, service_cause } from '../contract/event.ts'
import type { Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { type KeyRef, ownerOf } from './entry.ts'
import { events } from './events.ts'

type Version = KeyRef & { version: number }

export function emitPut(
  tx: Tx,
  tenant_id: string,
  cause: Cause,
  { expires_at, ...entry }: Version & { expires_at: Millis | null },
) {
  const data = { ...entry, expires_at: isoOrNull(expires_at) }
  return journal.emit(tx, events['kv.put'], { tenant_id, cause, ...about(entry), data })
}

export function emitDeleted(tx: Tx, tenant_id: string, cause: Cause, entry: Version) {
  return journal.emit(tx, events['kv.deleted'], { tenant_id, cause, ...about(entry), data: entry })
}

export function emitExpired(
  tx: Tx,
  tenant_id: string,
  { namespace, key, version, expires_at }: Version & { expires_at: Millis },
) {
  const data = { namespace, key, version, expired_at: iso(expires_at) }
  return journal.emit(tx, events['kv.expired'], {
    ...{ tenant_id, cause: service_cause, data },
    ...about({ namespace, key }),
  })
}

/** A namespace has no slash, so that the first one ends it. */
function about({ namespace, key }: KeyRef) {
  return { subject_id: `${namespace}/${key}`, private_to: ownerOf(namespace) }
}

export function emitSetting(tx: Tx, tenant_id: string, cause: Cause, namespace: string, enabled: boolean) {
  return journal.emit(tx, enabled ? events['kv.events_enabled'] : events['kv.events_disabled'], {
    ...{ tenant_id, cause, subject_id: namespace, private_to: ownerOf(namespace) },
    data: { namespace },
  })
}
