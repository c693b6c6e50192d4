// Sealing: numbered events become leaves of the tree, in steps in the background, or at once when a seal is requested. The
// events are read and hashed outside the transaction, which is short.

import './errors.ts'
import { hour_ms } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { canonicalText, type EventRow } from '../contract/event.ts'
import { type Db, dueWork, type Owner, type Tx } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import { type Appended, appended, endsTile, isWholeTile, type StoredHead } from './append.ts'
import { events } from './events.ts'
import { leafHash } from './merkle.ts'
import * as store from './store.ts'
import * as tiles from './tile-store.ts'
import { countIn, type Hashes, tile_width, tileOf } from './tiles.ts'

const rows_max = limit(
  'seal.rows',
  1_000,
  'rows',
  'Events that one step of sealing appends to the tree, so that requests wait for no more than these.',
)
const steps_max = limit(
  'seal.steps',
  20,
  'entries',
  'Steps of sealing when a seal is asked for. The rest is sealed in the background, and is not in the answer yet.',
)

const nothing: StoredHead = { size: 0, edge: '' }

/** Seals what has numbers, as far as `steps_max` allows, and returns the tree. Throws SEAL_BROKEN. */
export async function grown(db: Db, tenant_id: string): Promise<StoredHead> {
  for (let step = 0; step < steps_max; step++) {
    const { head, more } = await grow(db, tenant_id, tenant_id)
    if (!more) return head
  }
  return (await store.head(db, tenant_id)) ?? nothing
}

/** One step. `more`: there are further events, or another node has sealed these. Throws SEAL_BROKEN. */
export async function grow(
  db: Db,
  tenant_id: string,
  owner: Owner = dueWork(tenant_id),
): Promise<{ head: StoredHead; more: boolean }> {
  const known = await store.head(db, tenant_id)
  const head = known ?? nothing
  const rows = await nextRows(db, tenant_id, head.size)
  if (rows.length === 0) return { head, more: false }
  const next = appended(
    head,
    rows.map((row) => leafHash(canonicalText(row))),
  )
  const has_news = rows.some(({ type }) => type !== events['seal.checkpoint'].name)
  const is_kept = await db.write(owner, async (tx) => {
    if (!known) await store.markPending(tx, tenant_id, tx.now)
    return keep(tx, tenant_id, head.size, next, has_news)
  })
  return { head: next, more: !is_kept || rows.length === rows_max }
}

/** False when the tree has another size by now. */
async function keep(tx: Tx, tenant_id: string, old_size: number, next: Appended, has_news: boolean) {
  const { size, edge, pieces } = next
  const checkpoint_at = tx.now + hour_ms
  if (!(await store.grow(tx, tenant_id, old_size, { size, edge, has_news, checkpoint_at }))) return false
  for (const piece of pieces) await keepPiece(tx, tenant_id, piece)
  // Numbers that were given before this transaction had the lock are seen by now; later ones find nothing pending.
  if ((await journal.lastSeq(tx, tenant_id)) > size) await store.markPending(tx, tenant_id, tx.now)
  return true
}

/** A full tile is one row: it takes the place of its parts. */
async function keepPiece(tx: Tx, tenant_id: string, piece: Hashes): Promise<void> {
  const { level, start, hashes } = piece
  if (isWholeTile(piece) || !endsTile(piece)) {
    await tiles.addPiece(tx, tenant_id, piece)
    return
  }
  const id = tileOf(level, start)
  const parts = await tiles.pieces(tx, tenant_id, id)
  const whole = {
    level,
    start: start + countIn(hashes) - tile_width,
    hashes: parts.map((part) => part.hashes).join('') + hashes,
  }
  // Parts that something else has changed stay as they are: then proofs do not hold, and that is found.
  if (!isWholeTile(whole)) {
    await tiles.addPiece(tx, tenant_id, piece)
    return
  }
  await tiles.removePieces(tx, tenant_id, id)
  await tiles.addPiece(tx, tenant_id, whole)
}

/**
 * The events that are the next leaves. Throws SEAL_BROKEN when one is not there although it had its number, unless another
 * node has sealed it meanwhile, and retention has removed it since.
 */
async function nextRows(db: Db, tenant_id: string, size: number): Promise<EventRow[]> {
  const look = { after: size, rows_max }
  let rows = await journal.page(db, tenant_id, {}, look)
  if (rows.length === 0 && (await journal.lastSeq(db, tenant_id)) > size) {
    // Those that got numbers between the two looks are seen by now.
    rows = await journal.page(db, tenant_id, {}, look)
    if (rows.length === 0) await requireSealed(db, tenant_id, size)
  }
  const gap = rows.findIndex(({ seq }, i) => seq !== size + 1 + i)
  if (gap !== -1) await requireSealed(db, tenant_id, size + gap)
  return gap === -1 ? rows : []
}

async function requireSealed(db: Db, tenant_id: string, size: number): Promise<void> {
  const sealed = (await store.head(db, tenant_id))?.size ?? 0
  if (sealed <= size) throw broken(`event ${size + 1} is missing`)
}

export function broken(reason: string): ApiError {
  return new ApiError('SEAL_BROKEN', { details: { reason } })
}
