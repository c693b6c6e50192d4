// A sequence diagram: who sends what, from above to below.

const [column, row, head_height, half_head] = [150, 38, 34, 56]

/** `lines` are those of a sequenceDiagram: participants, messages and notes over one of them. */
export function sequenceSvg(lines: readonly string[]): string {
  const places = new Map<string, number>()
  const heads: string[] = []
  const rows: string[] = []
  let y = head_height + row
  const placeOf = (name: string) => places.get(name)!
  for (const line of lines) {
    const [, name, title] = /^participant (\S+) as (.*)$/.exec(line) ?? []
    const [, from, dashes, to, label] = /^(\w+)(--?)>>(\w+): (.*)$/.exec(line) ?? []
    const [, noted, note] = /^Note over (\w+): (.*)$/.exec(line) ?? []
    if (name !== undefined) {
      const x = half_head + 2 + places.size * column
      places.set(name, x)
      heads.push(box(x, head_height / 2, half_head, title!))
      continue
    }
    if (from !== undefined) rows.push(message(placeOf(from), placeOf(to!), y, label!, dashes === '--'))
    else if (noted !== undefined) rows.push(box(placeOf(noted), y - 6, 2 + note!.length * 3.1, note!, 'note'))
    else throw new Error(`not a line of a sequence diagram that is drawn here: ${line}`)
    y += row
  }
  const [width, height] = [2 * half_head + 4 + (places.size - 1) * column, y - row + 16]
  const lifelines = [...places.values()].map(
    (x) => `<path class="lifeline" d="M${x},${head_height}V${height}"/>`,
  )
  const content = [...lifelines, ...heads, ...rows].join('')
  return `<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${content}</svg>`
}

function box(x: number, y: number, half: number, text: string, kind = 'head'): string {
  const height = kind === 'note' ? 26 : head_height
  const rect = `<rect x="${x - half}" y="${y - height / 2 + 1}" width="${2 * half}" height="${height - 2}" rx="6"/>`
  return `<g class="node ${kind}">${rect}<text x="${x}" y="${y + 4}" font-size="${kind === 'note' ? 12 : 13.5}" text-anchor="middle">${text}</text></g>`
}

function message(from: number, to: number, y: number, label: string, is_answer: boolean): string {
  const side = Math.sign(to - from)
  const kind = is_answer ? 'edge answer' : 'edge'
  const head = `<polygon points="${to},${y} ${to - side * 9},${y - 4} ${to - side * 9},${y + 4}"/>`
  // Beside the arrow's beginning, where no lifeline crosses it.
  const [x, anchor] = [from + side * 10, side > 0 ? 'start' : 'end']
  return `<g class="${kind}"><path d="M${from},${y}H${to - side * 8}"/>${head}<text x="${x}" y="${y - 6}" font-size="12" text-anchor="${anchor}">${label}</text></g>`
}
