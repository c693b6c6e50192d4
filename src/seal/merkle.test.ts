import { describe, expect, test } from 'bun:test'
import { beginsWith, rootByPath } from '../../cli/verify/tree.ts'
import {
  consistencyRanges,
  Edge,
  type Hash,
  inclusionRanges,
  joined,
  leafHash,
  type Range,
  subtreesOf,
  type TreeHead,
} from './merkle.ts'
import { type Hashes, hashesIn, hashText, levelOf, MissingHash, TiledTree, tile_width } from './tiles.ts'

const hex = (hash: Hash) => Buffer.from(hash).toString('hex')

/** As the verifier of the command line judges it, which shares no code with the service. */
function provesInclusion(
  { index, size, leaf, root }: { index: number; size: number; leaf: Hash; root: Hash },
  proof: readonly Hash[],
): boolean {
  return rootByPath(index, size, Buffer.from(leaf), proof.map(bytesOf))?.equals(root) ?? false
}

function provesConsistency(earlier: TreeHead, later: TreeHead, proof: readonly Hash[]): boolean {
  return beginsWith(headOf(later), headOf(earlier), proof.map(bytesOf))
}

const bytesOf = (hash: Hash) => Buffer.from(hash)
const headOf = ({ size, root }: TreeHead) => ({ size, root: bytesOf(root) })

/** The vectors of the reference implementation of Certificate Transparency. */
const leaves = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
].map((text) => leafHash(Buffer.from(text, 'hex').toString()))
const roots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]
const n96 = '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7'
const n5f = '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e'
const n6b = '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4'
const nbc = 'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b'
const nca = 'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0'
const n0e = '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a'
const inclusion: [index: number, size: number, proof: string[]][] = [
  [0, 1, []],
  [0, 8, [n96, n5f, n6b]],
  [5, 8, [nbc, nca, roots[4]!]],
  [2, 3, [roots[2]!]],
  [1, 5, [roots[1]!, n5f, nbc]],
]
const consistency: [from: number, to: number, proof: string[]][] = [
  [1, 1, []],
  [1, 8, [n96, n5f, n6b]],
  [6, 8, [n0e, nca, roots[4]!]],
  [2, 5, [n5f, nbc]],
]

/** Stored as the service stores them: what each step of appending has completed is a piece. */
function tiled(count: number, leafOf: (i: number) => Hash, apart = 7) {
  const edge = new Edge(0, [])
  const heads = [edge.root()]
  const pieces: Hashes[] = []
  for (let i = 0; i < count; i++) {
    edge.append(leafOf(i), (subtree, hash) => {
      const level = levelOf(subtree)
      if (level === null) return
      const last = pieces.findLast((piece) => piece.level === level)
      const follows = last && subtree.index % tile_width !== 0 && i % apart !== 0
      if (follows) last.hashes += hashText(hash)
      else pieces.push({ level, start: subtree.index, hashes: hashText(hash) })
    })
    heads.push(edge.root())
  }
  const read = async (ids: readonly { level: number; tile: number }[]) =>
    ids.flatMap(({ level, tile }) =>
      pieces.filter((piece) => piece.level === level && Math.floor(piece.start / tile_width) === tile),
    )
  return { tree: new TiledTree(read), heads, edge, pieces }
}

describe('RFC 6962', () => {
  const { tree, heads } = tiled(8, (i) => leaves[i]!)

  test('the roots of the reference are reproduced, from the edge and from tiles', async () => {
    expect(heads.map(hex)).toEqual(roots)
    for (const [size, root] of roots.entries()) expect(hex(await tree.root(size))).toBe(root)
  })

  test.each(inclusion)(
    'leaf %d of a tree of %d has the proof of the reference',
    async (index, size, proof) => {
      const [found] = await tree.inclusionProofs([index], size)
      expect(found!.map(hex)).toEqual(proof)
      const claim = { index, size, leaf: leaves[index]!, root: heads[size]! }
      expect(provesInclusion(claim, found!)).toBe(true)
    },
  )

  test.each(consistency)(
    'from %d to %d leaves it has the proof of the reference',
    async (from, to, proof) => {
      const found = await tree.consistencyProof(from, to)
      expect(found.map(hex)).toEqual(proof)
      const [earlier, later] = [from, to].map((size) => ({ size, root: heads[size]! }))
      expect(provesConsistency(earlier!, later!, found)).toBe(true)
    },
  )
})

