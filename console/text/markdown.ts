// Markdown as a strict subset, read into values. Nothing that a reader could decide on is dropped: markup outside of the
// subset stays as it was written. Every function looks at a character a bounded number of times.

import { linkable } from './links.ts'
import { shown } from './words.ts'

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'em' | 'strong'; parts: Inline[] }
  /** `parts` is null where the text is the URL. */
  | { kind: 'link'; href: string; parts: Inline[] | null }

export interface Item {
  /** The number as it was written; null in a list without numbers. */
  number: number | null
  blocks: Block[]
}

export type Block =
  | { kind: 'paragraph'; parts: Inline[] }
  | { kind: 'heading'; level: number; parts: Inline[] }
  | { kind: 'code'; info: string; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; items: Item[] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' }

/** Lists and quotes in one another; deeper ones stay text. */
const levels_max = 6
/** Emphasis in one another. */
const frames_max = 8
const columns_max = 24

export function blocksOf(text: string): Block[] {
  return blocksIn(text.split(/\r\n?|\n/), 0)
}

/** True when Markdown shows nothing but the text itself. */
export function isPlain(blocks: Block[]): boolean {
  return blocks.every(
    (block) => block.kind === 'paragraph' && block.parts.every(({ kind }) => kind === 'text'),
  )
}

function blocksIn(lines: string[], level: number): Block[] {
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; ) {
    const read = isBlank(lines[at]!) ? { next: at + 1 } : blockAt(lines, at, level)
    if (read.block) blocks.push(read.block)
    at = read.next
  }
  return blocks
}

interface Read {
  block?: Block
  /** The line after it. */
  next: number
}

function blockAt(lines: string[], at: number, level: number): Read {
  const line = lines[at]!
  return (
    fenceAt(lines, at) ??
    headingAt(line, at) ??
    (isRule(line) ? { block: { kind: 'rule' }, next: at + 1 } : null) ??
    (level < levels_max ? (quoteAt(lines, at, level) ?? listAt(lines, at, level)) : null) ??
    tableAt(lines, at) ??
    paragraphAt(lines, at, level)
  )
}

