// The lines in which two JSON values differ, as they are stored: nothing is parsed and written again.

export interface DifferenceLine {
  kind: 'same' | 'removed' | 'added'
  text: string
}

/** Above so many comparisons the lines between the first and the last difference are shown as replaced. */
const comparisons_max = 1_000_000

export function difference(before: string, after: string): DifferenceLine[] {
  const [old, fresh] = [jsonLines(before), jsonLines(after)]
  let head = 0
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1
  let tail = 0
  const most = Math.min(old.length, fresh.length) - head
  while (tail < most && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail += 1
  return [
    ...marked('same', old.slice(0, head)),
    ...changed(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...marked('same', old.slice(old.length - tail)),
  ]
}

function marked(kind: DifferenceLine['kind'], lines: readonly string[]): DifferenceLine[] {
  return lines.map((text) => ({ kind, text }))
}

/** By the longest common subsequence: removed lines come before those that replace them. */
function changed(old: readonly string[], fresh: readonly string[]): DifferenceLine[] {
  if (old.length * fresh.length > comparisons_max)
    return [...marked('removed', old), ...marked('added', fresh)]
  const width = fresh.length + 1
  const common = new Uint32Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      const [down, right] = [common[(i + 1) * width + j]!, common[i * width + j + 1]!]
      common[i * width + j] =
        old[i] === fresh[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(down, right)
    }
  const lines: DifferenceLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < fresh.length) {
    const kept = i < old.length && j < fresh.length && old[i] === fresh[j]
    const removes =
      i < old.length && (j === fresh.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
    if (kept) lines.push({ kind: 'same', text: old[i]! })
    else if (removes) lines.push({ kind: 'removed', text: old[i]! })
    else lines.push({ kind: 'added', text: fresh[j]! })
    if (kept || removes) i += 1
    if (kept || !removes) j += 1
  }
  return lines
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
