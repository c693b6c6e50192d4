// How the source of a dead letter is sent again. Features declare it; dead letters find it by their source and know no
// feature.

import type { Tx } from '../db/db.ts'
import type { TenantFacts } from './caller.ts'
import type { Dependencies } from './dependencies.ts'
import type { Cause } from './event.ts'

export interface Redrive {
  /** The source of the dead letters: `schedule`. */
  source: string
  /**
   * Sends it again, in a transaction that holds the row of the dead letter; `cause` is that of its events. Returns the id of what is sent; null when its
   * state does not allow it. Throws QUOTA_EXCEEDED and STORAGE_FULL. Nothing is written unless it returns an id.
   */
  redrive(
    tx: Tx,
    tenant: TenantFacts,
    dependencies: Dependencies,
    letter: { id: string; source_id: string; cause: Cause },
  ): Promise<string | null>
}

/** By their source. */
export type Redrives = ReadonlyMap<string, Redrive>

/** Throws when two features have the same source. */
export function redrivesOf(list: readonly Redrive[]): Redrives {
  const by_source = new Map(list.map((redrive) => [redrive.source, redrive]))
  if (by_source.size < list.length) throw new Error('two features send the same source again')
  return by_source
}
