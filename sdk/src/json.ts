// JSON as text, for numbers that a double does not hold.

/** JSON text that is sent as it stands, wherever a value is taken: `new RawJson('123456789012345678901')`. */
export class RawJson {
  /** Throws SyntaxError when the text is not JSON. */
  constructor(readonly text: string) {
    JSON.parse(text)
  }
}

/** As JSON.stringify, save that RawJson is written as its text and a bigint with all its digits. */
export function encodeJson(value: unknown): string {
  const text = textOf(value)
  if (text === undefined) throw new TypeError('undefined is not a JSON value')
  return text
}

function textOf(value: unknown): string | undefined {
  if (value instanceof RawJson) return value.text
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if ('toJSON' in value && typeof value.toJSON === 'function') return textOf(value.toJSON())
  if (Array.isArray(value)) return `[${Array.from(value, (item) => textOf(item) ?? 'null').join(',')}]`
  if (isBoxed(value)) return JSON.stringify(value)
  const members = Object.entries(value).flatMap(([name, member]) => {
    const text = textOf(member)
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
  })
  return `{${members.join(',')}}`
}

function isBoxed(value: object): boolean {
  return value instanceof String || value instanceof Number || value instanceof Boolean
}

/** The exact text of a member of a JSON object, of the last one of that name; undefined when it has none. */
export function memberText(object: string, name: string): string | undefined {
  let found: string | undefined
  let at = skipSpace(object, object.indexOf('{') + 1)
  while (object[at] === '"') {
    const name_end = endOfString(object, at)
    const start = skipSpace(object, skipSpace(object, name_end) + 1)
    const end = endOfValue(object, start)
    if (JSON.parse(object.slice(at, name_end)) === name) found = object.slice(start, end)
    at = skipSpace(object, skipSpace(object, end) + 1)
  }
  return found
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (' \t\r\n'.includes(text[at] ?? '-')) at += 1
  return at
}

/** Past the closing quote of the string that begins here. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function endOfValue(text: string, from: number): number {
  let depth = 0
  let at = from
  while (at < text.length) {
    const character = text[at]!
    if (character === '"') {
      at = endOfString(text, at)
      if (depth === 0) return at
      continue
    }
    if (depth === 0 && ',}] \t\r\n'.includes(character)) return at
    if ('{['.includes(character)) depth += 1
    if ('}]'.includes(character)) depth -= 1
    at += 1
    if (depth === 0 && '}]'.includes(character)) return at
  }
  return at
}