describe('a tree of several tiles', () => {
  const size = 2 * tile_width + 37
  const leafOf = (i: number) => leafHash(`leaf ${i}`)
  const { tree, heads, edge, pieces } = tiled(size, leafOf)
  /** The definition of the RFC, by recursion. */
  const rootOf = (begin: number, end: number): Hash => joined(subtreesOf({ begin, end }).map(whole))
  const whole = ({ height, index }: { height: number; index: number }): Hash =>
    height === 0
      ? leafOf(index)
      : joined([
          whole({ height: height - 1, index: 2 * index }),
          whole({ height: height - 1, index: 2 * index + 1 }),
        ])

  test('has the root of every earlier size', async () => {
    for (let at = 0; at <= size; at += 13) expect(hex(await tree.root(at))).toBe(hex(heads[at]!))
    expect(hex(rootOf(0, size))).toBe(hex(edge.root()))
  })

  test('proves every leaf, and no other leaf, place or size', async () => {
    for (let index = 0; index < size; index += 11) {
      for (const of_size of [index + 1, Math.min(size, index + 200), size]) {
        const [proof] = await tree.inclusionProofs([index], of_size)
        const claim = { index, size: of_size, leaf: leafOf(index), root: heads[of_size]! }
        expect(provesInclusion(claim, proof!)).toBe(true)
        expect(provesInclusion({ ...claim, leaf: leafOf(index + 1) }, proof!)).toBe(false)
        expect(provesInclusion({ ...claim, index: index + 1 }, proof!)).toBe(false)
        expect(provesInclusion(claim, [...proof!, leafOf(0)])).toBe(false)
        expect(provesInclusion({ ...claim, root: leafOf(size) }, proof!)).toBe(false)
      }
    }
  })

  test('proves that it begins with every earlier one', async () => {
    for (let from = 0; from <= size; from += 17) {
      for (const to of [from, Math.min(size, from + 255), size]) {
        const proof = await tree.consistencyProof(from, to)
        const [earlier, later] = [from, to].map((at) => ({ size: at, root: heads[at]! }))
        expect(provesConsistency(earlier!, later!, proof)).toBe(true)
        expect(provesConsistency(later!, earlier!, proof)).toBe(from === to)
        if (from === 0 || from === to) continue
        expect(provesConsistency({ ...earlier!, root: leafOf(0) }, later!, proof)).toBe(false)
        expect(provesConsistency(earlier!, { ...later!, root: leafOf(0) }, proof)).toBe(false)
        expect(provesConsistency(earlier!, later!, proof.slice(1))).toBe(false)
      }
    }
  })

  test('goes on from its edge', async () => {
    for (const at of [0, 1, tile_width - 1, tile_width, size - 1]) {
      const again = new Edge(at, await tree.edge(at))
      for (let i = at; i < size; i++) again.append(leafOf(i))
      expect(hex(again.root())).toBe(hex(edge.root()))
    }
    expect(() => new Edge(3, [leafOf(0)])).toThrow('the edge of a tree of 3 does not have 1 hashes')
  })

  test('tells a missing piece from a whole tile', async () => {
    const gone = pieces.filter((_, i) => i !== 3)
    const broken = new TiledTree(async () => gone.filter(({ level }) => level === 0).slice(0, 30))
    expect(broken.root(tile_width)).rejects.toThrow(MissingHash)
    expect(new TiledTree(async () => []).root(1)).rejects.toThrow('there is no hash 0 of level 0')
  })

  test('tiles are 256 hashes of 44 characters, a level for each 256th part', () => {
    const of = (level: number) =>
      hashesIn(
        pieces
          .filter((piece) => piece.level === level)
          .map(({ hashes }) => hashes)
          .join(''),
      )
    expect([of(0).length, of(1).length, of(2).length]).toEqual([size, 2, 0])
    expect(hex(of(1)[1]!)).toBe(hex(rootOf(tile_width, 2 * tile_width)))
  })
})

test('what a proof is made of grows with the logarithm of the tree, also past 2^32 leaves', () => {
  const size = 2 ** 40 + 5
  const of = (ranges: Range[]) => ranges.flatMap(subtreesOf).length
  expect(inclusionRanges(2 ** 33 + 1, size).length).toBeLessThanOrEqual(41)
  expect(of(inclusionRanges(2 ** 33 + 1, size))).toBeLessThan(50)
  expect(of(consistencyRanges(2 ** 33 + 1, size))).toBeLessThan(50)
})
