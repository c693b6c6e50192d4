// The Merkle tree of RFC 6962, section 2.1: hashes, and which of them a root or a proof is made of. Sizes go up to
// 2^40, so nothing here uses the 32-bit operators.

export type Hash = Uint8Array

const hash_bytes = 32
const leaf_prefix = '\0'

/** A complete subtree: the leaves from `index · 2^height` on, 2^height of them. */
export interface Subtree {
  height: number
  index: number
}

/** The leaves from `begin` up to `end`, which is not one of them. */
export interface Range {
  begin: number
  end: number
}

export function leafHash(leaf: string): Hash {
  return sha256(leaf_prefix + leaf)
}

const pair = new Uint8Array(1 + 2 * hash_bytes).fill(1, 0, 1)

export function nodeHash(left: Hash, right: Hash): Hash {
  pair.set(left, 1)
  pair.set(right, 1 + hash_bytes)
  return sha256(pair)
}

// In one call: an object for each hash costs as much again.
function sha256(input: Uint8Array | string): Hash {
  return Bun.SHA256.hash(input) as Hash
}

/** The root of a tree without leaves. */
export function emptyRoot(): Hash {
  return sha256('')
}

/** The complete subtrees that a range consists of, the largest first. `begin` is a multiple of the first one's size. */
export function subtreesOf({ begin, end }: Range): Subtree[] {
  const subtrees: Subtree[] = []
  for (let at = begin; at < end; ) {
    const height = Math.floor(Math.log2(end - at))
    subtrees.push({ height, index: at / 2 ** height })
    at += 2 ** height
  }
  return subtrees
}

/** The hash over neighbours, the largest first. There must be at least one. */
export function joined(hashes: readonly Hash[]): Hash {
  return hashes.reduceRight((right, left) => nodeHash(left, right))
}

/** PATH(index, D[size]): the ranges whose hashes prove that a leaf is in a tree, from the leaf's neighbour up. */
export function inclusionRanges(index: number, size: number): Range[] {
  const ranges: Range[] = []
  let [begin, end] = [0, size]
  while (end - begin > 1) {
    const middle = begin + largestPowerBelow(end - begin)
    if (index < middle) {
      ranges.push({ begin: middle, end })
      end = middle
    } else {
      ranges.push({ begin, end: middle })
      begin = middle
    }
  }
  return ranges.reverse()
}

/** PROOF(from, D[to]): the ranges whose hashes prove that the tree of `to` leaves begins with that of `from`. `from` is above 0. */
export function consistencyRanges(from: number, to: number): Range[] {
  const ranges: Range[] = []
  let [begin, end] = [0, to]
  // The subtree that ends where the older tree ends; its hash is known to the verifier while it is the whole older tree.
  while (end !== from) {
    const middle = begin + largestPowerBelow(end - begin)
    if (from <= middle) {
      ranges.push({ begin: middle, end })
      end = middle
    } else {
      ranges.push({ begin, end: middle })
      begin = middle
    }
  }
  if (begin > 0) ranges.push({ begin, end })
  return ranges.reverse()
}

/** The largest power of two that is less than `n`, which is 2 at least. */
function largestPowerBelow(n: number): number {
  return 2 ** Math.floor(Math.log2(n - 1))
}

/**
 * The right edge of a tree: the hashes of the complete subtrees that it consists of, the largest first. It is all that
 * is needed to append and to tell the root.
 */
export class Edge {
  readonly #hashes: Hash[]
  #size: number

  /** Throws when these are not as many hashes as a tree of this size has. */
  constructor(size: number, hashes: readonly Hash[]) {
    if (subtreesOf({ begin: 0, end: size }).length !== hashes.length)
      throw new Error(`the edge of a tree of ${size} does not have ${hashes.length} hashes`)
    this.#size = size
    this.#hashes = [...hashes]
  }

  get size(): number {
    return this.#size
  }

  get hashes(): readonly Hash[] {
    return this.#hashes
  }

  root(): Hash {
    return this.#size === 0 ? emptyRoot() : joined(this.#hashes)
  }

  /** `onSubtree` is called with each subtree that this leaf completes, the leaf itself first. */
  append(leaf: Hash, onSubtree?: (subtree: Subtree, hash: Hash) => void): void {
    let [hash, height, index] = [leaf, 0, this.#size]
    onSubtree?.({ height, index }, hash)
    for (; index % 2 === 1; index = (index - 1) / 2) {
      hash = nodeHash(this.#hashes.pop()!, hash)
      height++
      onSubtree?.({ height, index: (index - 1) / 2 }, hash)
    }
    this.#hashes.push(hash)
    this.#size++
  }
}

/** A tree as somebody has seen it. */
export interface TreeHead {
  size: number
  root: Hash
}
