// Figures as text.

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The median, and the least and the most when there are several: `3.21 (3.10..3.40)`. */
export function spread(values: number[], digits: number): string {
  const text = median(values).toFixed(digits)
  if (values.length === 1) return text
  return `${text} (${Math.min(...values).toFixed(digits)}..${Math.max(...values).toFixed(digits)})`
}

/** A Markdown table that reads well as plain text too. */
export function table(head: string[], rows: string[][]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]!.length)))
  const line = (row: string[]) => {
    const cells = row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

/** The same for a page that is rendered. */
export function markdownTable(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
