// Every statement on seal_tiles.

import { inChunk } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { type Hashes, type TileId, tile_width } from './tiles.ts'

const PIECES = sql<Hashes>(
  'seal.pieces',
  `select level, start, hashes from seal_tiles
    where tenant_id = :tenant_id and level = :level and start >= :start_from and start < :start_before order by start`,
)

const ADD_PIECE = sql(
  'seal.add_piece',
  `insert into seal_tiles (tenant_id, level, start, hashes) values (:tenant_id, :level, :start, :hashes)
   on conflict (tenant_id, level, start) do update set hashes = excluded.hashes`,
)

const REMOVE_PIECES = sql(
  'seal.remove_pieces',
  `delete from seal_tiles
    where tenant_id = :tenant_id and level = :level and start >= :start_from and start < :start_before`,
)

/** The hashes of a tile as they are stored, in their order. */
export function pieces(q: Reader, tenant_id: string, { level, tile }: TileId) {
  return q.all(PIECES, { tenant_id, level, ...startsOf(tile) })
}

export function addPiece(tx: Tx, tenant_id: string, { level, start, hashes }: Hashes) {
  return tx.run(ADD_PIECE, { tenant_id, level, start, hashes })
}

export function removePieces(tx: Tx, tenant_id: string, { level, tile }: TileId) {
  return tx.run(REMOVE_PIECES, { tenant_id, level, ...startsOf(tile) })
}

function startsOf(tile: number) {
  return { start_from: tile * tile_width, start_before: (tile + 1) * tile_width }
}

const PURGE_TILES = sql(
  'seal.purge_tiles',
  `delete from seal_tiles where ${inChunk({
    ...{ table: 'seal_tiles', key: 'tenant_id, level, start', texts: ['hashes'] },
  })}`,
)
/** Removes rows of a tenant that is being purged; returns how many. */
export function purge(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  return tx.run(PURGE_TILES, { tenant_id, rows_max, bytes_max })
}
