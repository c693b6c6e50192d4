// The output of a command: a table with its heads on a terminal, lines with tabs for other programs, or JSON.

import type { Cell, Printed } from './command.ts'

export interface Form {
  json: boolean
  /** On a terminal. */
  aligned: boolean
}

/** Prints each row once it is made, also those before an error. */
export async function printEach(
  { each, none }: Extract<Printed, { each: unknown }>,
  { json, aligned }: Form,
  print: (text: string) => void,
): Promise<void> {
  let made = 0
  if (json) print('[')
  try {
    for await (const row of each) {
      if (json) print(`${made > 0 ? ',' : ''}${JSON.stringify(row)}`)
      else print(lineOf(row))
      made += 1
    }
  } finally {
    if (json) print(']')
  }
  if (made === 0 && aligned && !json) print(none)
}

export function textOf(printed: Exclude<Printed, { each: unknown }>, { json, aligned }: Form): string {
  if ('text' in printed) return json ? JSON.stringify(printed.value) : straight(printed.text)
  const { rows, none = 'none' } = printed
  if (json) return JSON.stringify(rows)
  if (rows.length === 0) return aligned ? none : ''
  if (!aligned) return rows.map(lineOf).join('\n')
  return table(rows)
}

function lineOf(row: Record<string, Cell>): string {
  return Object.values(row).map(shown).join('\t')
}

function table(rows: readonly Record<string, Cell>[]): string {
  const names = Object.keys(rows[0]!)
  const lines = [names, ...rows.map((row) => names.map((name) => shown(row[name]!)))]
  const widths = names.map((_, i) => Math.max(...lines.map((cells) => cells[i]!.length)))
  return lines
    .map((cells) =>
      cells
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Names and reasons come from tenants: controls could move the cursor. */
function shown(cell: Cell): string {
  return cell === null ? '-' : straight(String(cell).replace(/\p{Cc}/gu, '?'))
}

/** Without the characters at which a terminal turns or breaks a line: a name may have them, though no controls. */
export function straight(text: string): string {
  return text.replace(/[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '?')
}
