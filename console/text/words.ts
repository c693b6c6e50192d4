// Stored text as it is shown, and numbers in words.

/** Characters that reorder or hide others, or are invisible themselves, except line breaks and tabs. */
const deceiving =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu

/** Joiners belong between the parts of an emoji and the letters of scripts that join; elsewhere they only hide. */
const joined = String.raw`(?:[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{M}]|(?![\p{sc=Latn}\p{sc=Grek}\p{sc=Cyrl}])\p{L})`
const stray_joiner = new RegExp(`(?<!${joined})[\u200c\u200d]|[\u200c\u200d](?!${joined})`, 'gu')

/** Marks stacked higher than in any language. They would cover the lines above and below. */
const stacked = /(?<=\p{M}{8})\p{M}/gu

/** Text in the order of its characters: controls and overrides are shown by their number and have no effect. */
export function shown(text: string): string {
  const lines = text.replace(/\r\n?/g, '\n')
  return [deceiving, stray_joiner, stacked].reduce((seen, kind) => seen.replace(kind, numbered), lines)
}

/** The same JSON without characters that are invisible or that a terminal would obey. */
export function plainJson(text: string): string {
  // Tabs and carriage returns occur between values only.
  const spaced = text.replace(/[\t\r]/g, ' ')
  return [deceiving, stray_joiner, stacked].reduce((seen, kind) => seen.replace(kind, escaped), spaced)
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, i) => {
    return `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
  }).join('')
}

function numbered(character: string): string {
  return `\u27e8U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}\u27e9`
}

/** `12,345` */
export function count(value: number): string {
  return value.toLocaleString('en')
}

/** `1 call`, `2 calls` */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** `once`, `2 times` */
export function times(value: number): string {
  return value === 1 ? 'once' : `${count(value)} times`
}

/** `9.5 MiB`; whole numbers of bytes below a KiB. */
export function byteCount(bytes: number): string {
  const power = bytes < 1_024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10))
  const value = (bytes / 1_024 ** power).toLocaleString('en', { maximumFractionDigits: 1 })
  return `${value} ${['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`
}

/** The first line that is not blank, at most 1,000 characters of it. */
export function firstLine(text: string): string {
  return (text.split('\n', 200).find((line) => line.trim() !== '') ?? '(no text)').trim().slice(0, 1_000)
}

/** The one who decided a checkpoint. */
export function resolver(resolved_by: string | null): string {
  if (resolved_by === null) return 'nobody'
  if (resolved_by === 'admin') return 'an administrator'
  if (resolved_by === 'timeout') return 'the time-out'
  const [kind, id] = [resolved_by.slice(0, resolved_by.indexOf(':')), shown(resolved_by.replace(/^\w+:/, ''))]
  return kind === 'agent' ? `the agent ${id}` : `the approval key ${id}`
}

const label_characters_max = 120

/** Stored text as a part of an accessible name. */
export function inLabel(text: string): string {
  return shown(text).slice(0, label_characters_max)
}
