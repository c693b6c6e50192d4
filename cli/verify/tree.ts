// Checks proofs of a Merkle tree as RFC 9162, sections 2.1.3.2 and 2.1.4.2, says it, step by step. It imports nothing of
// the service, whose claims it checks.

import { createHash } from 'node:crypto'

export function hashOfLeaf(text: string): Buffer {
  return createHash('sha256').update('\0').update(text, 'utf8').digest()
}

function hashOfPair(left: Buffer, right: Buffer): Buffer {
  return createHash('sha256').update('\x01').update(left).update(right).digest()
}

/** The root that a tree of `size` leaves has when this leaf is at `index`; null when the path has a wrong length. */
export function rootByPath(
  index: number,
  size: number,
  leaf: Buffer,
  path: readonly Buffer[],
): Buffer | null {
  if (index >= size) return null
  let [at, last, root] = [index, size - 1, leaf]
  for (const sibling of path) {
    if (last === 0) return null
    if (at % 2 === 1 || at === last) {
      root = hashOfPair(sibling, root)
      while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)]
    } else root = hashOfPair(root, sibling)
    ;[at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  }
  return last === 0 ? root : null
}

interface Head {
  size: number
  root: Buffer
}

/** True when the path shows that `later` begins with all of `earlier`. */
export function beginsWith(later: Head, earlier: Head, path: readonly Buffer[]): boolean {
  if (earlier.size > later.size) return false
  if (earlier.size === later.size) return path.length === 0 && earlier.root.equals(later.root)
  if (earlier.size === 0) return path.length === 0 && earlier.root.equals(new Growing().root())
  const is_power_of_two = Number.isInteger(Math.log2(earlier.size))
  const [first, ...rest] = is_power_of_two ? [earlier.root, ...path] : path
  let [at, last] = [earlier.size - 1, later.size - 1]
  while (at % 2 === 1) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  if (!first) return false
  let [old_root, new_root] = [first, first]
  for (const hash of rest) {
    if (last === 0) return false
    if (at % 2 === 1 || at === last) {
      ;[old_root, new_root] = [hashOfPair(hash, old_root), hashOfPair(hash, new_root)]
      while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)]
    } else new_root = hashOfPair(new_root, hash)
    ;[at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  }
  return last === 0 && old_root.equals(earlier.root) && new_root.equals(later.root)
}

/** A tree that grows leaf by leaf: the roots of its complete parts, which are powers of two, the largest first. */
export class Growing {
  readonly #parts: { size: number; root: Buffer }[] = []
  size = 0

  /** Begins after `size` leaves, of which only these roots are known. Null when they are not as many as there are parts. */
  static after(size: number, roots: readonly Buffer[]): Growing | null {
    const tree = new Growing()
    let left = size
    for (const root of roots) {
      if (left === 0) return null
      const part = 2 ** Math.floor(Math.log2(left))
      tree.#parts.push({ size: part, root })
      left -= part
    }
    tree.size = size
    return left === 0 ? tree : null
  }

  add(leaf: Buffer): void {
    let part = { size: 1, root: leaf }
    while (this.#parts.at(-1)?.size === part.size) {
      part = { size: 2 * part.size, root: hashOfPair(this.#parts.pop()!.root, part.root) }
    }
    this.#parts.push(part)
    this.size++
  }

  root(): Buffer {
    const [smallest, ...others] = this.#parts.toReversed()
    if (!smallest) return createHash('sha256').digest()
    return others.reduce((right, { root }) => hashOfPair(root, right), smallest.root)
  }
}
