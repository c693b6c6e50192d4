// JSON as text: what a client sent has to come back as the same bytes, wherever in an answer it stands.

export interface Part {
  /** Of a member of an object; null for an element of an array. */
  name: string | null
  /** The value, without the space around it. */
  text: string
}

/** The text of one value, by the names and places that lead to it; undefined when it is not there. */
export function rawAt(json: string, ...way: (string | number)[]): string | undefined {
  let text: string | undefined = json
  for (const step of way) {
    const parts: Part[] = text === undefined ? [] : partsOf(text)
    const found = typeof step === 'number' ? parts[step] : parts.filter(({ name }) => name === step).pop()
    text = found?.text
  }
  return text
}

/** The members of an object, or the elements of an array, of JSON that is well-formed; none for another value. */
export function partsOf(json: string): Part[] {
  const start = pastSpace(json, 0)
  const open = json[start]
  if (open !== '{' && open !== '[') return []
  const parts: Part[] = []
  let at = pastSpace(json, start + 1)
  while (at < json.length && json[at] !== '}' && json[at] !== ']') {
    const name_end = open === '{' ? pastValue(json, at) : at
    const name = open === '{' ? (JSON.parse(json.slice(at, name_end)) as string) : null
    const from = open === '{' ? pastSpace(json, pastSpace(json, name_end) + 1) : at
    const to = pastValue(json, from)
    parts.push({ name, text: json.slice(from, to) })
    at = pastSpace(json, to)
    if (json[at] === ',') at = pastSpace(json, at + 1)
  }
  return parts
}

function pastSpace(json: string, from: number): number {
  let at = from
  while (at < json.length && ' \t\n\r'.includes(json[at]!)) at += 1
  return at
}

function pastValue(json: string, from: number): number {
  if (json[from] === '"') return pastText(json, from)
  let depth = 0
  for (let at = from; at < json.length; at += 1) {
    const char = json[at]!
    if (char === '"') at = pastText(json, at) - 1
    else if (char === '{' || char === '[') depth += 1
    else if (depth === 0 && /[\s,:\]}]/.test(char)) return at
    else if ((char === '}' || char === ']') && --depth === 0) return at + 1
  }
  return json.length
}

function pastText(json: string, from: number): number {
  let at = from + 1
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}
