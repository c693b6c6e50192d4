// Hashes in tiles of 256 by the layout of c2sp.org/tlog-tiles: a tile of level n has the hashes of 256 complete subtrees of
// height 8n. Hashes of the heights in between are computed. As text a hash is 44 characters of base64, and a tile these one after the
// other.

import {
  consistencyRanges,
  emptyRoot,
  type Hash,
  inclusionRanges,
  joined,
  nodeHash,
  type Range,
  type Subtree,
  subtreesOf,
} from './merkle.ts'

const tile_height = 8
export const tile_width = 2 ** tile_height
const text_characters = 44
/** Tiles of a tree that are kept for its next proof. */
const tiles_kept = 32

export interface TileId {
  level: number
  tile: number
}

/** Hashes of one level that follow each other; `start` is the index of the first. */
export interface Hashes {
  level: number
  start: number
  /** As text. */
  hashes: string
}

/** Reads the stored hashes of these tiles, as pieces in their order. */
export type ReadTiles = (ids: readonly TileId[]) => Promise<Hashes[]>

export function hashText(hash: Hash): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('base64')
}

function hashOfText(text: string): Hash {
  return Buffer.from(text, 'base64')
}

/** The hashes in such a text. */
export function hashesIn(text: string): Hash[] {
  return Array.from({ length: text.length / text_characters }, (_, i) => hashOfText(hashAt(text, i)))
}

export function hashAt(text: string, at: number): string {
  return text.slice(at * text_characters, (at + 1) * text_characters)
}

export function countIn(text: string): number {
  return text.length / text_characters
}

/** The level whose tiles have the hash of this subtree; null for one that is computed. */
export function levelOf({ height }: Subtree): number | null {
  return height % tile_height === 0 ? height / tile_height : null
}

export function tileOf(level: number, index: number): TileId {
  return { level, tile: Math.floor(index / tile_width) }
}

/** A hash that a proof needs is not among the stored ones, or they do not follow each other. */
export class MissingHash extends Error {
  override name = 'MissingHash'
}

/** The tree as the stored tiles have it. It answers one call at a time; a tile that was read lately is not read again. */
export class TiledTree {
  readonly #tiles = new Map<string, { first: number; text: string }>()

  constructor(private readonly read: ReadTiles) {}

  async root(size: number): Promise<Hash> {
    if (size === 0) return emptyRoot()
    const [root] = await this.#hashesOf([{ begin: 0, end: size }])
    return root!
  }

  /** The hashes of `Edge`. */
  edge(size: number): Promise<Hash[]> {
    return this.#hashesOf(subtreesOf({ begin: 0, end: size }).map(rangeOf))
  }

  /** Proofs of several leaves of one tree, in the same order. */
  async inclusionProofs(indexes: readonly number[], size: number): Promise<Hash[][]> {
    const ranges = indexes.map((index) => inclusionRanges(index, size))
    const hashes = await this.#hashesOf(ranges.flat())
    return ranges.map(({ length }) => hashes.splice(0, length))
  }

  consistencyProof(from: number, to: number): Promise<Hash[]> {
    return this.#hashesOf(from === 0 ? [] : consistencyRanges(from, to))
  }

  /** The hash that is stored for a leaf, as text. */
  async leaf(index: number): Promise<string> {
    await this.#load([tileOf(0, index)])
    return this.#stored(0, index)
  }

  async #hashesOf(ranges: readonly Range[]): Promise<Hash[]> {
    const parts = ranges.map(subtreesOf)
    await this.#load(parts.flat().map(tileOfSubtree))
    const hashes = parts.map((subtrees) => joined(subtrees.map((subtree) => this.#hashOf(subtree))))
    this.#forget()
    return hashes
  }

  async #load(ids: readonly TileId[]): Promise<void> {
    const missing = new Map(ids.map((id) => [keyOf(id), id]))
    for (const key of this.#tiles.keys()) missing.delete(key)
    if (missing.size === 0) return
    const loaded = new Map<string, { first: number; text: string }>()
    for (const { level, start, hashes } of await this.read([...missing.values()])) {
      const id = tileOf(level, start)
      const { first, text } = loaded.get(keyOf(id)) ?? { first: id.tile * tile_width, text: '' }
      if (first + countIn(text) !== start)
        throw new MissingHash(`the hashes of level ${level} do not follow each other at ${start}`)
      loaded.set(keyOf(id), { first, text: text + hashes })
    }
    for (const [key, tile] of loaded) this.#tiles.set(key, tile)
  }

  #hashOf({ height, index }: Subtree): Hash {
    const level = Math.floor(height / tile_height)
    const width = 2 ** (height % tile_height)
    let row = Array.from({ length: width }, (_, i) => hashOfText(this.#stored(level, index * width + i)))
    while (row.length > 1) row = pairs(row)
    return row[0]!
  }

  #stored(level: number, index: number): string {
    const tile = this.#tiles.get(keyOf(tileOf(level, index)))
    const text = tile ? hashAt(tile.text, index - tile.first) : ''
    if (text.length < text_characters) throw new MissingHash(`there is no hash ${index} of level ${level}`)
    return text
  }

  /** The tiles that were loaded first go first. */
  #forget(): void {
    for (const key of this.#tiles.keys()) {
      if (this.#tiles.size <= tiles_kept) return
      this.#tiles.delete(key)
    }
  }
}

function pairs(row: readonly Hash[]): Hash[] {
  return Array.from({ length: row.length / 2 }, (_, i) => nodeHash(row[2 * i]!, row[2 * i + 1]!))
}

function rangeOf({ height, index }: Subtree): Range {
  return { begin: index * 2 ** height, end: (index + 1) * 2 ** height }
}

function tileOfSubtree({ height, index }: Subtree): TileId {
  const level = Math.floor(height / tile_height)
  return tileOf(level, index * 2 ** (height % tile_height))
}

function keyOf({ level, tile }: TileId): string {
  return `${level}/${tile}`
}
