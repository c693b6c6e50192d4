// The lines in which two JSON values differ, as they are stored: nothing is parsed and written again.

import { diffArrays } from 'diff'

export interface DifferenceLine {
  kind: 'same' | 'removed' | 'added'
  text: string
}

/**
 * Lines that are removed or added at most, where each is to be in its place: to find them takes the square of it. Past so many all
 * between the first change and the last is shown as replaced.
 */
const edits_max = 500

export function difference(before: string, after: string): DifferenceLine[] {
  const [old, fresh] = [jsonLines(before), jsonLines(after)]
  const changes = diffArrays(old, fresh, { maxEditLength: edits_max })
  if (!changes) return replaced(old, fresh)
  return changes.flatMap(({ added, removed, value }) =>
    marked(added ? 'added' : removed ? 'removed' : 'same', value),
  )
}

function marked(kind: DifferenceLine['kind'], lines: readonly string[]): DifferenceLine[] {
  return lines.map((text) => ({ kind, text }))
}

function replaced(old: readonly string[], fresh: readonly string[]): DifferenceLine[] {
  let [head, old_end, fresh_end] = [0, old.length, fresh.length]
  while (old[head] === fresh[head]) head += 1
  for (; Math.min(old_end, fresh_end) > head && old[old_end - 1] === fresh[fresh_end - 1]; old_end -= 1)
    fresh_end -= 1
  return [
    ...marked('same', old.slice(0, head)),
    ...marked('removed', old.slice(head, old_end)),
    ...marked('added', fresh.slice(head, fresh_end)),
    ...marked('same', old.slice(old_end)),
  ]
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