function isBlank(line: string): boolean {
  return line.trim() === ''
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

// With `s`, for U+2028 and U+2029 end no line here: what comes last then takes all that is left at the first try.
const fence_line = /^ {0,3}(`{3,}|~{3,})(.*)$/s
const heading_line = /^ {0,3}(#{1,6})[ \t]+(.*)$/s

function fenceOf(line: string): { mark: string; info: string } | null {
  const [, mark, info] = fence_line.exec(line) ?? []
  if (mark === undefined || (mark[0] === '`' && info!.includes('`'))) return null
  return { mark, info: info!.trim() }
}

function fenceAt(lines: string[], at: number): Read | null {
  const fence = fenceOf(lines[at]!)
  if (!fence) return null
  const isEnd = (line: string) => {
    const end = line.trim()
    return end.length >= fence.mark.length && end === fence.mark[0]!.repeat(end.length) && indentOf(line) < 4
  }
  let end = at + 1
  while (end < lines.length && !isEnd(lines[end]!)) end += 1
  return {
    block: { kind: 'code', info: fence.info, text: lines.slice(at + 1, end).join('\n') },
    next: end + 1,
  }
}

function headingAt(line: string, at: number): Read | null {
  const [, marks, text] = heading_line.exec(line) ?? []
  if (marks === undefined) return null
  return { block: { kind: 'heading', level: marks.length, parts: inlinesOf(text!.trim()) }, next: at + 1 }
}

function isRule(line: string): boolean {
  return indentOf(line) < 4 && /^(-{3,}|\*{3,}|_{3,})$/.test(line.replace(/[ \t]/g, ''))
}

const quote_mark = /^ {0,3}> ?/

function quoteAt(lines: string[], at: number, level: number): Read | null {
  let next = at
  while (next < lines.length && quote_mark.test(lines[next]!)) next += 1
  if (next === at) return null
  const inside = lines.slice(at, next).map((line) => line.replace(quote_mark, ''))
  return { block: { kind: 'quote', blocks: blocksIn(inside, level + 1) }, next }
}

interface Marker {
  /** The width of the marker, with the spaces around it. */
  width: number
  number: number | null
}

function markerOf(line: string): Marker | null {
  const [all, digits] = /^ {0,3}(?:[-*+]|(\d{1,9})[.)])(?: {1,4}(?=\S)|[ \t])/.exec(line) ?? []
  if (all === undefined || isRule(line)) return null
  return { width: all.length, number: digits === undefined ? null : Number(digits) }
}

function listAt(lines: string[], first: number, level: number): Read | null {
  const start = markerOf(lines[first]!)
  if (!start) return null
  const items: Item[] = []
  let at = first
  for (let marker: Marker | null = start; marker; marker = at < lines.length ? markerOf(lines[at]!) : null) {
    if ((marker.number === null) !== (start.number === null)) break
    const next = itemEnd(lines, at, marker.width)
    const inside = lines
      .slice(at, next)
      .map((line, i) => line.slice(i === 0 ? marker!.width : Math.min(marker!.width, indentOf(line))))
    items.push({ number: marker.number, blocks: blocksIn(inside, level + 1) })
    at = next
  }
  return { block: { kind: 'list', items }, next: at }
}

/** An item ends before the first line that is neither indented, nor blank, nor goes on with a paragraph. */
function itemEnd(lines: string[], at: number, width: number): number {
  let end = at + 1
  for (let i = at + 1; i < lines.length; i += 1) {
    const line = lines[i]!
    if (isBlank(line)) continue
    const goes_on = indentOf(line) >= width || (!isBlank(lines[i - 1]!) && !startsBlock(line))
    if (!goes_on) break
    end = i + 1
  }
  // Blank lines between two items belong to neither.
  while (end < lines.length && isBlank(lines[end]!) && end + 1 < lines.length && markerOf(lines[end + 1]!))
    end += 1
  return end
}

function startsBlock(line: string): boolean {
  return (
    [heading_line, quote_mark].some((mark) => mark.test(line)) ||
    isRule(line) ||
    Boolean(fenceOf(line) ?? markerOf(line))
  )
}

/** `a | b`, then `--- | ---`, then rows. Every cell is shown, more than the head has too. */
function tableAt(lines: string[], at: number): Read | null {
  const head = cellsOf(lines[at]!)
  const under = lines[at + 1]
  if (head.length < 2 || head.length > columns_max || under === undefined) return null
  if (
    !/^[-:| \t]+$/.test(under) ||
    cellsOf(under).length !== head.length ||
    !cellsOf(under).every((cell) => /^:?-+:?$/.test(cell))
  )
    return null
  let next = at + 2
  while (next < lines.length && lines[next]!.includes('|')) next += 1
  const rows = lines.slice(at + 2, next).map((line) => cellsOf(line).map(inlinesOf))
  return { block: { kind: 'table', head: head.map(inlinesOf), rows }, next }
}

function cellsOf(line: string): string[] {
  const cells = line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|')
  const first = cells.slice(0, columns_max - 1)
  const rest = cells.slice(columns_max - 1)
  return [...first, ...(rest.length > 0 ? [rest.join('|')] : [])].map((cell) => cell.trim())
}

/** Lines stay lines: people who write plain text rely on them. */
function paragraphAt(lines: string[], at: number, level: number): Read {
  let next = at + 1
  while (
    next < lines.length &&
    !isBlank(lines[next]!) &&
    (level >= levels_max || !startsBlock(lines[next]!))
  ) {
    if (tableAt(lines, next)) break
    next += 1
  }
  return { block: { kind: 'paragraph', parts: inlinesOf(lines.slice(at, next).join('\n')) }, next }
}

function inlinesOf(text: string): Inline[] {
  const parts = partsOf(text, true)
  // Marks that were taken out may have kept apart what hides or piles up where it is joined.
  const joined = textOf(parts)
  return shown(joined) === joined ? parts : [{ kind: 'text', text }]
}

function textOf(parts: Inline[]): string {
  return parts
    .map((part) => {
      if (part.kind === 'link') return part.parts ? `${textOf(part.parts)} (${part.href})` : part.href
      return 'text' in part ? part.text : textOf(part.parts)
    })
    .join('')
}

interface Frame {
  /** `*`, `__` and the like; empty for the outermost. */
  mark: string
  parts: Inline[]
}

function partsOf(text: string, with_links: boolean): Inline[] {
  const ticks = ticksIn(text)
  const frames: Frame[] = [{ mark: '', parts: [] }]
  let plain = ''
  const flush = () => {
    if (plain !== '') frames.at(-1)!.parts.push({ kind: 'text', text: plain })
    plain = ''
  }
  for (let at = 0; at < text.length; ) {
    const found = codeAt(text, at, ticks) ?? (with_links ? linkAt(text, at) : null)
    if (found) {
      flush()
      frames.at(-1)!.parts.push(found.part)
      at = found.next
      continue
    }
    const mark = markAt(text, at)
    if (mark && closes(text, at, mark) && frames.some((frame) => frame.mark === mark)) {
      flush()
      close(frames, mark)
    } else if (mark && opens(text, at, mark) && frames.length <= frames_max) {
      flush()
      frames.push({ mark, parts: [] })
    } else plain += mark ?? text[at]!
    at += mark?.length ?? 1
  }
  flush()
  unwind(frames, 0)
  return frames[0]!.parts
}

/** Ends the emphasis that began with this mark; marks without an end become text. */
function close(frames: Frame[], mark: string): void {
  const at = frames.findLastIndex((frame) => frame.mark === mark)
  unwind(frames, at)
  const { parts } = frames.pop()!
  const strong: Inline = { kind: 'strong', parts }
  const part: Inline =
    mark.length === 2 ? strong : { kind: 'em', parts: mark.length === 3 ? [strong] : parts }
  frames.at(-1)!.parts.push(part)
}

function unwind(frames: Frame[], down_to: number): void {
  const { parts } = frames[down_to]!
  for (const frame of frames.splice(down_to + 1)) {
    parts.push({ kind: 'text', text: frame.mark })
    for (const part of frame.parts) parts.push(part)
  }
}

/** A run of one to three asterisks or underscores, as a whole. A longer one is text. */
function markAt(text: string, at: number): string | null {
  const sign = text[at]
  if (sign !== '*' && sign !== '_') return null
  let end = at + 1
  while (text[end] === sign) end += 1
  return text.slice(at, end)
}

const letter = /[\p{L}\p{N}]/u

function isLetter(character: string | undefined): boolean {
  return character !== undefined && letter.test(character)
}

/** Not within a word, a number or a name: `a_b`, `2*3*4`, `*.log` and `__init__.py` are text. */
function opens(text: string, at: number, mark: string): boolean {
  const next = text[at + mark.length]
  return mark.length <= 3 && next !== undefined && !/[\s.]/.test(next) && !isLetter(text[at - 1])
}

function closes(text: string, at: number, mark: string): boolean {
  const [before, next, after] = [text[at - 1], text[at + mark.length], text[at + mark.length + 1]]
  if (before === undefined || /\s/.test(before) || isLetter(next)) return false
  return !(next !== undefined && /[./:@-]/.test(next) && isLetter(after))
}

interface Found {
  part: Inline
  next: number
}

/** Where a run of backticks begins: the place of the next run of the same length. */
function ticksIn(text: string): Map<number, { length: number; end: number }> {
  const runs = [...text.matchAll(/`+/g)].map(({ 0: { length }, index }) => ({ length, index }))
  const later = new Map<number, number>()
  const ticks = new Map<number, { length: number; end: number }>()
  for (const { length, index } of runs.toReversed()) {
    ticks.set(index, { length, end: later.get(length) ?? -1 })
    later.set(length, index)
  }
  return ticks
}

