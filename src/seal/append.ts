// Appending to a tree: its new edge, and the hashes that are to be stored.

import { Edge, type Hash } from './merkle.ts'
import { countIn, type Hashes, hashesIn, hashText, levelOf, tile_width } from './tiles.ts'

export interface StoredHead {
  size: number
  /** Hashes as text. */
  edge: string
}

export interface Appended extends StoredHead {
  root: Hash
  /** New hashes, none of them in more than one tile. */
  pieces: Hashes[]
}

/** Throws when the edge does not fit the size. */
export function appended(head: StoredHead, leaves: readonly Hash[]): Appended {
  const edge = new Edge(head.size, hashesIn(head.edge))
  const pieces: Hashes[] = []
  for (const leaf of leaves) {
    edge.append(leaf, (subtree, hash) => {
      const level = levelOf(subtree)
      if (level !== null) addHash(pieces, level, subtree.index, hashText(hash))
    })
  }
  return { size: edge.size, edge: edge.hashes.map(hashText).join(''), root: edge.root(), pieces }
}

function addHash(pieces: Hashes[], level: number, index: number, hash: string): void {
  const last = pieces.findLast((piece) => piece.level === level)
  if (last && index % tile_width !== 0) last.hashes += hash
  else pieces.push({ level, start: index, hashes: hash })
}

/** True for one that ends its tile, which is then stored in one piece. */
export function endsTile({ start, hashes }: Hashes): boolean {
  return (start + countIn(hashes)) % tile_width === 0
}

export function isWholeTile({ start, hashes }: Hashes): boolean {
  return start % tile_width === 0 && countIn(hashes) === tile_width
}
