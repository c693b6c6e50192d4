// Two long lists, and which entries of one are those of the other, in bounded time.

/** An entry without a partner. */
export const none = -1

/** Steps of a search. What is not found by then has no partner. */
const steps_max = 5_000_000
/** Entries without a partner that a search gets past. It takes the square of it in numbers. */
const edits_max = 1_000

interface Lists {
  old: Int32Array
  fresh: Int32Array
  /** For each entry of `old` the place of its partner in `fresh`, rising, or `none`. */
  partners: Int32Array
  steps_left: number
}

/** A stretch of each list; the ends are past it. */
interface Stretch {
  i: number
  i_end: number
  j: number
  j_end: number
}

/** For each entry of `old` the place of its partner in `fresh`: as many as can be found, in the order of both. */
export function partnersOf([old, fresh]: readonly [old: Int32Array, fresh: Int32Array]): Int32Array {
  const partners = new Int32Array(old.length).fill(none)
  const lists: Lists = { old, fresh, partners, steps_left: steps_max }
  const whole = trimmed(lists, { i: 0, i_end: old.length, j: 0, j_end: fresh.length })
  if (matchMost(lists, whole)) return partners
  lists.steps_left = steps_max
  let { i, j } = whole
  for (const [i_end, j_end] of [...landmarks(lists, whole), [whole.i_end, whole.j_end] as const]) {
    matchMost(lists, trimmed(lists, { i, i_end, j, j_end }))
    if (i_end < whole.i_end) partners[i_end] = j_end
    i = i_end + 1
    j = j_end + 1
  }
  return partners
}

/** Matches what is equal at the beginning and at the end. */
function trimmed({ old, fresh, partners }: Lists, { i, i_end, j, j_end }: Stretch): Stretch {
  for (; i < i_end && j < j_end && old[i] === fresh[j]; i += 1, j += 1) partners[i] = j
  for (; i < i_end && j < j_end && old[i_end - 1] === fresh[j_end - 1]; i_end -= 1, j_end -= 1)
    partners[i_end - 1] = j_end - 1
  return { i, i_end, j, j_end }
}

/**
 * Leaves as few without a partner as can be: the greedy algorithm of E. W. Myers, "An O(ND) Difference Algorithm and Its
 * Variations", 1986. False, and nothing is matched, where that would take too long.
 */
function matchMost(lists: Lists, stretch: Stretch): boolean {
  const { old, fresh } = lists
  const { i, j } = stretch
  const [n, m] = [stretch.i_end - i, stretch.j_end - j]
  if (n === 0 || m === 0) return true
  const most = Math.min(n + m, edits_max)
  const middle = most + 1
  /** How far each diagonal x - y is known. */
  const reached = new Int32Array(2 * most + 3).fill(none)
  reached[middle + 1] = 0
  const rounds: Int32Array[] = []
  for (let d = 0; d <= most; d += 1) {
    const [first, last] = [Math.max(-d, d - 2 * m), Math.min(d, 2 * n - d)]
    for (let k = first; k <= last; k += 2) {
      const [right, down] = [reached[middle + k - 1]! + 1, reached[middle + k + 1]!]
      const start = Math.max(right, down)
      let x = start
      while (x < n && x - k < m && old[i + x] === fresh[j + x - k]) x += 1
      reached[middle + k] = x
      lists.steps_left -= 1 + x - start
      if (x >= n && x - k >= m) {
        matchAlong(lists, stretch, rounds)
        return true
      }
    }
    if (lists.steps_left < 0) return false
    rounds.push(reached.slice(middle - d, middle + d + 1))
  }
  return false
}

/** Goes back from the end by what each round had reached. */
function matchAlong({ partners }: Lists, { i, i_end, j, j_end }: Stretch, rounds: Int32Array[]): void {
  let [x, y] = [i_end - i, j_end - j]
  const back = (to: number) => {
    for (; x > to; x -= 1, y -= 1) partners[i + x - 1] = j + y - 1
  }
  for (let d = rounds.length; d > 0; d -= 1) {
    const reached = (k: number) => rounds[d - 1]![k + d - 1] ?? none
    const k = x - y
    const [right, down] = [reached(k - 1) + 1, reached(k + 1)]
    back(Math.max(right, down))
    // The edit itself.
    if (right > down) x -= 1
    else y -= 1
  }
  back(0)
}

/** Entries that occur once on each side, as many as stand in one order: what is between them is matched by itself. */
function landmarks(
  { old, fresh }: Lists,
  { i, i_end, j, j_end }: Stretch,
): (readonly [i: number, j: number])[] {
  const there = placesOf(fresh, j, j_end)
  const here = placesOf(old, i, i_end)
  const both: (readonly [i: number, j: number])[] = []
  for (const [number, place] of here) {
    const other = there.get(number) ?? twice
    if (place !== twice && other !== twice) both.push([place, other])
  }
  return longestRising(both)
}

const twice = -1

/** The place of each number, in their order. */
function placesOf(list: Int32Array, from: number, to: number): Map<number, number> {
  const places = new Map<number, number>()
  for (let at = from; at < to; at += 1) places.set(list[at]!, places.has(list[at]!) ? twice : at)
  return places
}

/** The longest choice of pairs, whose first numbers rise, in which the second ones rise too. */
function longestRising(pairs: (readonly [number, number])[]): (readonly [number, number])[] {
  /** The index of the pair that ends a choice of each length, and of the pair before each. */
  const [ends, before]: number[][] = [[], []]
  for (const [at, [, second]] of pairs.entries()) {
    let [low, high] = [0, ends!.length]
    while (low < high) {
      const half = (low + high) >> 1
      if (pairs[ends![half]!]![1] < second) low = half + 1
      else high = half
    }
    before!.push(low === 0 ? none : ends![low - 1]!)
    ends![low] = at
  }
  const chosen: (readonly [number, number])[] = []
  for (let at = ends!.at(-1) ?? none; at !== none; at = before![at]!) chosen.push(pairs[at]!)
  return chosen.reverse()
}