function codeAt(text: string, at: number, ticks: ReturnType<typeof ticksIn>): Found | null {
  const run = ticks.get(at)
  if (!run) return null
  if (run.end === -1)
    return { part: { kind: 'text', text: text.slice(at, at + run.length) }, next: at + run.length }
  const inside = text.slice(at + run.length, run.end)
  const padded = inside.startsWith(' ') && inside.endsWith(' ') && inside.trim() !== ''
  return { part: { kind: 'code', text: padded ? inside.slice(1, -1) : inside }, next: run.end + run.length }
}

const titled = /\[([^[\]]+)\]\((https?:\/\/[^\s()<>[\]]+)\)/iy
const bracketed = /<(https?:\/\/[^\s<>]+)>/iy
const bare = /https?:\/\/[^\s()<>[\]{}|\\^`"'*\u27e8]+/iy

/** Only whole http and https URLs become links. Their text is the address that they lead to. */
function linkAt(text: string, at: number): Found | null {
  const first = text[at]
  if (first === '[') {
    const [all, title, url] = matchAt(titled, text, at)
    const href = url === undefined ? null : addressOf(url)
    if (href === null) return null
    const parts = title === url || title === href ? null : partsOf(title!, false)
    return { part: { kind: 'link', href, parts }, next: at + all!.length }
  }
  if (first === '<') {
    const [all, url] = matchAt(bracketed, text, at)
    const href = url === undefined ? null : addressOf(url)
    return href === null ? null : { part: { kind: 'link', href, parts: null }, next: at + all!.length }
  }
  const [all] = /[hH]/.test(first!) && !isLetter(text[at - 1]) ? matchAt(bare, text, at) : []
  if (all === undefined) return null
  const url = all.replace(/[.,;:!?_~-]{1,8}$/, '')
  const href = addressOf(url)
  const part: Inline = href === null ? { kind: 'text', text: url } : { kind: 'link', href, parts: null }
  return { part, next: at + url.length }
}

function matchAt(pattern: RegExp, text: string, at: number): (string | undefined)[] {
  pattern.lastIndex = at
  return pattern.exec(text) ?? []
}

/** With its name as it is looked up: letters that look like others are seen. A name before an @ hides the host. */
function addressOf(url: string): string | null {
  const href = url.includes('\u27e8') ? null : linkable(url)
  if (href === null) return null
  const { username, password } = new URL(href)
  return username === '' && password === '' ? href : null
}
