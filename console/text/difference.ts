// The lines in which two JSON values differ, as they are stored: nothing is parsed and written again.

import { none, partnersOf } from './matching.ts'

export interface DifferenceLine {
  kind: 'same' | 'removed' | 'added'
  text: string
}

export function difference(before: string, after: string): DifferenceLine[] {
  const [old, fresh] = [jsonLines(before), jsonLines(after)]
  const partners = partnersOf(numbered(old, fresh))
  const lines: DifferenceLine[] = []
  let shown = 0
  const addUpTo = (end: number) => {
    for (; shown < end; shown += 1) lines.push({ kind: 'added', text: fresh[shown]! })
  }
  for (const [i, text] of old.entries()) {
    const partner = partners[i]!
    // Removed lines come before those that replace them.
    if (partner !== none) addUpTo(partner)
    lines.push({ kind: partner === none ? 'removed' : 'same', text })
    if (partner !== none) shown += 1
  }
  addUpTo(fresh.length)
  return lines
}

/** Equal lines have one number. */
function numbered(old: readonly string[], fresh: readonly string[]): [old: Int32Array, fresh: Int32Array] {
  const numbers = new Map<string, number>()
  const numberOf = (line: string) => {
    const number = numbers.get(line) ?? numbers.size
    if (number === numbers.size) numbers.set(line, number)
    return number
  }
  return [Int32Array.from(old, numberOf), Int32Array.from(fresh, numberOf)]
}

export interface DifferencePart {
  /** Equal lines away from any change. */
  is_folded: boolean
  lines: DifferenceLine[]
}

/** Equal lines that stay on each side of a change. So few are not worth folding either. */
const context_lines = 3

export function partsOf(lines: readonly DifferenceLine[]): DifferencePart[] {
  const parts: DifferencePart[] = []
  const push = (is_folded: boolean, from: number, to: number) => {
    if (from < to) parts.push({ is_folded, lines: lines.slice(from, to) })
  }
  let end = 0
  for (let start = 0; start < lines.length; start = end) {
    const is_same = lines[start]!.kind === 'same'
    while (end < lines.length && (lines[end]!.kind === 'same') === is_same) end += 1
    const from = start === 0 ? start : start + context_lines
    const to = end === lines.length ? end : end - context_lines
    const is_long = is_same && to - from > context_lines
    push(false, start, is_long ? from : end)
    if (is_long) push(true, from, to)
    if (is_long) push(false, to, end)
  }
  return parts
}

/** True for JSON texts that differ in white space alone. */
export function isSameJson(one: string, other: string): boolean {
  return jsonLines(one).join('\n') === jsonLines(other).join('\n')
}

/** JSON text with a line for each member; its numbers, texts and order stay as they are. */
export function jsonLines(text: string): string[] {
  const lines: string[] = []
  let [line, depth] = ['', 0]
  const end = (): void => {
    if (line.trim() !== '') lines.push(line)
    line = '  '.repeat(depth)
  }
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs)) {
    if (token === '}' || token === ']') {
      depth = Math.max(0, depth - 1)
      end()
    }
    line += token === ':' ? ': ' : token
    if (token === '{' || token === '[') depth += 1
    if (token === '{' || token === '[' || token === ',') end()
  }
  end()
  return lines
}
