// Checks the journal of a tenant, for the operator: its numbers have no gaps, and its hashes add up to the root of the tree.

import { limit } from '../base/limit.ts'
import { canonicalText } from '../contract/event.ts'
import type { Db } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { rootOf } from './checkpoint-service.ts'
import { leafHash } from './merkle.ts'
import { orBroken, storedTree } from './service.ts'
import * as store from './store.ts'
import { hashText } from './tiles.ts'

const rows_max = limit(
  'seal.checked_rows',
  1_000,
  'rows',
  'Events that one read of `admin check` compares with the seal, so that requests wait for no more than these.',
)

/** The first fault of the tenant's journal; null when it is whole. Events that are not sealed yet are not checked. */
export async function faultOf(db: Db, tenant_id: string): Promise<string | null> {
  const head = await store.head(db, tenant_id)
  if (!head || head.size === 0) return null
  try {
    const tree = storedTree(db, tenant_id)
    const root = await orBroken(() => tree.root(head.size))
    if (hashText(root) !== hashText(rootOf(head)))
      return 'the stored hashes do not add up to the root of the tree'
    const removed = async () => {
      const [oldest] = await journal.page(db, tenant_id, {}, { after: 0, rows_max: 1 })
      return (oldest?.seq ?? head.size + 1) - 1
    }
    for (let after = await removed(); after < head.size; ) {
      const rows = (await journal.page(db, tenant_id, {}, { after, rows_max })).filter(
        ({ seq }) => seq <= head.size,
      )
      const leaves = storedTree(db, tenant_id) // of its own, because it keeps the tiles that it has read
      const found = rows.filter(({ seq }, i) => seq === after + 1 + i)
      for (const row of found) {
        const kept = await orBroken(() => leaves.leaf(row.seq - 1))
        if (hashText(leafHash(canonicalText(row))) !== kept) return `event ${row.seq} is not what was sealed`
      }
      after += found.length
      if (found.length > 0 && found.length === rows.length) continue
      // Retention may have passed this place.
      const removed_since = await removed()
      if (removed_since <= after) return `event ${after + 1} is missing`
      after = removed_since
    }
    return null
  } catch (error) {
    const { message, details } = error as Error & { details?: { reason?: string } }
    return details?.reason ?? message
  }
}
