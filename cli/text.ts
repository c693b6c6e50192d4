// Text for people: without control characters, and with all digits.

/**
 * Characters that move the cursor, colour, ring, break lines or turn the direction of writing: C0, DEL, C1, the line
 * separators of Unicode and its bidirectional controls. Terminals obey them, and stored text may hold them.
 */
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** One line that shows what it holds: a line break as \n, ESC as \u001b. */
export function visible(text: string): string {
  return text.replace(unsafe, (character) => names[character] ?? escaped(character))
}

/** The same for JSON text, which stays JSON of the same value: line breaks between its parts are kept. */
export function visibleJson(text: string): string {
  return text.replace(unsafe, (character) => (' \t\r\n'.includes(character) ? character : escaped(character)))
}

/** The same for text of several lines: a return that would write over its line is shown as well. */
export function visibleLines(text: string): string {
  return visibleJson(text.replace(/\r(?!\n)/g, '\\r'))
}

/** One word for a POSIX shell, for commands that are shown: an agent chooses ids, and a folder may have any name. */
export function shellWord(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

const names: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

interface RawNumber {
  readonly rawJSON: string
}

/** As ES2026 has it; the types do not know it yet. */
const exact = JSON as typeof JSON & {
  rawJSON(text: string): RawNumber
  isRawJSON(value: unknown): value is RawNumber
}

/** Numbers that a double would change are kept as their text, and written as it by JSON.stringify. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, (_name, value: unknown, context?: { source?: string }) => {
    const source = context?.source
    if (typeof value !== 'number' || source === undefined || String(value) === source) return value
    return exact.rawJSON(source)
  })
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !exact.isRawJSON(value)
}

/** JSON that is safe to show. */
export function jsonText(value: unknown, indent = 0): string {
  return visibleJson(JSON.stringify(value, null, indent) ?? 'null')
}
